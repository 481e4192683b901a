"""CSV and TSV in long form: one row an entry. A missing number is an empty field, never a zero."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jacli.findings import Claim
    from jacli.render.options import Options
    from jacli.result import Entry, Result

HEADER = (
    "quantity", "row", "column", "value", "symbolic", "exact", "status",
    "difference", "bound", "left_slope", "right_slope", "reason",
)  # fmt: skip


def render_csv(result: Result, _: Options) -> str:
    """Comma-separated values."""
    return write_rows(_rows(result), ",")


def render_tsv(result: Result, _: Options) -> str:
    """Tab-separated values."""
    return write_rows(_rows(result), "\t")


def write_rows(rows: Iterable[Sequence[object]], delimiter: str) -> str:
    """Rows as the csv module quotes them, with plain newlines."""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _rows(result: Result) -> Iterator[Sequence[object]]:
    yield HEADER
    for block in result.blocks:
        for row_name, row in zip(block.row_names, block.rows, strict=True):
            for column_name, entry in zip(block.column_names, row, strict=True):
                yield (block.key, row_name, column_name, *_fields(entry))
    if result.findings is not None and result.findings.claim is not None:
        yield from _claimed(result, result.findings.claim)


def _claimed(result: Result, claim: Claim) -> Iterator[Sequence[object]]:
    """A claim's entries: value and formula are what was claimed, the status is right or wrong."""
    block = result.block(claim.block)
    words = {True: "right", False: "wrong", None: "undecided"}
    for row_name, row, claims in zip(block.row_names, block.rows, claim.rows, strict=True):
        for column_name, true, entry in zip(block.column_names, row, claims, strict=True):
            label = ("claim", row_name, column_name)
            yield (*label, entry.value, entry.text, true.exact, words[entry.right], None, None, None, None, entry.slip)


def _fields(entry: Entry) -> Sequence[object]:
    left, right = entry.one_sided or (None, None)
    return (
        entry.value, entry.symbolic, entry.exact, entry.status,
        entry.difference, entry.bound, left, right, entry.reason,
    )  # fmt: skip
