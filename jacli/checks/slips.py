"""The mistake that a wrong entry looks like.

Every slip is a question of one form: what would the true derivative have to be for the claim to be right? Formulas are
asked at several points, and a slip must explain all of them; of a number there is one point, so it is a likely slip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction

from jacli.checks.claims import Written
from jacli.checks.places import Place

Numbers = Sequence[Sequence[Decimal | None]]

_CONTEXT = Context(prec=50, Emax=MAX_EMAX, Emin=MIN_EMIN)

#: Simple factors, in the order in which they are suspected.
_FACTORS = tuple(
    dict.fromkeys(
        [Fraction(n) for n in range(2, 7)]
        + [Fraction(1, n) for n in range(2, 7)]
        + [Fraction(p, q) for p in range(2, 6) for q in range(2, 6)]
    )
)

#: Largest matrix, in entries, whose rows and columns are tried in other orders.
_MOST_ENTRIES = 2_500

#: More names than this are not listed in a sentence.
_MOST_NAMES = 8


@dataclass(frozen=True, slots=True)
class View:
    """A claim and the truth at one place."""

    place: Place
    claimed: Numbers
    true: Numbers


@dataclass(frozen=True, slots=True)
class Matching:
    """When a claimed number is taken for a true one."""

    rtol: float
    atol: float

    def fits(self, written: Written, claimed: Decimal | None, true: Decimal | None, slack: float = 0.0) -> bool:
        """Within the tolerance, or rounded to the digits typed."""
        return self.close(claimed, true, slack) or self.rounded(written, claimed, true)

    def close(self, claimed: Decimal | None, true: Decimal | None, slack: float = 0.0) -> bool:
        """Within the tolerance, or ``slack``."""
        if claimed is None or true is None:
            return claimed is None and true is None
        allowed = _CONTEXT.add(_CONTEXT.multiply(Decimal(self.rtol), true.copy_abs()), Decimal(self.atol))
        return _off(claimed, true) <= max(allowed, Decimal(slack))

    def rounded(self, written: Written, claimed: Decimal | None, true: Decimal | None) -> bool:
        """Whether a decimal is the true number rounded to the digits typed."""
        if claimed is None or true is None or written.quantum is None or not claimed:
            return False
        return _off(claimed, true) <= written.quantum / 2


def _off(a: Decimal, b: Decimal) -> Decimal:
    return _CONTEXT.subtract(a, b).copy_abs()


@dataclass(frozen=True, slots=True)
class Slips:
    """What looks for slips.

    Attributes:
        rows: the claim's entries.
        views: the claim beside the truth, at the point first.
        matching: when two numbers are the same.
        names: the rows' and the columns' names.
        label: what an entry is called, ``∂f0/∂x``.
        inner: for each row, the parts of the expression that it is made of, with their text.
        outputs: the nodes whose values may have been taken for derivatives, with their names.
    """

    rows: Sequence[Sequence[Written]]
    views: Sequence[View]
    matching: Matching
    names: tuple[Sequence[str], Sequence[str]]
    label: Callable[[int, int], str]
    inner: Sequence[Mapping[int, str]]
    outputs: Mapping[int, str]

    # ---- the whole matrix

    def arrangement(self) -> str | None:
        """The right entries in the wrong places: transposed, or rows or columns in another order."""
        height, width = len(self.rows), len(self.rows[0])
        if height * width > _MOST_ENTRIES or not self._complete():
            return None
        places = range(height)
        if height == width and all(self._mirrored(i, j) for i in places for j in places):
            return "transposed: rows are outputs, columns are variables"
        return self._reordered(0) or self._reordered(1)

    def _mirrored(self, i: int, j: int) -> bool:
        return self._explains(i, j, [view.true[j][i] for view in self.views])

    def _complete(self) -> bool:
        return all(number is not None for view in self.views for row in (*view.true, *view.claimed) for number in row)

    def _reordered(self, axis: int) -> str | None:
        """Rows (axis 0) or columns (axis 1) that are right, but in another order."""
        count, other = (len(self.rows), len(self.rows[0]))[:: 1 if axis == 0 else -1]
        order: list[int] = []
        for k in range(count):
            fitting = [
                m for m in sorted(range(count), key=lambda m: (m != k, m))
                if m not in order and all(self._line_fits(axis, k, m, n) for n in range(other))
            ]  # fmt: skip
            if not fitting:
                return None
            order.append(fitting[0])
        moved = [k for k in range(count) if order[k] != k]
        if not moved:
            return None
        what, names = ("rows", "columns")[axis], self.names[axis]
        if len(moved) == 2:
            swapped = f"{what} {names[moved[0]]} and {names[moved[1]]} are swapped"
            return f"{swapped}: the order is {', '.join(names)}" if count <= _MOST_NAMES else swapped
        if count > _MOST_NAMES:
            return f"{len(moved)} {what} are in another order, the first of them {names[moved[0]]}"
        return f"the {what} are in the order {', '.join(names[m] for m in order)}, not {', '.join(names)}"

    def _line_fits(self, axis: int, claimed: int, true: int, n: int) -> bool:
        if axis == 0:
            return self._explains(claimed, n, [view.true[true][n] for view in self.views])
        return self._explains(n, claimed, [view.true[n][true] for view in self.views])

    # ---- one entry

    def of(self, i: int, j: int) -> str | None:
        """The slip that explains the entry in row ``i`` and column ``j`` at every place, or None."""
        if any(view.true[i][j] is None or not view.claimed[i][j] for view in self.views):
            return None
        return next(self._candidates(i, j), None)

    def _candidates(self, i: int, j: int) -> Iterator[str]:
        yield from self._chain(i, j)
        if self._explains(i, j, self._scaled(i, j, Fraction(-1))):
            yield "the sign is flipped"
        for factor in _FACTORS:
            for sign in (1, -1):
                if self._explains(i, j, self._scaled(i, j, sign * factor)):
                    yield _factor_words(factor) + (", and the sign is flipped" if sign < 0 else "")
        yield from self._elsewhere(i, j)

    def _scaled(self, i: int, j: int, factor: Fraction) -> list[Decimal | None]:
        return [_times(view.true[i][j], factor) for view in self.views]

    def _chain(self, i: int, j: int) -> Iterator[str]:
        """A factor that the chain rule asks for, and the claim has not, or has twice."""
        true = [view.true[i][j] for view in self.views]
        for node, source in self.inner[i].items():
            slopes = [view.place.number(view.place.gradient(node)[j]) for view in self.views]
            if not all(slopes) or all(slope == 1 for slope in slopes):
                continue
            constant = len(set(slopes)) == 1
            which = f" ({slopes[0]})" if constant and _short(slopes[0]) else ""
            if self._explains(i, j, list(map(_over, true, slopes))):
                yield f"the chain rule's factor is missing: the derivative of the inner {source}{which}"
            elif not constant and self._explains(i, j, list(map(_product, true, slopes))):
                yield f"the derivative of the inner {source} is there twice"

    def _elsewhere(self, i: int, j: int) -> Iterator[str]:
        """Another entry, or the output itself, in the place of this one."""
        if all(_short(view.claimed[i][j]) for view in self.views):
            return  # a small whole number is many things
        found = [
            self.label(k, m)
            for k in range(len(self.rows))
            for m in range(len(self.rows[0]))
            if self._explains(i, j, [view.true[k][m] for view in self.views])
        ]
        if len(found) == 1:
            yield f"this is {found[0]}"
        for node, name in self.outputs.items():
            if self._explains(i, j, [view.place.number(node) for view in self.views]):
                yield f"this is {name} itself, not its derivative"

    def _explains(self, i: int, j: int, would: Sequence[Decimal | None]) -> bool:
        """Whether the entry would be right at every place if the truth were another number, one a view.

        A single digit is rounded from too many numbers to tell a slip.
        """
        written = self.rows[i][j]
        same = self.matching.fits if written.digits > 1 else lambda _, claimed, true: self.matching.close(claimed, true)
        return all(
            number is not None and same(written, view.claimed[i][j], number)
            for view, number in zip(self.views, would, strict=True)
        )


def _short(number: Decimal | None) -> bool:
    return number is not None and number.adjusted() < 1 and number == number.to_integral_value()


def _times(number: Decimal | None, factor: Fraction) -> Decimal | None:
    if number is None:
        return None
    return _CONTEXT.divide(_CONTEXT.multiply(number, Decimal(factor.numerator)), Decimal(factor.denominator))


def _over(number: Decimal | None, divisor: Decimal | None) -> Decimal | None:
    return _CONTEXT.divide(number, divisor) if number is not None and divisor else None


def _product(number: Decimal | None, factor: Decimal | None) -> Decimal | None:
    return _CONTEXT.multiply(number, factor) if number is not None and factor is not None else None


def _factor_words(factor: Fraction) -> str:
    if factor.denominator == 1:
        return f"a factor of {factor} too much"
    if factor.numerator == 1:
        return f"a factor of {factor.denominator} is missing"
    return f"{factor} of the true value"
