"""What ``check`` adds to a report: a column for every witness, and the judgement of a claim."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal

from jacli.findings import Claim, Claimed, Witness
from jacli.render.numbers import round_far, show, show_exact
from jacli.render.options import Options
from jacli.render.sections import Table
from jacli.result import Block

#: The columns between an entry's formula and its verdict.
WITNESSES = ("reverse", "forward", "SymPy", "proved", "differences", "error ≈", "step")

#: SymPy's value is shown to as many digits as the proved one beside it.
_DIGITS = 20

_VERDICTS = {True: "right", False: "wrong", None: "undecided"}


def witness_cells(witness: Witness, options: Options) -> tuple[str, ...]:
    """What each witness says, in the order of ``WITNESSES``; "none" where it cannot say anything."""
    return (
        show(witness.reverse, options.digits),
        _float(witness.forward, options),
        _sympy(witness.sympy, options),
        show_exact(witness.proved, options.digits) or "none",
        _float(witness.difference, options),
        "" if witness.error is None else f"{witness.error:.1e}",
        "" if witness.step is None else f"2^{math.frexp(witness.step)[1] - 1}",
    )


def _float(value: float | None, options: Options) -> str:
    return "none" if value is None else show(value, options.digits)


def _sympy(value: str | None, options: Options) -> str:
    if value is None or value == "nan":
        return value or "none"
    if options.digits is not None:
        return show_exact(value, options.digits)
    far = round_far(value, _DIGITS)
    if far is not None:
        return far.lower()
    number = Context(prec=_DIGITS).plus(Decimal(value)).normalize()
    return f"{number:f}" if -7 <= number.adjusted() <= _DIGITS else str(number).lower()


def claim_table(
    claim: Claim,
    block: Block,
    options: Options,
    label: Callable[[str, str], str],
    formula: Callable[[str | None], str],
    mark: Callable[[str], str],
) -> Table:
    """The claim entry by entry, the true derivative beside it.

    Args:
        claim: what was claimed.
        block: the entries it is about.
        options: how to write numbers.
        label: an entry's name from its row's and its column's.
        formula: a formula as a cell.
        mark: a footnote's mark.
    """

    def verdict(entry: Claimed) -> str:
        word = _VERDICTS[entry.right]
        return f"{word} {mark(entry.slip)}" if entry.slip else word

    rows = [
        (
            label(row_name, column_name),
            formula(claimed.text),
            show_exact(claimed.value, options.digits) or "none",
            formula(true.symbolic) or "none",
            show_exact(true.exact, options.digits) or "none",
            verdict(claimed),
        )
        for row_name, row, claims in zip(block.row_names, block.rows, claim.rows, strict=True)
        for column_name, true, claimed in zip(block.column_names, row, claims, strict=True)
    ]
    tried = f", tried at {claim.made} other point{'s' * (claim.made != 1)}" if claim.formulas else ", numbers"
    return Table(
        f"Claim{tried}",
        ("entry", "claimed", "its value", "formula", "exact", "verdict"),
        tuple(rows),
        words=frozenset({0, 1, 3, 5}),
        formula=3,
        verdict=5,
    )
