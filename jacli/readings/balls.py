"""A tape at a point: every node's value as a rational, a multiple of pi or a ball, to any precision.

``Balls`` raises precision until a question is settled. A zero that no precision can settle is handed to
``zeros``; what stays open is reported as ``Unknown`` and never guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeGuard

from flint import arb, ctx, fmpq

from jacli.readings.exact import Angle, NoValueError, Number, Truth, UnsureError, ball, compute
from jacli.readings.tape import Op, Tape

#: Bits of precision that are tried in turn.
PRECISIONS = (128, 256, 512, 1024, 2048, 4096)

#: Further precisions for short programs: how many operations each is still worth.
FURTHER = {16384: 2000, 65536: 200}

#: What takes as long there as this many other operations.
_SLOW = frozenset(("gamma", "lgamma", "digamma", "polygamma"))
_AS_LONG = 200

#: From this precision on, a ball that still touches a special value is worth a proof.
_SUSPICIOUS = 512

#: Relative accuracy, in bits, that tells a ball's sign.
_SIGN = 8

#: Relative accuracy, in bits, of every number that is shown (20 digits need 67).
ACCURACY = 72


@dataclass(frozen=True, slots=True)
class Undefined:
    """No real value, because of what happens at ``node``."""

    node: int
    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """A question that the precision leaves open at ``node``: is node ``first`` equal to node or number ``other``?"""

    node: int
    first: int | None = None
    other: int | fmpq | None = None


Known = Number | Truth | Undefined | Unknown
_ZERO = fmpq(0)


@dataclass(slots=True)
class Facts:
    """What was proved beyond the reach of balls: nodes with an exact value, and pairs of equal nodes."""

    values: dict[int, fmpq] = field(default_factory=dict)
    equal: set[tuple[int, int]] = field(default_factory=set)


@dataclass(slots=True)
class Point:
    """Values of a tape's nodes at one precision."""

    tape: Tape
    precision: int
    facts: Facts
    values: dict[int, Known] = field(default_factory=dict)

    def evaluate(self, roots: Iterable[int]) -> None:
        """Find the values of ``roots`` and of all they need."""
        pending = self._pending(roots)
        if not pending:
            return
        bound = self.tape.bound
        variables = [node for node in pending if node in bound]
        with ctx.workprec(self.precision):
            for node in self._pending([bound[node] for node in variables]) if variables else ():
                self.values[node] = self._value(node)
            for node in pending:
                if node not in self.values:
                    self.values[node] = self._value(node)

    def _pending(self, roots: Iterable[int]) -> list[int]:
        values, ops = self.values, self.tape.ops
        stack = [root for root in roots if root not in values]
        seen = set(stack)
        while stack:
            for arg in ops[stack.pop()].args:
                if arg not in seen and arg not in values:
                    seen.add(arg)
                    stack.append(arg)
        return sorted(seen)

    def _value(self, node: int) -> Known:
        fact = self.facts.values.get(node)
        if fact is not None:
            return fact
        op, args, value = self.tape.ops[node]
        if op == "number":
            return exact(value)
        if op == "variable":
            return self.values[self.tape.bound[node]]
        if op == "select":
            return self._selected(node)
        given = [self.values[arg] for arg in args]
        missing = self._missing(op, given)
        return missing if missing is not None else self._computed(node, given)

    def _missing(self, op: str, given: list[Known]) -> Undefined | Unknown | None:
        """The first argument without a value, if that matters; ``given`` loses those that do not."""
        if all(type(v) is not Undefined and type(v) is not Unknown for v in given):
            return None
        if op in ("and", "or"):  # one False (True) decides, whatever the others are
            decisive = [v for v in given if type(v) is Truth and v.holds == (op == "or")]
            if decisive:
                given[:] = decisive
                return None
            given = [v for v in given if type(v) is Unknown] or given  # it may yet decide
        return next((v for v in given if type(v) is Undefined), None) or next(v for v in given if type(v) is Unknown)

    def _computed(self, node: int, given: Sequence[Any]) -> Known:
        op, args, value = self.tape.ops[node]
        try:
            found = compute(op, given, value)
            cancelled = op in ("add", "sub") and type(found) is arb and found.contains(0)
            return (self._complement(op, args) if cancelled else None) or found
        except NoValueError as error:
            return Undefined(node, str(error))
        except UnsureError as unsure:
            if unsure.first is None:
                return Unknown(node)
            first = args[unsure.first]
            if unsure.second is None:
                return Unknown(node, first, unsure.number)
            second = args[unsure.second]
            if first != second and (first, second) not in self.facts.equal:
                return Unknown(node, first, second)
            return given[0] if op in ("max", "min") else compute(op, (_ZERO, _ZERO))

    def _complement(self, op: str, args: tuple[int, ...]) -> arb | None:
        """A complement such as 1 + erf(u) by its own function: at u = -700 no precision could tell it from 0."""
        ops = self.tape.ops
        sign = 1 if op == "add" else -1
        for one, other, outer, inner in ((*args, 1, sign), (*args[::-1], sign, 1)):
            if ops[one] == _ONE:  # outer*(1 ± f(u))
                name, of, _ = ops[other]
                if name == "pow" and ops[of[0]].op == "tanh" and ops[of[1]] == _TWO:
                    name, of = "tanh**2", ops[of[0]].args
                if name in _COMPLEMENTS:
                    return outer * _COMPLEMENTS[name](ball(self.values[of[0]]), outer * inner)
        return None

    def _selected(self, node: int) -> Known:
        taken = branch(self.tape.ops[node].args, self.values.__getitem__)[1]
        if taken is None:
            return Undefined(node, "no case of the Piecewise holds here")
        return self.values[taken] if isinstance(taken, int) else taken


