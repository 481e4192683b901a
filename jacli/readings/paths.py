"""The part of a tape that a result takes at the point, and the nodes where it may turn.

A node is *at a switching point* where an arbitrarily small move can change its form: a tie, a kink, a jump, the
edge of a domain. Elsewhere the result is smooth, and the table's derivative formulas hold on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

from flint import arb, fmpq

from jacli.readings import terms
from jacli.readings.balls import Balls, Undefined, Unknown, branch
from jacli.readings.exact import is_zero
from jacli.readings.tape import Tape


@dataclass(frozen=True, slots=True)
class Path:
    """What one result uses at the point.

    Attributes:
        nodes: every node that is looked at, in order.
        uses: for each, the arguments that its value is made of.
        turns: the nodes at a switching point, each with the arguments whose moves matter there.
        missing: those without a value.
    """

    nodes: tuple[int, ...]
    uses: dict[int, tuple[int, ...]]
    turns: dict[int, tuple[int, ...]]
    missing: tuple[int, ...]

    def touched(self, wrt: Collection[int], tape: Tape) -> set[int]:
        """The variables that reach a switching point: their derivatives need a closer look."""
        if not self.turns:
            return set()
        return set(wrt).intersection(tape.needed([arg for args in self.turns.values() for arg in args]))


class Step(NamedTuple):
    """One node at the point: what it looks at, the arguments its value is made of, and those that matter at a turn."""

    looked: tuple[int, ...]
    uses: tuple[int, ...]
    turning: tuple[int, ...] | None
    missing: bool


def path(balls: Balls, output: int, known: dict[int, Step] | None = None) -> Path:
    """The path that ``output`` takes at the point. ``known`` keeps what is found on the way for the next path."""
    balls.value(output)
    steps = {} if known is None else known
    stack = [output]
    seen = {output}
    while stack:
        node = stack.pop()
        if node not in steps:
            steps[node] = _step_at(balls, node)
        new = [arg for arg in steps[node].looked if arg not in seen]
        seen.update(new)
        stack.extend(new)
    nodes = tuple(sorted(seen))
    uses = {node: steps[node].uses for node in nodes}
    turns = {node: turning for node in nodes if (turning := steps[node].turning) is not None}
    return Path(nodes, uses, turns, tuple(node for node in nodes if steps[node].missing))


def _step_at(balls: Balls, node: int) -> Step:
    op, looked, _ = balls.tape.ops[node]
    uses = looked
    if op == "select":
        conditions, taken = branch(looked, balls.value)
        uses = (taken,) if type(taken) is int else ()
        looked = (*conditions, taken) if type(taken) is int else looked  # without a case, any could be meant
    elif op in ("max", "min"):
        uses = (_extreme(balls, op, looked),)
    value = balls.value(node)
    if type(value) is Undefined or type(value) is Unknown:
        return Step(looked, uses, looked, missing=True)
    return Step(looked, uses, _turning(balls, node, looked) or None, missing=False)


def _extreme(balls: Balls, op: str, args: tuple[int, ...]) -> int:
    """The argument that a maximum or minimum is, the first of equal ones."""
    first = balls.sign(terms.sub(balls.tape, *args))
    return args[1] if first == (-1 if op == "max" else 1) else args[0]


def _turning(balls: Balls, node: int, args: tuple[int, ...]) -> tuple[int, ...]:
    """The arguments whose moves change a node's form, where its value is known."""
    test = _TURNS.get(balls.tape.ops[node].op)
    return test(balls, args) if test is not None else ()


def _at(*numbers: int) -> Callable[[Balls, tuple[int, ...]], tuple[int, ...]]:
    """The function turns where its argument is one of these."""
    return lambda balls, args: args if balls.value(args[0]) in numbers else ()


def _step(balls: Balls, args: tuple[int, ...]) -> tuple[int, ...]:
    value = balls.value(args[0])
    return args if type(value) is fmpq and value.q == 1 else ()


def _tie(balls: Balls, args: tuple[int, ...]) -> tuple[int, ...]:
    a, b = map(balls.value, args)
    equal = args in balls.facts.equal or (type(a) is type(b) and type(a) is not arb and a == b)
    return args if equal and args[0] != args[1] else ()


def _cut(balls: Balls, args: tuple[int, ...]) -> tuple[int, ...]:
    return args if is_zero(balls.value(args[0])) and balls.sign(args[1]) == -1 else ()


def _power(balls: Balls, args: tuple[int, ...]) -> tuple[int, ...]:
    side = balls.sign(args[0])
    exponent = balls.value(args[1])
    if side == 1:
        return ()
    natural = type(exponent) is fmpq and exponent.q == 1 and exponent >= 0
    return args[1:] if natural or side == -1 else args


def _choice(balls: Balls, args: tuple[int, ...]) -> tuple[int, ...]:
    conditions, _ = branch(args, balls.value)
    return tuple(c for c in conditions if not balls.value(c).stable)  # type: ignore[union-attr]


_TURNS: dict[str, Callable[[Balls, tuple[int, ...]], tuple[int, ...]]] = {
    "abs": _at(0), "sign": _at(0), "sqrt": _at(0), "asin": _at(-1, 1), "acos": _at(-1, 1), "acosh": _at(1),
    "floor": _step, "ceil": _step, "max": _tie, "min": _tie, "atan2": _cut, "pow": _power, "select": _choice,
}  # fmt: skip
