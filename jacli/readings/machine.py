"""A tape run on columns: every operation once, on all points at a time, in float64.

The machine has a second gait. ``nudged`` multiplies each rounded result by ``1 ± 2**-30``: a rounding error enlarged
2**23 times, whose effect is large enough to be seen. Digits that cancel in one gait are lost in the other. It is an
observation and not a bound, so what looks suspicious is left to the prover.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from jacli.functions import ROWS
from jacli.readings.floats import torch
from jacli.readings.tape import Op, Tape

#: The relative size of a nudge, and how much larger that is than the rounding of a double.
NUDGE = 2.0**-30
ENLARGED = 2.0**23

_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
_CONSTANTS = {"pi": math.pi, "E": math.e, "true": True, "false": False}

#: Operations without a rounding error of their own.
_EXACT = frozenset("neg abs sign floor ceil max min select lt le gt ge eq ne and or not".split())


class Step(NamedTuple):
    """One operation: where its arguments are, where its result goes, and which registers are free then."""

    function: Callable[..., Any]
    args: tuple[int, ...]
    result: int
    frees: tuple[int, ...]
    nudge: float


class Machine:
    """The nodes ``roots`` of a tape as functions of columns.

    Args:
        tape: the program.
        roots: what to compute.
        columns: for each variable's entry name, the number of its column.
        device: where the columns are.
    """

    def __init__(self, tape: Tape, roots: Sequence[int], columns: Mapping[str, int], device: str = "cpu") -> None:
        self._device = device
        self._roots = tuple(roots)
        self._size = len(tape.ops)
        self._constants: dict[int, float | bool] = {}
        self._inputs: list[tuple[int, int]] = []
        self._steps: list[Step] = []
        order = tape.needed(roots)
        last = {arg: node for node in order for arg in tape.ops[node].args} | dict.fromkeys(roots, -1)
        for node in order:
            op = tape.ops[node]
            if op.op == "variable":
                self._inputs.append((node, columns[op.value]))
            elif all(arg in self._constants for arg in op.args):
                self._constants[node] = self._constant(op)
            else:
                frees = {arg for arg in op.args if last[arg] == node and arg not in self._constants}
                self._steps.append(Step(self._function(op), op.args, node, tuple(frees), _nudge(op, node)))

    def __call__(self, columns: Sequence[Any], *, nudged: bool = False) -> list[Any]:
        """The roots' values, each a column, or a plain number where it does not depend on the point."""
        registers: list[Any] = [None] * self._size
        for node, constant in self._constants.items():
            registers[node] = constant
        for node, column in self._inputs:
            registers[node] = columns[column]
        for function, args, result, frees, nudge in self._steps:
            value = function(*[registers[arg] for arg in args])
            registers[result] = value.mul_(nudge) if nudged and nudge != 1.0 else value
            for node in frees:  # a small working set stays in the processor's cache
                registers[node] = None
        return [registers[root] for root in self._roots]

    def _constant(self, op: Op) -> float | bool:
        """A number as Python's own float: the fastest thing to multiply a column with."""
        if op.op == "number":
            return _double(op.value)
        if op.op in _CONSTANTS:
            return _CONSTANTS[op.op]
        result: float | bool = _plain(op)(*(self._tensor(arg) for arg in op.args)).item()
        return result

    def _tensor(self, node: int) -> Any:
        t, value = torch(), self._constants[node]
        return t.tensor(value, dtype=t.bool if isinstance(value, bool) else t.float64, device=self._device)

    def _function(self, op: Op) -> Callable[..., Any]:
        function = _plain(op)
        if op.op == "pow" and op.args[1] in self._constants:
            exponent = float(self._constants[op.args[1]])
            power = int(exponent) if exponent.is_integer() and abs(exponent) < 2**31 else exponent
            return lambda base, _: base**power
        if op.op in _OPERATORS:
            return function
        fixed = {i: self._tensor(arg) for i, arg in enumerate(op.args) if arg in self._constants}
        return (lambda *args: function(*(fixed.get(i, arg) for i, arg in enumerate(args)))) if fixed else function


def _nudge(op: Op, node: int) -> float:
    """Up or down, by a hash, so that errors neither all add up nor all cancel."""
    return 1.0 if op.op in _EXACT else 1.0 + (NUDGE if node * 2654435761 >> 16 & 1 else -NUDGE)


def _double(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _plain(op: Op) -> Callable[..., Any]:
    """The operation as a function of tensors."""
    t = torch()
    if op.op in _OPERATORS:
        return _OPERATORS[op.op]
    if op.op == "select":
        return lambda *args: _select(t, args)
    if op.op == "besseli":
        return lambda x: _besseli(t, x, abs(op.value[0]))
    row, integers = ROWS[op.op], op.value or ()
    return lambda *args: row.torch(t, *args, *integers)


def _select(t: Any, args: Sequence[Any]) -> Any:
    """The first value whose condition holds; not a number where none does."""
    otherwise = args[-1] if len(args) % 2 else t.tensor(t.nan, dtype=t.float64, device=args[0].device)
    for condition, value in reversed(list(zip(args[0::2], args[1::2], strict=False))):
        otherwise = t.where(condition, value, otherwise)
    return otherwise


def _besseli(t: Any, x: Any, order: int) -> Any:
    """Modified Bessel functions by their recurrence (DLMF 10.29.1)."""
    before, now = t.special.i0(x), t.special.i1(x)
    for n in range(1, order):
        before, now = now, before - 2 * n / x * now
    return now if order else before
