"""The help, laid out by typer from the table of commands.

typer reads no command line here: it knows no expression that begins with a minus, and loads a validation library
to be told that text is text, which would double the time of every refusal.
"""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Annotated, Any

import typer

from jacli.cli.commands import COMMANDS, Command, Option

ABOUT = """Jacobians and other derivatives of expressions, by automatic differentiation, checked entry by entry
against the exact derivative.

"jacli COMMAND --help" tells more. Exit status: 0 every entry agrees, 1 some entry does not, 2 the request is wrong
and nothing was computed, 70 a bug in jacli, 130 interrupted.
"""


def help_text(command: Command | None) -> str:
    """The help of one command, or of jacli."""
    words = ["--help"] if command is None else [command.name, "--help"]
    text = io.StringIO()
    with redirect_stdout(text):
        # An empty complete_var: no variable of the environment may turn a request into something else.
        build()(words, prog_name="jacli", standalone_mode=False, complete_var="")
    return text.getvalue()


def build() -> typer.Typer:
    """The application as typer sees it."""
    app = typer.Typer(
        name="jacli",
        help=ABOUT,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        options_metavar="",
        subcommand_metavar="COMMAND …",
    )
    app.callback()(_options_of_jacli)
    for command in COMMANDS.values():
        app.command(command.name, help=command.help, epilog=f"Example: {command.example}")(_function(command))
    return app


def _options_of_jacli(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """What jacli itself takes, for the help."""


def _function(command: Command) -> Callable[..., None]:
    """A function with the signature that typer reads: the command's options."""

    def call(**_: object) -> None:
        """Never called."""

    parameters = [_parameter(option) for option in command.options]
    if command.takes_expression:
        about = typer.Argument(metavar="EXPRESSION", help='For example "r = sqrt(x^2+y^2); r, atan2(y, x)".')
        parameters.insert(0, _keyword("expression", str | None, about))
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


def _parameter(option: Option) -> inspect.Parameter:
    about = typer.Option(option.name, help=option.help, metavar=option.metavar or None, show_default=False)
    return _keyword(option.key, str | None if option.metavar else bool, about)


def _keyword(name: str, kind: Any, about: Any) -> inspect.Parameter:
    default = False if kind is bool else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, about])
