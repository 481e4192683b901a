"""A family's formula made ready to compute: for torch as typed, and as a tape with derivatives as nodes.

The derivatives on the tape come from the table's formulas by the chain rule. torch's own differentiation plays no
part in them: they are what autograd's floats are compared with, for all rows at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jacli.errors import JacliError
from jacli.functions import ROWS
from jacli.language.syntax import Program
from jacli.readings import floats, terms
from jacli.readings.adjoint import link
from jacli.readings.lowering import Lowered, TooLarge, lower
from jacli.readings.tape import Tape
from jacli.sparse.family import Family, Mask

#: Longest formula of one row, in single operations.
MOST_OPERATIONS = 200_000

_DIVIDE = "write a long sum as sum({… for i in …}), whose terms are rows"

_OF_ARRAYS = frozenset(("array", "index", "matmul"))


@dataclass(eq=False)
class Plan:
    """One formula, and what is known about it whatever the rows."""

    formula: Program

    @cached_property
    def _lowered(self) -> Lowered:
        try:
            return lower(self.formula, dict.fromkeys(self.formula.variables, ()), MOST_OPERATIONS)
        except TooLarge:
            raise JacliError(
                f"one row of a large program has at most {MOST_OPERATIONS:,} operations", None, _DIVIDE, kind="limit"
            ) from None

    @property
    def tape(self) -> Tape:
        """The formula in single operations, its definitions written out."""
        return self._lowered.tape

    @property
    def root(self) -> int:
        """The formula's node on the tape."""
        return self._lowered.outputs[0][0]

    def refuse_absurd(self) -> None:
        """Raises JacliError for constants that are far beyond doubles, before anything computes them."""
        from jacli.verify import refuse_absurd

        refuse_absurd(self.tape, [self.root])

    @cached_property
    def slots(self) -> dict[str, int]:
        """The slots' nodes on the tape."""
        return {name: nodes[0] for name, nodes in self._lowered.variables.items()}

    @cached_property
    def as_typed(self) -> tuple[Sequence[floats.Operation], int]:
        """What torch evaluates: the program, or the tape where arrays inside a row would mix with the rows."""
        program = self.formula
        arrays = any(
            node.op in _OF_ARRAYS
            or (node.op in ROWS and ROWS[node.op].kind == "array")
            or _one_extreme(node.op, node.args)
            for node in program.nodes
        )
        return (self.tape.ops, self.root) if arrays else (program.nodes, program.outputs[0])

    @cached_property
    def choices(self) -> list[int]:
        """The nodes that choose between cases, arguments before those that use them."""
        return [node for node in self.tape.needed([self.root]) if self.tape.ops[node].op == "select"]

    def derivatives(self, of: int, by: Sequence[str], taken: Mapping[int, int | None]) -> dict[str, int]:
        """Nodes of the derivatives of a node by slots, where each choice goes the way ``taken`` says.

        Slots that the node does not depend on are left out.
        """
        tape = self.tape
        wanted = {self.slots[slot]: slot for slot in by}
        order = _path(tape, of, taken)
        depends = _dependents(tape, order, wanted, taken)
        bars = {of: tape.number(1)} if of in depends else {}
        for node in reversed(order):
            if node not in bars or node not in depends:
                continue
            for position, arg in _uses(tape, node, taken):
                if arg in depends:
                    share = _share(tape, node, position, arg, bars[node])
                    bars[arg] = terms.add(tape, bars[arg], share) if arg in bars else share
        return {slot: bars[node] for node, slot in wanted.items() if node in bars}


def _one_extreme(op: str, args: Sequence[int]) -> bool:
    return op in ("max", "min") and len(args) == 1


def _uses(tape: Tape, node: int, taken: Mapping[int, int | None]) -> list[tuple[int, int]]:
    """The arguments that a node's value is made of, with their positions."""
    op = tape.ops[node]
    if op.op == "select":
        chosen = taken.get(node)
        return [] if chosen is None else [(0, chosen)]
    return list(enumerate(op.args))


