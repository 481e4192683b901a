"""What rounding to floats does to a number, to first order: one reverse sweep over everything it is made of.

Each operation's result is off by at most half a unit in the last place (of doubles 2**-53 relative); its effect on the
number is that error times the number's derivative with respect to the operation. A ball wide enough to hold all
roundings would forgive far more, because it forgets that equal inputs carry equal errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from flint import arb, ctx, fmpq

from jacli.errors import Span
from jacli.readings.adjoint import derivative
from jacli.readings.balls import PRECISIONS, Balls, Unknown, branch, exact
from jacli.readings.exact import NoValueError, Number, UnsureError, ball, compute, is_zero
from jacli.readings.precision import DOUBLE, Precision
from jacli.readings.tape import PRIMITIVES, Tape

#: Bits for slopes that become doubles.
_PRECISION = 64

#: How far rounding may move a number, in units of its bound, before it explains nothing: library functions are good
#: to a few units in the last place, and add up in another order.
OPERATIONS_FACTOR = 16

#: A bound need not be known better than this, relative to itself or to the number it is about.
CLEAR = 0.01
NEGLIGIBLE = 1e-13

_LARGEST = DOUBLE.largest
_TYPED = frozenset(("number", "pi", "E"))


@dataclass(frozen=True, slots=True)
class Effect:
    """What rounding does to one number.

    Attributes:
        inputs: the effect of rounding typed numbers.
        operations: the effect of rounding every operation.
        worst: the place whose rounding matters most, or that leaves the range of the type.
        source: the characters there.
        leaves: ``overflow`` or ``underflow`` where an operation leaves the range of the type.
    """

    inputs: float = 0.0
    operations: float = 0.0
    worst: Span | None = None
    source: str | None = None
    leaves: str | None = None


class Part(NamedTuple):
    """One node's part: its own rounding, the same where it is typed, what factoring adds, derivatives by arguments."""

    error: float
    typed: float
    nearby: float
    slopes: list[tuple[int, float]]


_GRAVITY = (None, "underflow", "overflow")


