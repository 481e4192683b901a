"""One request: options checked from the cheapest on, the output opened, then - and only then - computed."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from jacli.cli import ALL_AGREE, SOME_DO_NOT, levers, streams
from jacli.cli.commands import Command
from jacli.errors import JacliError
from jacli.render import DEFAULT, FORMATS, Format, Options, render

if TYPE_CHECKING:
    from jacli.result import Result

Given = Mapping[str, Any]

MOST_DIGITS = 40

_NAMES_A_FILE = re.compile(r"(?:^|[=,;\n])\s*@")


@dataclass(frozen=True, slots=True)
class View:
    """How the answer is to be shown, and where."""

    format: Format
    options: Options
    output: str | None
    quiet: bool

    def remark(self, text: str) -> None:
        """A line on standard error, unless quiet was asked for."""
        if not self.quiet:
            streams.write_error(f"note: {text}\n")


def compute(command: Command, given: Given) -> int:
    """Serve one command that computes; the exit status."""
    view = view_of(given)
    for option in command.required:
        if given[option.key] is None:
            raise JacliError(
                f"{command.name} needs {option.name}", hint=f"for example: {command.example}", kind="option"
            )
    arguments = arguments_of(command, given) | _for_large(command, given, view.format)
    with opened(view) as write:
        text = None if _needs_no_text(given) else text_of(command, given)
        result = _ask(command.name, text, arguments)
        for remark in result.remarks:
            view.remark(remark)
        write(render(result, view.format.name, view.options))
    return ALL_AGREE if result.satisfied else SOME_DO_NOT


def _for_large(command: Command, given: Given, chosen: Format) -> dict[str, Any]:
    """What only large programs look at; a sparse format makes every program large."""
    found: dict[str, Any] = {}
    if not command.large:
        if chosen.sparse and command.name != "sparsity":
            raise JacliError(f"{command.name} gives no sparse matrix", hint="use --format csv or json", kind="option")
        return found
    if given["check"] is not None:
        found["check"] = given["check"]
    if given["most_dense"] is not None:
        found["most_dense"] = _count("most-dense", given["most_dense"])
    elif chosen.whole and command.name == "jacobian":
        found["most_dense"] = None
    return found | {"most_dense": -1} if chosen.sparse else found


def _count(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise JacliError(f"--{name} is a whole number from 0 up, not {text}", kind="option")
    return int(text)


def _needs_no_text(given: Given) -> bool:
    """A function of one's own can be judged without an expression."""
    sources = (given["expression"], given["expr"], given["file"])
    return given.get("torch") is not None and all(source is None for source in sources)


def _ask(name: str, text: str | None, arguments: Given) -> Result:
    if arguments.get("torch") is not None:
        levers.complete()  # their code may ask for anything in torch
    answer: Result = getattr(import_module("jacli.api"), name)(text, **arguments)
    return answer


def arguments_of(command: Command, given: Given) -> dict[str, Any]:
    """What was given of the options that are the function's arguments."""
    arguments = {option.key: given[option.key] for option in command.arguments if given[option.key] is not None}
    for key in ("rtol", "atol"):
        if key in arguments:
            arguments[key] = _tolerance(key, arguments[key])
    if arguments.get("claim") == "-":
        arguments["claim"] = "@-"
    if list(_texts(arguments)).count("@-") + (given["file"] == "-") + (given.get("points") == "-") > 1:
        raise JacliError("standard input can be only one of what is asked for", kind="option")
    return {key: _piped(value) for key, value in arguments.items()}


def _texts(arguments: Given) -> Iterator[Any]:
    for value in arguments.values():
        yield from value if isinstance(value, tuple) else (value,)


def _piped(value: Any) -> Any:
    """What ``@-`` or another pipe holds, which can be read only once, and is read here; other values as they are."""
    if isinstance(value, tuple):
        return tuple(map(_piped, value))
    if not isinstance(value, str) or not value.startswith("@") or not (value == "@-" or streams.is_pipe(value[1:])):
        return value
    text = streams.read_text(value[1:])
    if _NAMES_A_FILE.search(text):
        raise JacliError("what comes through a pipe cannot name a file", hint="type @FILE itself", kind="file")
    return text


def _tolerance(key: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise JacliError(f"--{key} is a number from 0 up, not {text}", hint=f"--{key} 1e-9", kind="option")
    return value


def text_of(command: Command, given: Given) -> str:
    """The expression: from the argument, ``--expr`` or ``--file``, exactly one of them."""
    sources = {
        "the argument": given["expression"],
        "--expr": given["expr"],
        "--file": given["file"],
    }
    chosen = [name for name, value in sources.items() if value is not None]
    if not chosen:
        raise JacliError("an expression is missing", hint=f"for example: {command.example}", kind="option")
    if len(chosen) > 1:
        raise JacliError(f"the expression is given twice, by {' and '.join(chosen)}", kind="option")
    value: str = sources[chosen[0]]
    return streams.read_text(value) if chosen == ["--file"] else value


def view_of(given: Given, formats: Mapping[str, Format] = FORMATS) -> View:
    """The options about the output, checked."""
    chosen = _format(given["format"], formats)
    output: str | None = None if given["output"] in (None, "-") else given["output"]
    on_terminal = output is None and streams.is_terminal(sys.stdout)
    if chosen.binary and on_terminal and not given["quiet"]:
        hint = f"send it to a file with --output FILE.{chosen.name}, or through a pipe"
        raise JacliError(f"{chosen.name} is not text, and standard output is a terminal", hint=hint, kind="option")
    options = Options(
        digits=_digits(given["digits"]),
        width=_terminal_width() if on_terminal else None,
        color=_color(given["color"], on_terminal=on_terminal),
    )
    view = View(chosen, options, output, bool(given["quiet"]))
    if options.digits is not None and not chosen.rounds:
        view.remark(f"--digits does not apply to {chosen.name}, which always has full precision")
    return view


def _format(asked: str | None, formats: Mapping[str, Format]) -> Format:
    setting = os.environ.get("JACLI_FORMAT") or DEFAULT
    name, origin = (setting, "JACLI_FORMAT") if asked is None else (asked, "--format")
    if name in formats:
        return formats[name]
    if asked is None and name in FORMATS:  # a setting meant for another command
        return formats[DEFAULT]
    raise JacliError(f"{origin} has no format {name}", hint=f"the formats are {', '.join(formats)}", kind="option")


def _digits(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 3 and 1 <= int(text) <= MOST_DIGITS):
        raise JacliError(f"--digits is a whole number from 1 to {MOST_DIGITS}, not {text}", kind="option")
    return int(text)


def _color(asked: str | None, *, on_terminal: bool) -> bool:
    """Colour is for terminals, unless it is asked for by name."""
    if asked not in (None, "auto", "always", "never"):
        raise JacliError(f"--color is auto, always or never, not {asked}", kind="option")
    if asked in ("always", "never"):
        return asked == "always"
    return on_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in (None, "", "dumb")


def _terminal_width() -> int:
    import shutil

    return max(20, shutil.get_terminal_size().columns)


@contextmanager
def opened(view: View) -> Iterator[Callable[[str | bytes], None]]:
    """Where the answer goes, opened now: the file of ``--output``, standard output, or nowhere."""
    if view.output is None:
        yield lambda answer: None if view.quiet else streams.write_output(_encoded(answer))
        return
    with closing(streams.OutputFile(view.output)) as file:
        yield lambda answer: file.write(_encoded(answer))


def _encoded(answer: str | bytes) -> bytes:
    return answer if isinstance(answer, bytes) else answer.encode("utf-8", "backslashreplace")
