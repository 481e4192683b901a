"""From words to the one who answers: the help, the version, the list of functions, or a computation."""

from __future__ import annotations

from collections.abc import Sequence

from jacli.cli.argv import parse
from jacli.cli.streams import write_output
from jacli.version import __version__


def answer(words: Sequence[str]) -> int:
    """Answer the words of one command line; the exit status."""
    asked = parse(words)
    if asked.version:
        write_output(f"jacli {__version__}\n".encode())
        return 0
    if asked.help or asked.command is None:
        from jacli.cli.help import help_text

        write_output(help_text(asked.command).encode())
        return 0
    if asked.command.name == "serve":
        from jacli.warm.command import run

        return run(asked.given)
    if not asked.command.takes_expression:
        from jacli.cli.listing import list_functions

        return list_functions(asked.given)
    if asked.command.points:
        from jacli.cli import points

        if asked.given["points"] is not None:
            return points.compute(asked.command, asked.given)
        points.refuse_without_points(asked.given)
    from jacli.cli.request import compute

    return compute(asked.command, asked.given)