_ONE, _TWO = Op("number", (), 1), Op("number", (), 2)

#: 1 plus (or minus: the sign) a function of u, where that can be close to 0.
_COMPLEMENTS: dict[str, Callable[[arb, int], arb]] = {
    "erf": lambda u, sign: (-sign * u).erfc(),
    "erfc": lambda u, _: u.erf(),
    "tanh": lambda u, sign: 2 / (1 + (-2 * sign * u).exp()),
    "tanh**2": lambda u, _: 1 / u.cosh() ** 2,
}


def branch(
    args: tuple[int, ...], value: Callable[[int], Known]
) -> tuple[tuple[int, ...], int | Undefined | Unknown | None]:
    """The conditions that a ``select`` looks at, and the node they lead to, or why to none (None: no case holds)."""
    pairs = len(args) // 2
    for k in range(pairs):
        truth = value(args[2 * k])
        if type(truth) is not Truth:
            return args[: 2 * k + 1 : 2], truth  # type: ignore[return-value]
        if truth.holds:
            return args[: 2 * k + 1 : 2], args[2 * k + 1]
    return args[: 2 * pairs : 2], args[-1] if len(args) % 2 else None


def exact(value: int | Fraction) -> Number:
    """A literal as a number of this reading."""
    number = fmpq(value) if isinstance(value, int) else fmpq(value.numerator, value.denominator)
    return number if number.height_bits() <= _LONGEST_LITERAL else arb(number)


_LONGEST_LITERAL = 1 << 16


