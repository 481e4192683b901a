"""``jacli functions``: the table of functions, for reading and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jacli.cli import ALL_AGREE
from jacli.cli.request import opened, view_of
from jacli.render import FORMATS, Options
from jacli.text import width_of

if TYPE_CHECKING:
    from jacli.functions import Function

HEADER = ("function", "also", "meaning", "definition", "domain", "kinks")
NAMES = ("table", "plain", "json", "jsonl", "csv", "tsv", "markdown")

Rows = Sequence[tuple[str, ...]]


def list_functions(given: Mapping[str, Any]) -> int:
    """Write the table; the exit status."""
    view = view_of(given, {name: FORMATS[name] for name in NAMES})
    with opened(view) as write:
        from jacli.functions import TABLE

        write(_draw([_row(function) for function in TABLE], view.format.name, view.options))
    return ALL_AGREE


def _row(function: Function) -> tuple[str, ...]:
    also = ", ".join(function.aliases)
    return (function.signature, also, function.meaning, function.definition, function.domain, function.kinks)


def _draw(rows: Rows, name: str, options: Options) -> str:
    match name:
        case "table":
            return "".join(f"{line}\n" for line in _listing(rows, options))
        case "json" | "jsonl":
            return _documents(rows, one_document=name == "json")
        case "csv" | "tsv":
            from jacli.render.delimited import write_rows

            return write_rows([HEADER, *rows], "," if name == "csv" else "\t")
        case _:
            from jacli.render import markdown, plain
            from jacli.render.sections import Table

            table = Table("", HEADER, tuple(rows), words=frozenset(range(len(HEADER))))
            return markdown.draw_table(table) if name == "markdown" else plain.draw_table(table)


def _listing(rows: Rows, options: Options) -> Iterator[str]:
    """For reading: the function and its meaning on one line, then what else there is to know."""
    bold, normal = ("\x1b[1m", "\x1b[0m") if options.color else ("", "")
    column = max(width_of(row[0]) for row in rows) + 2
    yield "Names are read as typed; x and y may be any expressions. Operators: + - * / ** ^ @, and < <= > >= == !="
    yield "in conditions. pi and E are the constants unless they are given values."
    yield ""
    for signature, also, meaning, definition, domain, kinks in rows:
        yield f"{bold}{signature}{normal}{' ' * (column - width_of(signature))}{meaning}"
        more = {"= ": definition, "also ": also, "real where ": domain, "not differentiable: ": kinks}
        details = [label + text for label, text in more.items() if text]
        if details:
            yield " " * (column + 2) + "; ".join(details)


def _documents(rows: Rows, *, one_document: bool) -> str:
    from jacli.render.documents import dump
    from jacli.result import SCHEMA

    functions = [dump(dict(zip(HEADER, row, strict=True))) for row in rows]
    if not one_document:
        return "".join(f"{function}\n" for function in functions)
    listed = ",\n".join(f"    {function}" for function in functions)
    return f'{{\n  "schema": {dump(SCHEMA)},\n  "functions": [\n{listed}\n  ]\n}}\n'
