"""Boxes and colour for a person at a terminal, drawn by rich.

Nothing is ever cut: without a width the tables are as wide as they need to be; with one, a grid folds into blocks of
columns, a long formula wraps, and a list of entries that still does not fit becomes one record an entry.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from rich.box import SQUARE
from rich.console import Console, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from jacli.render.options import Options
from jacli.render.report import Facts, Notes, Section, Table, Verdict, sections
from jacli.result import Result
from jacli.text import width_of

STYLES = {
    "agree": "green",
    "rounding": "yellow",
    "kink": "magenta",
    "edge": "magenta",
    "undefined": "red",
    "disagree": "bold red",
}

#: A wrapped formula narrower than this is no longer read; records are better.
NARROWEST_FORMULA = 16
UNBOUNDED = 1_000_000


def render(result: Result, options: Options) -> str:
    """The sections, one after another, an empty line between them."""
    parts = [list(_draw(section, options.width)) for section in sections(result, options)]
    return draw(parts, options)


def draw(parts: Sequence[Sequence[RenderableType]], options: Options) -> str:
    """What rich makes of the parts, the same bytes whatever the environment says."""
    file = io.StringIO()
    console = Console(
        file=file,
        width=options.width or UNBOUNDED,
        color_system="standard" if options.color else None,
        force_terminal=options.color,
        force_jupyter=False,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
        _environ={},
    )
    for index, part in enumerate(parts):
        if index:
            console.print()
        for piece in part:
            console.print(piece, overflow="fold")
    return file.getvalue()


def _draw(section: Section, width: int | None) -> Iterator[RenderableType]:
    match section:
        case Facts(lines):
            yield from (_labelled(f"{label:<12}", text) for label, text in lines)
        case Notes(lines):
            yield from (_labelled(f"{mark} " if mark else "", text) for mark, text in lines)
        case Verdict(status, text):
            yield Text(text, style=STYLES[status])
        case Table():
            yield from draw_table(section, width)


def _labelled(label: str, text: str) -> Text:
    return Text.assemble((label, "dim"), text)


def draw_table(table: Table, width: int | None) -> Iterator[RenderableType]:
    """One box, or as many as the width asks for."""
    yield Text(table.title, style="bold")
    if not table.rows:
        return
    widths = [max(map(width_of, column)) for column in zip(table.header, *table.rows, strict=True)]
    if width is None or _box_width(widths) <= width:
        yield _box(table, range(len(widths)))
    elif table.formula is None:
        yield from (_box(table, columns) for columns in _blocks(widths, width))
    elif _box_width(widths) - widths[table.formula] + NARROWEST_FORMULA <= width:
        yield _box(table, range(len(widths)))  # rich wraps the formula: the only column allowed to
    else:
        yield from _records(table)


def _box_width(widths: Sequence[int]) -> int:
    return sum(widths) + 3 * len(widths) + 1


def _blocks(widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """Runs of columns that fit, each led by column 0; a column too wide on its own gets a block to itself."""
    block = [0]
    for column in range(1, len(widths)):
        if len(block) > 1 and _box_width([widths[i] for i in (*block, column)]) > width:
            yield block
            block = [0]
        block.append(column)
    yield block


def _box(table: Table, columns: Sequence[int]) -> RichTable:
    box = RichTable(box=SQUARE, show_edge=True)
    for index in columns:
        box.add_column(
            Text(table.header[index]),
            justify="left" if index in table.words else "right",
            no_wrap=table.formula is not None and index != table.formula,
            overflow="fold",
        )
    for number, row in enumerate(table.rows):
        last = number == len(table.rows) - 1
        if table.summary and last:
            box.add_section()
        box.add_row(*(_cell(table, row, index) for index in columns), style="bold" if table.summary and last else None)
    return box


def _cell(table: Table, row: Sequence[str], index: int) -> Text:
    return Text(row[index], style=STYLES[row[index].split()[0]] if index == table.verdict else "")


def _records(table: Table) -> Iterator[Text]:
    """One record an entry, one line a column."""
    label_width = max(map(width_of, table.header)) + 2
    for row in table.rows:
        yield Text(row[0], style="bold")
        for index in range(1, len(row)):
            if row[index]:
                yield Text.assemble(f"  {table.header[index]:<{label_width}}", _cell(table, row, index))
