"""Aligned columns of ASCII marks, no boxes, no colour, never folded: for awk, grep and eyes alike."""

from __future__ import annotations

from collections.abc import Sequence

from jacli.render.options import Options
from jacli.render.report import sections
from jacli.render.sections import Facts, Notes, Section, Table
from jacli.result import Result
from jacli.text import width_of

#: The marks that this package draws itself; names and formulas are the user's own and stay as they are.
ASCII = str.maketrans({"∂": "d", "²": "2", "×": "x", "·": "*", "≈": "~", "±": "+-"})


def render(result: Result, options: Options) -> str:
    """The report's sections."""
    return compose(sections(result, options), options)


def compose(report: Sequence[Section], _: Options) -> str:
    """The sections, one after another, an empty line between them."""
    return "\n".join(_draw(section).translate(ASCII) for section in report)


def _draw(section: Section) -> str:
    match section:
        case Facts(lines):
            return "".join(f"{label:<12}{text}\n" for label, text in lines)
        case Table():
            return draw_table(section)
        case Notes(lines):
            return "".join(f"{mark} {text}".strip() + "\n" for mark, text in lines)
        case _:
            return section.text + "\n"


def draw_table(table: Table) -> str:
    """Title, header and rows; two spaces between columns; an absent cell is a dash, so that columns can be counted."""
    if not table.rows:
        return f"{table.title}\n"
    grid = [[cell or "-" for cell in line] for line in (table.header, *table.rows)]
    widths = [max(map(width_of, column)) for column in zip(*grid, strict=True)]
    lines = [
        "  ".join(
            _pad(cell, width, left=index in table.words)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in grid
    ]
    return "\n".join([*([table.title] if table.title else []), *lines]) + "\n"


def _pad(cell: str, width: int, *, left: bool) -> str:
    space = " " * (width - width_of(cell))
    return cell + space if left else space + cell
