"""The prover: the exact derivative of a tape at its point, with a bound on every digit, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from jacli.errors import JacliError, Span
from jacli.readings import terms
from jacli.readings.adjoint import gradient
from jacli.readings.balls import ACCURACY, PRECISIONS, Balls, Known, Undefined, Unknown
from jacli.readings.decimals import decimal, nearest
from jacli.readings.exact import Truth
from jacli.readings.paths import Path, path
from jacli.readings.rounding import Effect, Rounding
from jacli.readings.tape import Tape

#: Decimal digits of the highest precision that is tried.
MOST_DIGITS = int(PRECISIONS[-1] * math.log10(2))


@dataclass(frozen=True, slots=True)
class Proof:
    """What is true of one number (a derivative or a value) at the point.

    Attributes:
        kind: ``smooth``, ``kink``, ``edge``, ``undefined`` or ``undecided``.
        exact: 20 significant digits, or all; None unless ``kind`` is smooth. "0" is proved.
        one_sided: the left and right slopes where they matter ("oo", "-oo"; None where that side is not real).
        reason: in words, why there is no plain number, or what happens at the switching point.
        place: the part of the text that is to blame.
        at_switch: the point is one where the program switches, and a float may follow either side.
        effect: what rounding does to the number in doubles.
    """

    kind: str
    exact: str | None = None
    one_sided: tuple[str | None, str | None] | None = None
    reason: str | None = None
    place: Span | None = None
    at_switch: bool = False
    effect: Effect = field(default_factory=Effect)

    @property
    def input_bound(self) -> float:
        """How far rounding the typed numbers to doubles moves the exact value, to first order."""
        return self.effect.inputs

    @property
    def operations_bound(self) -> float:
        """The same, for the rounding of every operation."""
        return self.effect.operations

    @property
    def worst(self) -> Span | None:
        """The operation that loses most, or that leaves the range of doubles."""
        return self.effect.worst

    @property
    def worst_source(self) -> str | None:
        """That operation, as typed."""
        return self.effect.source


ZERO = Proof("smooth", "0")


class Prover:
    """Proofs about one tape at its point. Work is shared between the results asked for."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.balls = Balls(tape)
        self.rounding = Rounding(self.balls)
        self._paths: dict[int, Path] = {}
        self._bound = len(tape.bound)

    def proves(self, tape: Tape) -> bool:
        """Whether it proves things about ``tape`` , bound as it is now."""
        return self.tape is tape and self._bound == len(tape.bound)

    # ---- what is asked

    def value(self, output: int) -> Proof:
        """The value of ``output`` itself."""
        return self.number(output, output)

    def gradient(self, output: int, wrt: Sequence[int]) -> list[Proof]:
        """The derivatives of ``output`` with respect to each variable node."""
        taken = self.path(output)
        depends = self.reaching(output, wrt)
        touched = taken.touched(depends, self.tape)
        smooth = gradient(self.balls, taken, output, depends - touched)
        self.balls.values(list(smooth.values()), ACCURACY)
        return [
            self.closely(output, {variable: self.tape.number(1)}) if variable in touched
            else self.number(smooth[variable], output) if variable in smooth
            else ZERO
            for variable in wrt
        ]  # fmt: skip

    def directional(self, output: int, tangent: Mapping[int, int]) -> Proof:
        """The derivative of ``output`` along a direction: a constant node for each variable node."""
        taken = self.path(output)
        along = {v: t for v, t in tangent.items() if v in self.reaching(output, tangent) and self.balls.sign(t) != 0}
        if not along:
            return ZERO
        if taken.touched(along, self.tape):
            return self.closely(output, along)
        return self.number(self._product(gradient(self.balls, taken, output, along), along), output)

    def hessian(self, output: int, wrt: Sequence[int]) -> list[list[Proof]]:
        """The second derivatives of ``output``."""
        return [self.hvp(output, wrt, {variable: self.tape.number(1)}) for variable in wrt]

    def hvp(self, output: int, wrt: Sequence[int], tangent: Mapping[int, int]) -> list[Proof]:
        """The second derivatives of ``output`` times a direction: derivatives of its derivative along it."""
        taken = self.path(output)
        slope = self._product(gradient(self.balls, taken, output, tangent), tangent)
        return self.gradient(slope, wrt)

    def _product(self, slopes: Mapping[int, int], tangent: Mapping[int, int]) -> int:
        total = self.tape.number(0)
        for variable, slope in slopes.items():
            total = terms.add(self.tape, total, terms.mul(self.tape, slope, tangent[variable]))
        return total

    # ---- steps

    def path(self, output: int) -> Path:
        """The path that ``output`` takes (kept from call to call)."""
        found = self._paths.get(output)
        if found is None:
            found = self._paths[output] = path(self.balls, output)
        return found

    def reaching(self, output: int, wrt: Collection[int]) -> set[int]:
        """The variables that the taken part of ``output`` looks at."""
        return set(wrt).intersection(self.path(output).nodes)

    def number(self, node: int, output: int) -> Proof:
        """The proof of a number that is smooth at the point: an output's value, or a derivative of ``output``."""
        value = self.balls.value(node, ACCURACY)
        if isinstance(value, (Undefined, Unknown)):
            return self.refusal(value)
        if isinstance(value, Truth):
            raise TypeError("a condition is no number")
        return Proof("smooth", decimal(value), effect=self.rounding.effect(node, self.path(output).nodes))

    def refusal(self, value: Undefined | Unknown) -> Proof:
        """Why there is no value."""
        place, source = self.tape.spans[value.node], self.tape.source(value.node)
        where = f" in {source}" if source else ""
        if isinstance(value, Undefined):
            return Proof("undefined", reason=f"{value.reason}{where}", place=place)
        return Proof("undecided", reason=f"undecided at {MOST_DIGITS} digits{where}", place=place)

    def closely(self, output: int, direction: Mapping[int, int]) -> Proof:
        """The derivative along a direction that touches a switching point, from both sides."""
        found = self.balls.value(output)
        if isinstance(found, (Undefined, Unknown)):
            return self.refusal(found)
        place = next(iter(self.path(output).turns))
        return Proof("undecided", reason=f"a switching point in {self.tape.source(place)}", place=self.tape.spans[place])


def double(tape: Tape, node: int) -> float:
    """The double nearest to a constant node.

    Raises:
        JacliError: when the constant is not a real number in the range of doubles.
    """
    op = tape.ops[node]
    if op.op == "number":
        return _in_range(_ratio(op.value), tape.source(node))
    balls = Balls(tape)
    value: Known = balls.value(node)
    if isinstance(value, (Undefined, Unknown)):
        reason = value.reason if isinstance(value, Undefined) else f"undecided at {MOST_DIGITS} digits"
        raise JacliError(f"this is not a real number: {reason}", tape.spans[node], kind="point")
    return _in_range(_rounded(balls, node), tape.source(node))


def _ratio(value: int | Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _rounded(balls: Balls, node: int) -> float:
    """Correctly rounded: more precision until both ends of the ball round to one double."""
    for accuracy in (ACCURACY, 4 * ACCURACY, 16 * ACCURACY):
        value = balls.value(node, accuracy)
        found = nearest(value) if not isinstance(value, (Undefined, Unknown, Truth)) else None
        if found is not None:
            return found
    return float(value.mid())  # type: ignore[union-attr]  # a tie that no precision breaks


def _in_range(value: float, source: str | None) -> float:
    if math.isinf(value):
        raise JacliError(f"{source or 'this number'} is beyond the range of doubles (about 1.8e308)", kind="point")
    return value