class Rounding:
    """Effects of rounding on nodes of one tape, to numbers of one type. Bounds themselves are doubles."""

    def __init__(self, balls: Balls, precision: Precision = DOUBLE) -> None:
        self.balls = balls
        self.precision = precision
        self.tape: Tape = balls.tape
        self._floats: dict[int, float] = {}
        self._parts: dict[int, Part] = {}
        self._outside: dict[int, str] = {}  # nodes that leave the range of the type
        self._scanned = 0
        self._found: set[int] = set()
        self._factored = 0
        self._nearby: dict[int, float] = {}
        self._path: Sequence[int] = ()
        self._left: tuple[str | None, int | None] = (None, None)

    def effect(self, node: int, path: Sequence[int] = ()) -> Effect:
        """What rounding does to ``node``, which belongs to a result that takes ``path``."""
        self.notice()
        order = self.tape.needed((node,))
        inputs, operations, worst = self._swept(node, order) or self._swept_in_balls(node, order)
        leaves, out = self._leaving_path(path)
        if leaves != "overflow":
            leaves, out = max((leaves, out), self._leaving(order), key=lambda found: _GRAVITY.index(found[0]))
        worst = worst if out is None else out
        source = None if worst is None else self.tape.source(worst)
        if leaves and source and worst not in set(path):  # the typed operation itself may well be small
            source = f"the derivative of {source}"
        span = None if worst is None else self.tape.spans[worst]
        return Effect(min(inputs, _LARGEST), min(operations, _LARGEST), span, source, leaves)

    def moves(self, node: int) -> float:
        """How far a node's value may be from the truth; 0 where the type holds everything that it needs."""
        if not any(self._inexact(each) for each in self.tape.needed((node,))):
            return 0.0
        return OPERATIONS_FACTOR * self.effect(node).operations

    def _leaving_path(self, path: Sequence[int]) -> tuple[str | None, int | None]:
        """The same for a path, kept while results of one path are asked for."""
        if self._path is not path:
            for node in path:
                self.part(node)
            self._path, self._left = path, self._leaving(path)
        return self._left

    def leaves(self, nodes: Sequence[int]) -> bool:
        """Whether an operation among these leaves the range of the type."""
        for node in nodes:
            if node not in self._parts:
                self.part(node)
        return not self._outside.keys().isdisjoint(nodes)

    def _leaving(self, nodes: Sequence[int]) -> tuple[str | None, int | None]:
        """The first operation whose value is too large for the type, or else too small."""
        outside = [(self._outside[node], node) for node in nodes if node in self._outside] if self._outside else []
        large = [found for found in outside if found[0] == "overflow"]
        return next(iter(large or outside), (None, None))

    def _swept(self, node: int, order: Sequence[int]) -> tuple[float, float, int | None] | None:
        """The effect of typed numbers, that of all operations, and the worst; None where doubles cannot tell."""
        parts, weight, worst = self._parts, {node: 1.0}, (0, 0.0, -1)
        inputs = operations = 0.0
        typing = False
        for here in reversed(order):
            factor = weight.get(here)
            if factor is None:
                continue
            error, typed, nearby, slopes = parts.get(here) or self.part(here)
            for arg, slope in slopes:
                weight[arg] = weight.get(arg, 0.0) + factor * slope
            if error or nearby:
                share = error * abs(factor)
                operations += share + nearby * abs(factor)
                worst = max(worst, (self._kind(here), share, here)) if share else worst
            if typed:
                inputs += typed * abs(factor)
                typing = True
        if not math.isfinite(operations) or (typing and not self._is_clear(node, order, weight, inputs)):
            return None
        return inputs, operations, worst[2] if worst[1] else None

    def _is_clear(self, node: int, order: Sequence[int], weight: Mapping[int, float], inputs: float) -> bool:
        """Whether the weights, themselves rounded, are good enough to tell the effect of typed numbers."""
        doubt = {node: 0.0}  # how far they may be off, in units of rounding
        unclear = 0.0
        for here in reversed(order):
            off = doubt.get(here)
            if off is None:
                continue
            _, typed, _, slopes = self._parts[here]
            unclear += typed * off
            size = off + 3 * abs(weight[here])
            for arg, slope in slopes:
                doubt[arg] = doubt.get(arg, 0.0) + size * abs(slope)
        return unclear * DOUBLE.unit <= max(CLEAR * inputs, NEGLIGIBLE * abs(self._float(node)))

    def _kind(self, node: int) -> int:
        """A coordinate that is a double itself is to blame only where nothing else is."""
        return 0 if self.tape.ops[node].op == "variable" else 1

    def _swept_in_balls(self, node: int, order: Sequence[int]) -> tuple[float, float, int | None]:
        """The same where doubles overflow, underflow or cancel on the way."""
        shares: dict[int, arb] = {}
        inputs = operations = arb(0)
        for precision in PRECISIONS:
            point = self.balls.point(precision)
            point.evaluate((node,))
            with ctx.workprec(precision):
                shares, nearby = self._shares(node, order, point.values)
                inputs = sum((share for here, share in shares.items() if self._parts[here].typed), arb(0))
                operations = sum(shares.values(), nearby)
            room = NEGLIGIBLE * abs(self._float(node))
            if _known(inputs, CLEAR, room) and _known(operations, 1, room):
                break
        lossy = [(self._kind(here), _finite(share), here) for here, share in shares.items() if share != 0]
        return _finite(inputs), _finite(operations), max(lossy, default=(0, 0.0, None))[2]

    def _shares(self, node: int, order: Sequence[int], values: Mapping[int, Any]) -> tuple[dict[int, arb], arb]:
        """How far the rounding of each node moves ``node``, and what factoring matrices adds."""

        def known(node: int) -> Any:
            return self.balls.value(node) if isinstance(values[node], Unknown) else values[node]

        weight = {node: arb(1)}
        shares: dict[int, arb] = {}
        nearby = arb(0)
        for here in reversed(order):
            factor = weight.get(here)
            if factor is None:
                continue
            value = known(here)
            if isinstance(value, Number) and self._rounded(here):
                size = abs(ball(value)) + self._lost(here)
                shares[here] = (size * self.precision.unit + self.precision.smallest) * abs(factor)
            nearby += self._nearby.get(here, 0.0) * abs(factor)
            for arg, slope in self._exact_slopes(here, known):
                weight[arg] = weight.get(arg, arb(0)) + factor * ball(slope)
        return shares, nearby

    # ---- one node

    def _number(self, node: int) -> Number | None:
        value = self.balls.value(node)
        return value if isinstance(value, Number) else None

    def _float(self, node: int) -> float:
        found = self._floats.get(node)
        if found is None:
            value = self._number(node)
            found = self._floats[node] = 0.0 if value is None else clear(value)
        return found

    def _inexact(self, node: int) -> bool:
        value = self._number(node)
        return value is not None and not is_float(value, self.precision)

    def part(self, node: int) -> Part:
        """What a node adds to the effect on another."""
        found = self._parts.get(node)
        if found is None:
            size, held = abs(self._float(node)), self.precision
            error = max((size + self._lost(node)) * held.unit, held.smallest) if self._rounded(node) else 0.0
            typed = error if error and self._typed(node) else 0.0
            found = self._parts[node] = Part(error, typed, self._nearby.get(node, 0.0), self._slopes(node))
            if size > held.largest:
                self._outside[node] = "overflow"
            elif size < held.normal and not is_zero(self._number(node) or _ZERO):
                self._outside[node] = "underflow"
        return found

    def notice(self) -> None:
        """Look at what is new on the tape and changes how far nodes are off."""
        changed = {*self._absorbed(), *self._factoring()}
        for node in changed:
            self._parts.pop(node, None)

    def _factoring(self) -> set[int]:
        """Entries of matrices that are factored: libraries give the exact result of a matrix nearby.

        Nearby is a few units of rounding relative to the largest entry (Higham 2002, chapter 9).
        """
        changed: set[int] = set()
        for part in self.tape.factored[self._factored :]:
            size = max((abs(self._float(entry)) for entry in part.matrix), default=0.0)
            error = size * self.precision.unit * math.isqrt(len(part.matrix))
            self._nearby.update((entry, max(error, self._nearby.get(entry, 0.0))) for entry in part.matrix)
            changed.update(part.matrix)
        self._factored = len(self.tape.factored)
        return changed

    def _rounded(self, node: int) -> bool:
        """The type does not hold the value. A coordinate counts too: library code rounds what it makes of it."""
        value = self._number(node)
        return value is not None and (self.tape.ops[node].op == "variable" or not is_float(value, self.precision))

    def _lost(self, node: int) -> float:
        """What library code adds to a number on the way, and takes off again, where it computes slopes."""
        op, args, _ = self.tape.ops[node]
        if op == "besseli":  # the slope of order 1 is I0(x) - I1(x)/x in torch
            x = abs(self._float(args[0]))
            return (1 + abs(self._float(node))) / x if 0 < x < 1 else 0.0
        return 1.0 if node in self._found else 0.0

    def _absorbed(self) -> set[int]:
        """Exponentials that a 1 is added to or taken from, those found since the last time.

        expm1, sigmoid and the like are one operation in torch, which computes their slope from a result that has
        absorbed the 1: what it loses is relative to that.
        """
        ops = self.tape.ops
        new: set[int] = set()
        for op in ops[self._scanned :]:
            if op.op in ("add", "sub"):
                one, other = sorted(op.args, key=lambda arg: ops[arg].op == "exp")
                if ops[other].op == "exp" and ops[one].op == "number" and ops[one].value == 1:
                    new.add(other)
        self._scanned = len(ops)
        self._found |= new
        return new

    def _typed(self, node: int) -> bool:
        """A number as the user typed it, which is rounded before anything is computed (``1/3`` is an operation)."""
        op = self.tape.ops[node].op
        if op == "variable":
            return self._inexact(node)
        return op in _TYPED and self.tape.constant(node) not in self.tape.defined

    def _slopes(self, node: int) -> list[tuple[int, float]]:
        """The arguments that a node is made of, each with the node's derivative by it."""
        op, args, _ = self.tape.ops[node]
        if op == "mul":
            return [(args[0], self._float(args[1])), (args[1], self._float(args[0]))]
        with ctx.workprec(_PRECISION):
            return [(arg, clear(slope)) for arg, slope in self._exact_slopes(node, self.balls.value)]

    def _exact_slopes(self, node: int, known: Callable[[int], Any]) -> list[tuple[int, Number]]:
        op, args, value = self.tape.ops[node]
        if op == "select":
            taken = branch(args, known)[1]
            return [(taken, fmpq(1))] if isinstance(taken, int) else []
        given = [known(arg) for arg in args]
        if op in _CONDITIONS or not all(isinstance(v, Number) for v in given):
            return []
        return [(arg, _slope(op, position, given, value)) for position, arg in enumerate(args)]


