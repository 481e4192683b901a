"""A tape run on columns: every operation once, on all points at a time, in float64.

Results go into registers that are used again as soon as nothing needs them: what is worked on stays in the processor's
cache. Conditions are numbers too, 1 where they hold and 0 elsewhere.

The machine has a second gait. ``nudged`` multiplies each rounded result by a number around ``1 ± 2**-30``: a rounding
error enlarged 2**23 times, whose effect is large enough to be seen. Digits that cancel in one gait are lost in the
other. It is an observation and not a bound, so what looks suspicious is left to the prover.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from jacli.functions import ROWS
from jacli.readings.floats import torch
from jacli.readings.tape import Op, Tape

#: The relative size of a nudge, and how much larger that is than the rounding of a double.
NUDGE = 2.0**-30
ENLARGED = 2.0**23

#: Operations that torch writes into a given tensor, and its names for them.
INTO = {
    name: name
    for name in (
        "add sub mul div neg pow lt le gt ge eq ne abs sign floor ceil sqrt exp expm1 log log1p log2 log10 sin cos tan"
        " asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc lgamma digamma hypot"
    ).split()
} | {"max": "maximum", "min": "minimum", "and": "logical_and", "or": "logical_or", "not": "logical_not"}

_CONSTANTS = {"pi": math.pi, "E": math.e, "true": 1.0, "false": 0.0}

#: Operations without a rounding error of their own.
_EXACT = frozenset("neg abs sign floor ceil max min select lt le gt ge eq ne and or not".split())

#: Numbers between two registers: rows a power of two apart would share few lines of the cache.
_GAP = 8


def block(count: int, shape: Sequence[int], device: Any = "cpu") -> Any:
    """An uninitialised float64 tensor (count, *shape) whose rows lie a little further apart than they must."""
    t, size = torch(), math.prod(shape)
    rows = t.empty((count, size + _GAP), dtype=t.float64, device=device)
    inner = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return rows.as_strided((count, *shape), (size + _GAP, *inner))


class Step(NamedTuple):
    """One operation: it writes into its last argument, ``function(*args, out=…)``. All are places in one table."""

    function: Callable[..., Any]
    args: tuple[int, ...]
    result: int
    nudge: Any


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
        self._count = len(roots)
        order = tape.needed(roots)
        variables = [node for node in order if tape.ops[node].op == "variable"]
        constants = self._folded(tape, order)
        computed = [node for node in order if node not in constants and tape.ops[node].op != "variable"]
        self._constants = [self._tensor(value) for value in constants.values()]
        self._columns = [columns[tape.ops[node].value] for node in variables]
        places = {node: place for place, node in enumerate([*constants, *variables])}
        rows = range(len(places), len(places) + len(roots))
        places |= {root: row for row, root in reversed([*zip(rows, roots, strict=True)]) if root not in places}
        self._copied = [(k, places[root]) for k, root in enumerate(roots) if places[root] != rows[k]]
        self._registers = _allot(tape, computed, places, rows.stop)
        self._steps = self._compiled(tape, computed, places, constants)

    def __call__(self, columns: Any, *, nudged: bool = False) -> Any:
        """The roots' values: a tensor (roots, *shape of a column).

        Args:
            columns: one tensor a variable, all of one shape; or the rows of one tensor.
            nudged: run in the second gait.
        """
        shape = columns[0].shape if len(columns) else columns.shape[1:]
        results = block(self._count, shape, self._device)
        rows = results.unbind(0)
        registers = block(self._registers, shape, self._device).unbind(0)
        table = [*self._constants, *(columns[column] for column in self._columns), *rows, *registers]
        for function, args, result, nudge in self._steps:
            value = function(*[table[arg] for arg in args], out=table[result])
            if nudged and nudge is not None:
                value.mul_(nudge)
        for k, place in self._copied:
            rows[k].copy_(table[place])
        return results

    def _compiled(
        self, tape: Tape, computed: Sequence[int], places: Mapping[int, int], constants: Mapping[int, float]
    ) -> list[Step]:
        t = torch()
        steps = []
        for node in computed:
            op = tape.ops[node]
            args, function = op.args, _into(t, op)
            if op.op == "pow" and args[1] in constants:
                args, function = args[:1], _power(t, constants[args[1]])
            nudge = None if op.op in _EXACT else self._tensor(1 + NUDGE * _share(node))
            steps.append(Step(function, tuple(places[arg] for arg in args), places[node], nudge))
        return steps

    def _folded(self, tape: Tape, order: Sequence[int]) -> dict[int, float]:
        """The nodes that no variable has a part in."""
        values: dict[int, float] = {}
        for node in order:
            op = tape.ops[node]
            if op.op == "number":
                values[node] = _double(op.value)
            elif op.op in _CONSTANTS:
                values[node] = _CONSTANTS[op.op]
            elif op.op != "variable" and all(arg in values for arg in op.args):
                args = (self._tensor(values[arg]) for arg in op.args)
                values[node] = float(_into(torch(), op)(*args, out=self._tensor(0.0)))
        return values

    def _tensor(self, value: float) -> Any:
        """A number as torch multiplies a column with it fastest."""
        t = torch()
        return t.tensor(value, dtype=t.float64, device=self._device)


def _allot(tape: Tape, computed: Sequence[int], places: dict[int, int], first: int) -> int:
    """Give a register to each node that has no place, until its last use; how many there are.

    Args:
        tape: the program.
        computed: its nodes, each after its arguments.
        places: where nodes are; those of registers are added.
        first: the place of the first register.
    """
    last = {arg: node for node in computed for arg in tape.ops[node].args}
    free: list[int] = []
    beyond = first
    for node in computed:
        args = set(tape.ops[node].args)
        free += [places[arg] for arg in args if last[arg] == node and places[arg] >= first]
        if node not in places:
            places[node] = free.pop() if free else beyond
            beyond = max(beyond, places[node] + 1)
    return beyond - first


def _share(node: int) -> float:
    """Which part of the nudge an operation gets, by a hash: one to two times as much, up or down.

    Nudges of one size would cancel in a difference whose two sides were nudged equally often.
    """
    mixed = (node + 1) * 2654435761 % 2**32
    size = 1 + (mixed & 0xFFFF) / 2**16
    return size if mixed >> 16 & 1 else -size


def _double(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _power(t: Any, exponent: float) -> Callable[..., Any]:
    """``x**n`` with a number as exponent."""
    power = int(exponent) if exponent.is_integer() and abs(exponent) < 2**31 else exponent
    return lambda base, out: t.pow(base, power, out=out)


def _into(t: Any, op: Op) -> Callable[..., Any]:
    """The operation as a function of tensors that writes into ``out``, and returns it."""
    if op.op in INTO and len(op.args) <= 2:
        function: Callable[..., Any] = getattr(t, INTO[op.op])
        return function
    if op.op == "select":
        return lambda *args, out: out.copy_(_select(t, args))
    if op.op == "besseli":
        return lambda x, out: out.copy_(_besseli(t, x, abs(op.value[0])))
    row, integers = ROWS[op.op], op.value or ()
    return lambda *args, out: out.copy_(row.torch(t, *args, *integers))


def _select(t: Any, args: Sequence[Any]) -> Any:
    """The first value whose condition holds; not a number where none does."""
    otherwise = args[-1] if len(args) % 2 else t.tensor(t.nan, dtype=t.float64, device=args[0].device)
    for condition, value in reversed(list(zip(args[0::2], args[1::2], strict=False))):
        otherwise = t.where(condition != 0, value, otherwise)
    return otherwise


def _besseli(t: Any, x: Any, order: int) -> Any:
    """Modified Bessel functions by their recurrence (DLMF 10.29.1)."""
    before, now = t.special.i0(x), t.special.i1(x)
    for n in range(1, order):
        before, now = now, before - 2 * n / x * now
    return now if order else before
