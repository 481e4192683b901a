"""Boxes and colour for a person at a terminal, drawn by rich.

Nothing is ever cut: without a width the tables are as wide as they need to be; with one, a table folds into blocks of
columns, a long formula wraps, and where not even one column fits beside the first, each row becomes a record.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from rich.box import SQUARE
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from jacli.render.options import Options
from jacli.render.report import sections
from jacli.render.sections import Facts, Notes, Section, Table, Verdict
from jacli.result import Result
from jacli.text import width_of

STYLES = {
    "agree": "green",
    "rounding": "yellow",
    "kink": "magenta",
    "edge": "magenta",
    "undefined": "red",
    "disagree": "bold red",
    "right": "green",
    "wrong": "bold red",
    "undecided": "yellow",
    "unchecked": "",
}

#: A formula is wrapped no narrower than this.
NARROWEST_FORMULA = 24
UNBOUNDED = 1_000_000


def render(result: Result, options: Options) -> str:
    """The report's sections."""
    return compose(sections(result, options), options)


def compose(report: Sequence[Section], options: Options) -> str:
    """The sections, one after another, an empty line between them."""
    return draw([list(_draw(section, options.width)) for section in report], options)


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
            yield from (_labelled(f"{label:<12}", text, width) for label, text in lines)
        case Notes(lines):
            yield from (_labelled(f"{mark} " if mark else "", text, None) for mark, text in lines)
        case Verdict(status, text):
            yield Text(text, style=STYLES[status])
        case Table():
            yield from draw_table(section, width)


def _labelled(label: str, text: str, width: int | None) -> Text:
    """``text`` after its label; with a width, broken after commas, for ``x1 = 2.0`` is read as one."""
    lines = [""]
    for part in text.split(", "):
        if lines[-1] and width is not None and width_of(f"{label}{lines[-1]}, {part},") > width:
            lines[-1] += ","
            lines.append(part)
        else:
            lines[-1] += f", {part}" if lines[-1] else part
    return Text.assemble((label, "dim"), ("\n" + " " * len(label)).join(lines))


def draw_table(table: Table, width: int | None) -> Iterator[RenderableType]:
    """One box, or as many as the width asks for."""
    yield Text(table.title, style="bold")
    if not table.rows:
        return
    widths = [max(map(width_of, column)) for column in zip(table.header, *table.rows, strict=True)]
    if width is None:
        yield _box(table, range(len(widths)), widths)
        return
    if table.formula is not None:  # the only column that rich is allowed to wrap
        widths[table.formula] = min(widths[table.formula], max(NARROWEST_FORMULA, width // 2))
    if all(_box_width([widths[0], other]) <= width for other in widths[1:]):
        yield from (_box(table, columns, _widened(table, columns, widths, width)) for columns in _blocks(widths, width))
    else:
        yield from _records(table)


def _box_width(widths: Sequence[int]) -> int:
    return sum(widths) + 3 * len(widths) + 1


def _blocks(widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """Runs of columns that fit, each led by column 0."""
    block = [0]
    for column in range(1, len(widths)):
        if len(block) > 1 and _box_width([widths[i] for i in (*block, column)]) > width:
            yield block
            block = [0]
        block.append(column)
    yield block


def _widened(table: Table, columns: Sequence[int], widths: Sequence[int], width: int) -> Sequence[int]:
    """A formula may have the room that the others leave."""
    if table.formula not in columns or table.formula is None:
        return widths
    room = width - _box_width([widths[i] for i in columns if i != table.formula]) - 3
    whole = max(width_of(row[table.formula]) for row in (table.header, *table.rows))
    return [*widths[: table.formula], min(whole, room), *widths[table.formula + 1 :]]


def _box(table: Table, columns: Sequence[int], widths: Sequence[int]) -> RichTable:
    """A table of rich's. It gets cells of their full width: to measure and to pad them costs rich most of its time."""
    box = RichTable(box=SQUARE, padding=0)
    for index in columns:
        header = _padded(Text(table.header[index]), widths[index], left=index in table.words)
        box.add_column(header, no_wrap=index != table.formula, overflow="fold", width=widths[index] + 2)
    for number, row in enumerate(table.rows):
        if table.summary and number == len(table.rows) - table.summary:
            box.add_section()
        summary = number >= len(table.rows) - table.summary
        cells = (_padded(_cell(table, row, i), widths[i], left=i in table.words) for i in columns)
        box.add_row(*cells, style="bold" if summary else None)
    return box


def _cell(table: Table, row: Sequence[str], index: int) -> Text:
    return Text(row[index], style=STYLES[row[index].split()[0]] if index == table.verdict else "")


def _padded(cell: Text, width: int, *, left: bool) -> RenderableType:
    """The cell with a blank on each side; a formula that is too long is for rich to wrap."""
    blanks = width - cell.cell_len
    if blanks < 0:
        return Padding(cell, (0, 1))
    before, after = (1, 1 + blanks) if left else (1 + blanks, 1)
    return Text.assemble(" " * before, cell, " " * after)


def _records(table: Table) -> Iterator[Text]:
    """One record an entry, one line a column."""
    label_width = max(map(width_of, table.header)) + 2
    for row in table.rows:
        yield Text(row[0], style="bold")
        for index in range(1, len(row)):
            if row[index]:
                yield Text.assemble(f"  {table.header[index]:<{label_width}}", _cell(table, row, index))