class Loose(Rounding):
    """The same beyond first order: for floats that the first order does not explain, as it vanishes at an extremum.

    What an operation's curve adds to a node is counted as an error of the node itself. Where a matrix is factored,
    the results are off one by one, though all that they do to the number may cancel.
    """

    def __init__(self, balls: Balls, precision: Precision = DOUBLE) -> None:
        super().__init__(balls, precision)
        self._curved: set[int] = set()

    def bound(self, node: int, output: int) -> float:
        """How far rounding may move ``node``, a number about ``output``, in units of ``OPERATIONS_FACTOR``."""
        order = self.tape.needed((node,))
        if len(order) > _MOST_CURVES:
            return self._through(output)
        self.notice()
        for each in order:
            if each not in self._curved and self.tape.ops[each].op in _CURVED:
                self._curved.add(each)
                extra = self._curve(each)
                if extra:
                    self._nearby[each] = self._nearby.get(each, 0.0) + extra
                    self._parts.pop(each, None)
        return min(self.effect(node).operations + self._through(output), _LARGEST)

    def _curve(self, node: int) -> float:
        """How far beyond its slopes an operation may move when its arguments are as far off as they may be."""
        op, args, value = self.tape.ops[node]
        given = [self.balls.value(arg) for arg in args]
        moves = [self.moves(arg) for arg in args]
        if not any(moves) or not all(isinstance(v, Number) for v in given):
            return 0.0
        slopes = [abs(slope) * move for (_, slope), move in zip(self._slopes(node), moves, strict=False)]
        with ctx.workprec(PRECISIONS[0]):
            try:
                there = compute(op, [ball(v) + arb(0, m) for v, m in zip(given, moves, strict=True)], value)
            except (NoValueError, UnsureError):
                return 0.0
            here = self._number(node)
            far = _finite(abs(ball(there) - ball(here))) if here is not None else 0.0
        beyond = far - sum(slopes)
        return beyond / OPERATIONS_FACTOR if beyond > _BEYOND * far else 0.0

    def _through(self, output: int) -> float:
        """What factored matrices do to the derivatives of ``output``, as if nothing cancelled between their results."""
        order, unit = self.tape.needed((output,)), self.precision.unit
        total = 0.0
        for part in self.tape.factored:
            if set(part.results).isdisjoint(order) or len(order) * len(part.results) > _MOST_STEPS:
                continue
            size = 1 + max(abs(self._float(each)) for each in part.results)
            outside = self._weights(output, stop=set(part.results))
            for result in part.results:
                inside = self._weights(result, stop=set())
                steepest = max((abs(w) for each, w in inside.items() if each != result), default=0.0)
                total += abs(outside.get(result, 0.0)) * steepest * size * unit * len(part.matrix)
        return total if math.isfinite(total) else 0.0

    def _weights(self, root: int, stop: Collection[int]) -> dict[int, float]:
        """The derivative of ``root`` by every node above ``stop``, and by leaves."""
        weight = {root: 1.0}
        for here in reversed(self.tape.needed((root,))):
            factor = weight.get(here)
            if factor is not None and here not in stop:
                for arg, slope in self.part(here).slopes:
                    weight[arg] = weight.get(arg, 0.0) + factor * slope
        return {each: w for each, w in weight.items() if each in stop or not self.tape.ops[each].args}