class Balls:
    """Values of a tape's nodes, at whatever precision they need."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.facts = Facts()
        self._points: dict[int, Point] = {}
        self._settled: dict[int, Known] = {}
        self._refused: set[tuple[int, int | fmpq]] = set()

    def point(self, precision: int = PRECISIONS[0]) -> Point:
        """The values at one precision (kept from call to call)."""
        found = self._points.get(precision)
        if found is None:
            found = self._points[precision] = Point(self.tape, precision, self.facts)
        return found

    def values(self, nodes: Sequence[int], accuracy: int = 0) -> list[Known]:
        """Each node's value, balls to ``accuracy`` bits relative to their size. Unknown only after every effort."""
        pending = list(nodes)
        for precision in (*PRECISIONS, *FURTHER):
            if precision in FURTHER and self._effort(pending) > FURTHER[precision]:
                break
            pending = self._try(pending, precision, accuracy)
            if not pending:
                break
        forgotten = [node for node in nodes if node not in self._settled]  # a proof came in between
        return self.values(nodes, accuracy) if forgotten else [self._settled[node] for node in nodes]

    def _effort(self, nodes: Sequence[int]) -> int:
        """How many operations it takes to compute these nodes at a high precision."""
        needed = self.tape.needed(nodes)
        return len(needed) + (_AS_LONG - 1) * sum(self.tape.ops[node].op in _SLOW for node in needed)

    def value(self, node: int, accuracy: int = 0) -> Known:
        """One node's value."""
        found = self._settled.get(node)
        if found is None:  # it may have been found on the way to another
            found = self.point().values.get(node)
            if is_accurate(found, accuracy):
                self._settled[node] = found
        return found if is_accurate(found, accuracy) else self.values((node,), accuracy)[0]

    @property
    def most_digits(self) -> int:
        """Decimal digits of the highest precision that was tried."""
        return int(max(self._points, default=PRECISIONS[0]) * math.log10(2))

    def sign(self, node: int) -> int | Undefined | Unknown:
        """-1, 0, 1, or why there is none."""
        value = self.value(node, _SIGN)
        if type(value) is fmpq:
            return (value > 0) - (value < 0)
        if type(value) is Angle:
            return 1 if value.turns > 0 else -1
        if type(value) is arb:
            return 1 if value > 0 else -1
        return value  # type: ignore[return-value]

    def _try(self, nodes: list[int], precision: int, accuracy: int) -> list[int]:
        """Settle what this precision can; the nodes that are still open."""
        settled = self._settled
        pending = [node for node in nodes if not is_accurate(settled.get(node), accuracy)]
        point = self.point(precision)
        point.evaluate(pending)
        settled.update((node, point.values[node]) for node in pending)
        pending = [node for node in pending if not is_accurate(settled[node], accuracy)]
        if precision < _SUSPICIOUS:
            return pending
        for node in pending:
            question = settled[node] = _question(node, settled[node])
            if self._prove(question):  # every value may now be known better
                self._points.clear()
                settled.clear()
                return []
        return pending

    def _prove(self, unknown: Unknown) -> bool:
        """Settle an open question by a proof. True when something new is known."""
        from jacli.readings.zeros import is_proved_zero

        if unknown.first is None or unknown.other is None or (unknown.first, unknown.other) in self._refused:
            return False
        first, other = unknown.first, unknown.other
        self._refused.add((first, other))  # unless it works out; and it is not asked again while at it
        right = self.tape.number(Fraction(int(other.p), int(other.q))) if isinstance(other, fmpq) else other
        difference = first if isinstance(other, fmpq) and not other else self.tape.add("sub", first, right)
        if not is_proved_zero(self, difference):
            return False
        self._refused.discard((first, other))
        if isinstance(other, fmpq):
            self.facts.values[first] = other
        else:
            self.facts.equal.add((first, other))
        return True


def is_accurate(value: Known | None, accuracy: int) -> TypeGuard[Known]:
    """Whether a value is known, a ball to ``accuracy`` bits relative to its size."""
    if type(value) is arb:
        return not accuracy or bool(value.rel_accuracy_bits() >= accuracy)
    return value is not None and type(value) is not Unknown


def _question(node: int, value: Known) -> Unknown:
    """What to prove about a node that precision does not settle."""
    if type(value) is Unknown:
        return value
    return Unknown(node, node, _ZERO) if type(value) is arb and value.contains(0) else Unknown(node)
