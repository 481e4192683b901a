"""A second reverse pass over a program of arrays, in doubles, that shares no rule with autograd.

It serves programs too long to be written out in single numbers: their entries cannot be proved one by one, but every
one of them can be compared with this reading. Functions of numbers are differentiated by the table's formulas, the
array operations by the rules below (Giles, Collected Matrix Derivative Results, 2008).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from jacli.functions import ROWS
from jacli.language.syntax import Node, Program
from jacli.readings import floats
from jacli.readings.derive import gradient
from jacli.readings.lowering import call
from jacli.readings.machine import Machine
from jacli.readings.tape import Tape


class NoRule(Exception):
    """The program has an operation that this reading cannot differentiate."""


def vjp(program: Program, variables: Mapping[str, Any], cotangents: Sequence[Any]) -> dict[str, Any]:
    """``Σ cotangent · ∂output/∂variable`` for every variable.

    Args:
        program: the program; shapes must have been checked.
        variables: a float64 tensor a variable.
        cotangents: a tensor an output, in its shape.

    Raises:
        NoRule: where an operation has no rule here.
    """
    t = floats.torch()
    with t.no_grad():
        values = floats.evaluate(program.nodes, program.outputs, variables)
        bars: dict[int, Any] = {}
        for output, cotangent in zip(program.outputs, cotangents, strict=True):
            _accumulate(bars, output, cotangent)
        for index in range(len(program.nodes) - 1, -1, -1):
            node = program.nodes[index]
            if index in bars and node.op == "select":
                raise NoRule("a choice between branches")
            if index in bars and node.op == "select":
                raise NoRule("a choice between branches")
            if index in bars and node.args:
                args = [values[arg] for arg in node.args]
                for arg, bar in zip(node.args, _pulled(node, bars[index], values[index], args), strict=True):
                    _accumulate(bars, arg, _unbroadcast(bar, values[arg].shape))
        zero = t.zeros((), dtype=t.float64)
        return {
            name: bars.get(program.variables[name], zero).expand(tensor.shape) if name in program.variables else zero
            for name, tensor in variables.items()
        }


def _accumulate(bars: dict[int, Any], node: int, bar: Any) -> None:
    bars[node] = bars[node] + bar if node in bars else bar


def _unbroadcast(bar: Any, shape: Sequence[int]) -> Any:
    """Add up what was copied when an argument was broadcast."""
    for _ in range(bar.ndim - len(shape)):
        bar = bar.sum(0)
    for axis, size in enumerate(shape):
        if size == 1 and bar.shape[axis] != 1:
            bar = bar.sum(axis, keepdim=True)
    return bar


def _pulled(node: Node, bar: Any, value: Any, args: Sequence[Any]) -> Sequence[Any]:
    """The cotangents of a node's arguments."""
    rule = _RULES.get(node.op)
    if rule is not None:
        return rule(bar, value, *args, *(node.value or ()))
    row = ROWS.get(node.op)
    if row is None or row.kind != "elementwise" or (node.op in ("max", "min") and len(args) == 1):
        raise NoRule(node.op)
    partials = _machine(node.op, len(args), node.value or ())([arg.expand(bar.shape) for arg in args])
    return [bar * partial for partial in partials]


@cache
def _machine(op: str, count: int, integers: tuple[int, ...]) -> Machine:
    """The partial derivatives of a function of numbers, by the table's formulas, on columns."""
    tape = Tape()
    variables = [tape.add("variable", value=str(i)) for i in range(count)]
    output = call(tape, op, tuple(variables), integers)
    return Machine(tape, gradient(tape, output, variables), {str(i): i for i in range(count)})


# ---- rules of the array operations: (cotangent, value, *arguments, *constant integers) → the arguments' cotangents


def _matmul(bar: Any, _: Any, a: Any, b: Any) -> Sequence[Any]:
    if a.ndim == 1 and b.ndim == 1:
        return bar * b, bar * a
    if a.ndim == 1:
        return (b @ bar.unsqueeze(-1)).squeeze(-1), a.unsqueeze(-1) * bar.unsqueeze(-2)
    if b.ndim == 1:
        return bar.unsqueeze(-1) * b, (a.transpose(-1, -2) @ bar.unsqueeze(-1)).squeeze(-1)
    return bar @ b.transpose(-1, -2), a.transpose(-1, -2) @ bar


def _index(bar: Any, _: Any, a: Any, *items: int | slice) -> Sequence[Any]:
    whole = a.new_zeros(a.shape)
    whole[items] = bar
    return (whole,)


def _sum(bar: Any, _: Any, a: Any, axis: int | None = None) -> Sequence[Any]:
    return ((bar if axis is None else bar.unsqueeze(axis)).expand(a.shape),)


def _mean(bar: Any, _: Any, a: Any, axis: int | None = None) -> Sequence[Any]:
    return _sum(bar / (a.numel() if axis is None else a.shape[axis]), _, a, axis)


def _norm(bar: Any, value: Any, a: Any, axis: int | None = None) -> Sequence[Any]:
    return (_sum(bar / value, value, a, axis)[0] * a,)


def _concat(bar: Any, _: Any, *arrays: Any) -> Sequence[Any]:
    return tuple(bar.split([array.shape[0] for array in arrays]))


def _trace(bar: Any, _: Any, a: Any) -> Sequence[Any]:
    return (bar * floats.torch().eye(a.shape[0], dtype=a.dtype),)


def _inverse(bar: Any, value: Any, _: Any) -> Sequence[Any]:
    return (-value.T @ bar @ value.T,)


def _softmax(bar: Any, value: Any, _: Any, axis: int | None = None) -> Sequence[Any]:
    share = bar * value
    return (share - value * (share.sum() if axis is None else share.sum(axis, keepdim=True)),)


_RULES: dict[str, Callable[..., Sequence[Any]]] = {
    "add": lambda bar, value, a, b: (bar, bar),
    "sub": lambda bar, value, a, b: (bar, -bar),
    "mul": lambda bar, value, a, b: (bar * b, bar * a),
    "div": lambda bar, value, a, b: (bar / b, -bar * value / b),
    "neg": lambda bar, value, a: (-bar,),
    "matmul": _matmul,
    "index": _index,
    "array": lambda bar, value, *items: bar.unbind(0),
    "stack": lambda bar, value, *items: bar.unbind(0),
    "sum": _sum,
    "mean": _mean,
    "norm": _norm,
    "softmax": _softmax,
    "cumsum": lambda bar, value, a, axis=0: (bar.flip(axis).cumsum(axis).flip(axis),),
    "dot": lambda bar, value, a, b: (bar * b, bar * a),
    "outer": lambda bar, value, a, b: (bar @ b.reshape(-1), a.reshape(-1) @ bar),
    "trace": _trace,
    "inv": _inverse,
    "transpose": lambda bar, value, a: (bar.permute(*range(bar.ndim - 1, -1, -1)),),
    "reshape": lambda bar, value, a, *shape: (bar.reshape(a.shape),),
    "concat": _concat,
}