#: Operations that are no straight line in their arguments.
_CURVED = frozenset(PRIMITIVES) - frozenset(
    "number variable pi E true false neg add sub abs sign floor ceil max min select".split()
    + "lt le gt ge eq ne and or not".split()
)

#: Nodes, and steps, up to which rounding is looked at beyond first order.
_MOST_CURVES = 2000
_MOST_STEPS = 1_000_000

#: A curve adds nothing while it is this small a part of the whole.
_BEYOND = 1e-6


_CONDITIONS = frozenset(("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"))
_ONE, _ZERO = fmpq(1), fmpq(0)
_LINEAR = {"add": (_ONE, _ONE), "sub": (_ONE, -_ONE), "neg": (-_ONE,)}


def _slope(op: str, position: int, given: Sequence[Any], value: tuple[int, ...] | None) -> Number:
    """The derivative of one operation, 0 where it has none, nan where more precision must tell."""
    if op in _LINEAR:
        return _LINEAR[op][position]
    try:
        if op in ("max", "min"):
            first = compute("ge" if op == "max" else "le", given)
            return _ONE if first.holds == (position == 0) else _ZERO  # type: ignore[union-attr]
        return _evaluated(*_formula(op, position, value), given)
    except NoValueError:
        return _ZERO
    except UnsureError:
        return arb.nan()