def _path(tape: Tape, root: int, taken: Mapping[int, int | None]) -> list[int]:
    """The nodes that a value is made of, in order."""
    seen = {root}
    stack = [root]
    while stack:
        for _, arg in _uses(tape, stack.pop(), taken):
            if arg not in seen:
                seen.add(arg)
                stack.append(arg)
    return sorted(seen)


def _dependents(tape: Tape, order: Sequence[int], wanted: Collection[int], taken: Mapping[int, int | None]) -> set[int]:
    depends = set(wanted)
    for node in order:
        if any(arg in depends for _, arg in _uses(tape, node, taken)):
            depends.add(node)
    return depends


def _share(tape: Tape, node: int, position: int, arg: int, bar: int) -> int:
    """``bar`` times the derivative of ``node`` by one argument."""
    op, args, _ = tape.ops[node]
    if op == "select":
        return bar
    if op in ("max", "min"):
        other = args[1 - position]
        wins = tape.add("gt" if op == "max" else "lt", arg, other)
        return tape.add("select", wins, bar, tape.number(0))
    if op == "pow" and position == 0:
        return terms.mul(tape, bar, _power_slope(tape, *args))
    return link(tape, node, position).written(tape, bar)


def _power_slope(tape: Tape, base: int, exponent: int) -> int:
    """The derivative of ``base**exponent`` by its base; of low whole powers without a negative power of zero."""
    n = terms.number(tape, exponent)
    if n in (0, 1):
        return tape.number(n)
    below = tape.number(n - 1) if n is not None else tape.add("sub", exponent, tape.number(1))
    power = base if n == 2 else tape.add("pow", base, below)
    return terms.mul(tape, exponent, power)


# ---- rows that go the same way


@dataclass(frozen=True, eq=False)
class Part:
    """The rows of a family that take the same way through every choice.

    Attributes:
        family: these rows.
        plan: the formula.
        taken: for each choice, the node it leads to, or None where no case holds.
    """

    family: Family
    plan: Plan
    taken: Mapping[int, int | None]


def parts(family: Family, plan: Plan, point: np.ndarray[Any, Any]) -> Iterator[Part]:
    """Split a family until every choice is taken by all its rows: only the branch taken is ever computed."""
    yield from _split(family, plan, point, {})


def _split(family: Family, plan: Plan, point: np.ndarray[Any, Any], taken: dict[int, int | None]) -> Iterator[Part]:
    choice = next((node for node in plan.choices if node not in taken), None)
    if choice is None:
        yield Part(family, plan, taken)
        return
    args = plan.tape.ops[choice].args
    left = np.ones(len(family), bool)
    slots = tensors(family, point)
    for condition, value in floats.branches(plan.tape.ops[choice]):
        holds = left if condition is None else left & _holds(plan, condition, slots, len(family))
        if holds.any():
            yield from _split(family.take(holds), plan, point, {**taken, choice: value})
        left = left & ~holds
        if not left.any():
            return
    if len(args) % 2 == 0:
        yield from _split(family.take(left), plan, point, {**taken, choice: None})


def _holds(plan: Plan, condition: int, slots: Mapping[str, Any], rows: int) -> Mask:
    value = floats.evaluate(plan.tape.ops, [condition], slots)[condition]
    holds: Mask = value.expand(rows).numpy()
    return holds


def tensors(family: Family, point: np.ndarray[Any, Any], *, leaves: bool = False) -> dict[str, Any]:
    """A float64 tensor of shape (rows,) for each slot; those of variables require gradients where asked for."""
    t = floats.torch()
    slots = {slot: t.from_numpy(point[columns]) for slot, columns in family.columns.items()}
    if leaves:
        for tensor in slots.values():
            tensor.requires_grad_()
    return slots | {slot: t.from_numpy(numbers.doubles) for slot, numbers in family.numbers.items()}
