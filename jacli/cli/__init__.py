"""The command line: words → request → result → bytes and an exit status. No mathematics here.

Nothing heavy is imported before it is needed: ``--help``, ``functions`` and every refusal answer without torch,
SymPy or NumPy.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing is not imported for its name alone: every call pays for what is imported here
if TYPE_CHECKING:
    from collections.abc import Sequence

ALL_AGREE, SOME_DO_NOT, REFUSED, BUG, INTERRUPTED = 0, 1, 2, 70, 130


def main() -> None:
    """The entry point: the warm server answers where one is running, this process otherwise."""
    from jacli.warm.client import ask

    words = sys.argv[1:]
    status = ask(words)
    if status is None:
        from jacli.cli import levers

        levers.pull()
        status = run(words)
    os._exit(status)  # all is flushed, and torch's own goodbye costs a quarter of its import


def run(words: Sequence[str]) -> int:
    """Serve one command line and return its exit status; what was written is flushed."""
    from jacli.cli import streams
    from jacli.errors import JacliError

    try:
        from jacli.cli.app import answer

        status = answer(words)
    except JacliError as error:
        from jacli.cli.diagnostics import refusal, wants_json

        streams.write_error(refusal(error, as_json=wants_json(words)))
        status = REFUSED
    except KeyboardInterrupt:
        status = INTERRUPTED
    except Exception as bug:
        if sys.flags.dev_mode:
            raise
        from jacli.cli.diagnostics import bug_report

        streams.write_error(bug_report(bug))
        status = BUG
    return status