@cache
def _formula(op: str, position: int, value: tuple[int, ...] | None) -> tuple[Tape, int]:
    """The derivative of an operation as a small tape whose first nodes are the arguments."""
    tape = Tape()
    args = tuple(tape.add("variable", value=k) for k in range(PRIMITIVES[op] or 0))
    if op == "mul":
        return tape, args[1 - position]
    if op == "div":
        a, b = args
        top = tape.number(1) if position == 0 else tape.add("neg", tape.add("div", a, b))
        return tape, tape.add("div", top, b)
    return tape, derivative(tape, op, position, args, value)


def _evaluated(tape: Tape, root: int, given: Sequence[Any]) -> Number:
    values: list[Any] = list(given)
    for op, args, value in tape.ops[len(given) :]:
        values.append(exact(value) if op == "number" else compute(op, [values[arg] for arg in args], value))
    return values[root]  # type: ignore[no-any-return]


def is_float(value: Number, precision: Precision) -> bool:
    """Whether a float holds the number exactly."""
    return type(value) is fmpq and precision.holds(int(value.p), int(value.q))


def clear(number: Number) -> float:
    """A number as a double, or nan where its ball is too wide (the argument is large: more precision must tell)."""
    if type(number) is fmpq:
        return as_float(number)
    value = ball(number)
    return as_float(value) if value.rel_accuracy_bits() >= _SURE or value.rad() < _SMALL else math.nan


_SURE, _SMALL = 16, 1e-30


def _known(bound: arb, relative: float, absolute: float) -> bool:
    return bool(bound.is_finite() and bound.rad() <= relative * abs(bound.mid()) + absolute)


def as_float(value: Number) -> float:
    """The number to double precision; infinite when too large."""
    return float(ball(value).mid())


def _finite(value: arb) -> float:
    """A bound as a double, the largest one when it is larger; an unknown one forgives nothing."""
    return min(float(value.upper()), _LARGEST) if value.is_finite() else 0.0
