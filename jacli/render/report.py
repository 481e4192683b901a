"""What a person wants to see of a result, as sections of text that know nothing of boxes, colours or Markdown.

``table``, ``plain`` and ``markdown`` each draw the same sections.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from jacli.findings import Claim, Witness
from jacli.render.backward import calls, intermediates
from jacli.render.check import WITNESSES, claim_table, witness_cells
from jacli.render.numbers import agreeing_digits, show, show_array, show_difference, show_exact, show_shape
from jacli.render.options import Options
from jacli.render.sections import TITLES, Facts, Notes, Section, Table, Verdict
from jacli.result import STATUSES, Block, Entry, Named, Result

#: A formula longer than this is not drawn: a footnote says its length and which format has it whole.
LONGEST_FORMULA = 400
#: A block with more entries than this is not drawn as a grid, nor are its entries that agree listed one by one.
LARGEST_BLOCK = 2000


@dataclass(slots=True)
class _Footnotes:
    """Collects footnotes; the same text twice gets the same mark."""

    marks: dict[str, str] = field(default_factory=dict)

    def mark(self, text: str) -> str:
        return self.marks.setdefault(text, f"[{len(self.marks) + 1}]")


def sections(result: Result, options: Options) -> list[Section]:
    """Everything that ``result`` holds, from the question to the verdict."""
    if result.large:
        from jacli.render import large

        return large.sections(result, options)  # type: ignore[arg-type]
    footnotes = _Footnotes()
    drawn: list[Section] = [_question(result, options), _values(result, options, footnotes)]
    drawn += [*calls(result, options), *intermediates(result, options)]
    for block in result.blocks:
        drawn += _block(result, block, options, footnotes)
    if result.findings is not None and result.findings.claim is not None:
        drawn.append(_claim(result, result.findings.claim, options, footnotes))
    notes = [(mark, text) for text, mark in footnotes.marks.items()] + [("", note) for note in result.notes]
    if notes:
        drawn.append(Notes(tuple(notes)))
    return [*drawn, _verdict(result)]


def _question(result: Result, options: Options) -> Facts:
    lines = [("variables", text) for text in _points(result.variables, options)]
    lines += [("held fixed", text) for text in _points(result.fixed, options)]
    if result.weights is not None:
        lines.append(("weights", _pairs(_entries(result.outputs), result.weights, options)))
    if result.tangent is not None:
        lines.append(("tangent", _pairs(_entries(result.variables), result.tangent, options)))
    return Facts(tuple(lines))


def _points(variables: Sequence[Named], options: Options) -> Iterator[str]:
    """In order: neighbouring scalars on one line, each array on a line of its own with its shape."""
    for is_array, group in groupby(variables, lambda v: bool(v.shape)):
        if is_array:
            for v in group:
                yield f"{v.name} = {show_array(v.values, v.shape, options.digits)}  (shape {show_shape(v.shape)})"
        else:
            yield ", ".join(f"{v.name} = {show(v.values[0], options.digits)}" for v in group)


def _entries(named: Sequence[Named]) -> list[str]:
    return [entry for item in named for entry in item.entries]


def _pairs(names: Sequence[str], values: Sequence[float], options: Options) -> str:
    return ", ".join(f"{name}: {show(value, options.digits)}" for name, value in zip(names, values, strict=True))


def _values(result: Result, options: Options, footnotes: _Footnotes) -> Table:
    rows = []
    for output in result.outputs:
        exact = output.exact or (None,) * len(output.entries)
        for index, (name, value) in enumerate(zip(output.entries, output.values, strict=True)):
            formula = _formula(output.read_as, footnotes) if index == 0 else ""
            rows.append((name, formula, show(value, options.digits), show_exact(exact[index], options.digits)))
    shapes = ", ".join(f"{o.name} has shape {show_shape(o.shape)}" for o in result.outputs if o.shape)
    return Table(
        "Outputs" + (f": {shapes}" if shapes else ""),
        ("output", "read as", "value", "exact"),
        tuple(rows),
        words=frozenset({0, 1}),
        formula=1,
    )


def _formula(text: str | None, footnotes: _Footnotes) -> str:
    if text is None or len(text) <= LONGEST_FORMULA:
        return text or ""
    mark = footnotes.mark("formulas too long to draw; --format json has them whole")
    return f"({len(text)} characters) {mark}"


def _block(result: Result, block: Block, options: Options, footnotes: _Footnotes) -> Iterator[Table]:
    large = len(block.statuses()) > LARGEST_BLOCK
    if not block.vector and not large:
        yield _grid(block, options)
    if block.key == "vjp" and result.shares and len(result.shares) * len(block.column_names) <= LARGEST_BLOCK:
        yield _shares(result, block, options)
    if block.key == "jacobian" and result.findings is not None:
        yield _heard(result, block, result.findings.witnesses, options, footnotes, only_remarkable=large)
    else:
        yield _details(result, block, options, footnotes, only_remarkable=large)


def _title(block: Block) -> str:
    return TITLES.get(block.key, block.key)


def _grid(block: Block, options: Options) -> Table:
    size = f"{len(block.row_names)} × {len(block.column_names)}"
    what = "rows and columns are variables" if block.key == "hessian" else "rows are outputs, columns are variables"
    rows = zip(block.row_names, block.rows, strict=True)
    return Table(
        f"{_title(block)}, {size}: {what}",
        ("", *block.column_names),
        tuple((name, *(show(entry.value, options.digits) for entry in row)) for name, row in rows),
    )


def _shares(result: Result, block: Block, options: Options) -> Table:
    """One line an output: its weight times its row; the last line is their sum."""

    def cells(values: Sequence[float]) -> tuple[str, ...]:
        return tuple(show(value, options.digits) for value in values)

    rows = [(share.output, show(share.weight, options.digits), *cells(share.values)) for share in result.shares]
    total = ("total", "", *cells([entry.value for entry in block.rows[0]]))
    return Table(
        f"{_title(block)}: what each output contributes",
        ("output", "weight", *block.column_names),
        (*rows, total),
        summary=1,
    )


def _details(
    result: Result, block: Block, options: Options, footnotes: _Footnotes, *, only_remarkable: bool = False
) -> Table:
    rows = [
        _detail(_label(result, block, row_name, column_name), entry, options, footnotes)
        for row_name, row in zip(block.row_names, block.rows, strict=True)
        for column_name, entry in zip(block.column_names, row, strict=True)
        if not only_remarkable or entry.status != "agree"
    ]
    return Table(
        _details_title(block, len(rows), only_remarkable=only_remarkable),
        ("entry", "formula", "torch", "exact", "off by ≈", "digits", "verdict"),
        tuple(rows),
        words=frozenset({0, 1, 6}),
        formula=1,
        verdict=6,
    )


def _details_title(block: Block, count: int, *, only_remarkable: bool) -> str:
    title = f"{_title(block)}, entry by entry"
    if only_remarkable:
        size = len(block.statuses())
        shown = f"the {count} of {size} that do not agree" if count else f"all {size} agree"
        title += f": {shown} (--format csv or json has all, --format npy the array)"
    return title


def _heard(
    result: Result,
    block: Block,
    witnesses: Sequence[Sequence[Witness]],
    options: Options,
    footnotes: _Footnotes,
    *,
    only_remarkable: bool,
) -> Table:
    """One line an entry, one column a witness."""
    rows = [
        (
            _label(result, block, row_name, column_name),
            _formula(entry.symbolic, footnotes) or "none",
            *witness_cells(witness, options),
            _status(entry, options, footnotes),
        )
        for row_name, row, said in zip(block.row_names, block.rows, witnesses, strict=True)
        for column_name, entry, witness in zip(block.column_names, row, said, strict=True)
        if not only_remarkable or entry.status != "agree"
    ]
    return Table(
        _details_title(block, len(rows), only_remarkable=only_remarkable),
        ("entry", "formula", *WITNESSES, "verdict"),
        tuple(rows),
        words=frozenset({0, 1, 9}),
        formula=1,
        verdict=9,
    )


def _claim(result: Result, claim: Claim, options: Options, footnotes: _Footnotes) -> Table:
    block = result.block(claim.block)
    return claim_table(
        claim,
        block,
        options,
        label=lambda row, column: _label(result, block, row, column),
        formula=lambda text: _formula(text, footnotes),
        mark=footnotes.mark,
    )


def _status(entry: Entry, options: Options, footnotes: _Footnotes) -> str:
    why = _explanation(entry, options)
    return f"{entry.status} {footnotes.mark(why)}" if why else entry.status


def _detail(label: str, entry: Entry, options: Options, footnotes: _Footnotes) -> tuple[str, ...]:
    return (
        label,
        _formula(entry.symbolic, footnotes) if entry.symbolic is not None else "none",
        show(entry.value, options.digits),
        show_exact(entry.exact, options.digits) or "none",
        show_difference(entry),
        agreeing_digits(entry),
        _status(entry, options, footnotes),
    )


def _label(result: Result, block: Block, row: str, column: str) -> str:
    if block.key in ("jacobian", "grad"):
        return f"∂{row}/∂{column}"
    if block.key == "hessian":
        of = _entries(result.outputs)[0] if result.outputs else ""
        return f"∂²{of}/∂{row}∂{column}"
    if block.key == "backward":
        name, bracket, index = column.partition("[")
        return f"{name}.grad{bracket}{index}"
    return f"{block.key} {column}"


def _explanation(entry: Entry, options: Options) -> str:
    parts = []
    if entry.one_sided is not None and (entry.status != "kink" or entry.reason is None):  # a kink's reason has them
        sides = (show_exact(side, options.digits) or "none" for side in entry.one_sided)
        parts.append("slope from the left {}, from the right {}".format(*sides))
    if entry.reason is not None:
        parts.append(entry.reason)
    return "; ".join(parts)


def _verdict(result: Result) -> Verdict:
    counts = Counter(status for block in result.blocks for status in block.statuses())
    found = ", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status])
    if result.findings is not None and result.findings.claim is not None:
        found = f"{_judged(result.findings.claim)}; {found}"
    tolerance = f"relative tolerance {result.rtol:g}" + (f", absolute {result.atol:g}" if result.atol else "")
    return Verdict(result.verdict, f"verdict: {result.verdict} ({found or 'no entries'}; {tolerance})")


def _judged(claim: Claim) -> str:
    """How many of the claim's entries are right, wrong and undecided."""
    counts = Counter(entry.right for row in claim.rows for entry in row)
    words = {True: "right", False: "wrong", None: "undecided"}
    return "claim: " + ", ".join(f"{counts[key]} {word}" for key, word in words.items() if counts[key])
