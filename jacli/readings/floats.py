"""The program in torch: float64 tensors, whole-array operations, in the order typed.

Only what the outputs need is computed, and of a choice between numbers only the branch taken: an untaken branch
would poison gradients (0 times nan). A choice between arrays is taken entry by entry with ``torch.where``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from jacli.functions import ROWS
from jacli.functions.arrays import broadcast
from jacli.language.shapes import COUNTED
from jacli.language.syntax import Node
from jacli.readings.tape import Op

Operation = Node | Op

_CONSTANTS = {"pi": math.pi, "E": math.e, "true": True, "false": False}
_BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "matmul": lambda a, b: a @ b,
}


def torch() -> Any:
    """The torch module, imported when the first number is needed."""
    import torch as module

    return module


def leaves(values: Mapping[str, Any]) -> dict[str, Any]:
    """Float64 leaf tensors that require gradients, one a variable."""
    t = torch()
    return {name: t.tensor(value, dtype=t.float64, requires_grad=True) for name, value in values.items()}


def evaluate(nodes: Sequence[Operation], roots: Sequence[int], variables: Mapping[str, Any]) -> dict[int, Any]:
    """The tensors of ``roots`` and of everything they need.

    Args:
        nodes: a program's nodes, or a tape's operations; shapes must have been checked.
        roots: the nodes to compute.
        variables: a float64 tensor a variable.
    """
    t = torch()
    values: dict[int, Any] = {}
    stack = list(reversed(roots))
    while stack:
        index = stack[-1]
        if index in values:
            stack.pop()
            continue
        node = nodes[index]
        missing = _missing(node, values)
        if missing:
            stack.extend(reversed(missing))
        else:
            values[index] = _apply(t, nodes, node, values, variables)
            stack.pop()
    return values


def applied(nodes: Sequence[Operation], index: int, values: Mapping[int, Any]) -> Any:
    """One operation, no variable, on the values that are there for its arguments."""
    return _apply(torch(), nodes, nodes[index], values, {})


def alone(nodes: Sequence[Operation], index: int, values: Mapping[int, Any]) -> tuple[Any, dict[int, Any]]:
    """One operation in a graph of its own: its tensor, and fresh leaves for the arguments that carry gradients.

    ``values`` are the tensors that ``evaluate`` gave.
    """
    copies = {
        arg: values[arg].detach().clone().requires_grad_(values[arg].requires_grad)
        for arg in dict.fromkeys(nodes[index].args)
        if arg in values
    }
    output = _apply(torch(), nodes, nodes[index], copies, {})
    return output, {arg: copy for arg, copy in copies.items() if copy.requires_grad}


def _missing(node: Operation, values: Mapping[int, Any]) -> list[int]:
    """The arguments still to be computed; of a ``select`` only what decides it and the branch it takes."""
    if node.op != "select":
        return [arg for arg in node.args if arg not in values]
    for condition, value in branches(node):
        if condition is not None and condition not in values:
            return [condition]
        held = condition is None or _everywhere(values[condition])
        if (held or held is None) and value not in values:
            return [value]
        if held:
            return []
    return []


def branches(node: Operation) -> list[tuple[int | None, int]]:
    """A select's (condition, value) pairs; the last condition may be None, for otherwise."""
    pairs: list[tuple[int | None, int]] = list(zip(node.args[0::2], node.args[1::2], strict=False))
    return pairs if len(node.args) % 2 == 0 else [*pairs, (None, node.args[-1])]


def _everywhere(condition: Any) -> bool | None:
    """True or False where a condition holds everywhere or nowhere, None where entries differ."""
    if bool(condition.all()):
        return True
    return None if bool(condition.any()) else False


def _apply(
    t: Any, nodes: Sequence[Operation], node: Operation, values: Mapping[int, Any], variables: Mapping[str, Any]
) -> Any:
    op = node.op
    args = [values[arg] for arg in node.args] if op != "select" else []
    if op in _BINARY:
        return _BINARY[op](*args)
    if op == "variable":
        return variables[node.value]
    if op == "number":
        return t.tensor(_nearest(node.value), dtype=t.float64)
    if op == "pow":
        return _power(nodes, node, args)
    if op == "neg":
        return -args[0]
    if op in _CONSTANTS:
        return t.tensor(_CONSTANTS[op], dtype=t.bool if op in ("true", "false") else t.float64)
    if op == "index" or op in COUNTED:
        return _counted(t, nodes, node, values)
    if op == "array":
        return t.stack(list(t.broadcast_tensors(*args)))
    if op == "select":
        return _select(t, node, values)
    row = ROWS[op]
    return row.torch(t, *args, *(node.value or ()))


def _counted(t: Any, nodes: Sequence[Any], node: Any, values: Mapping[int, Any]) -> Any:
    """Entries of an array; counters, what they gather, and the family as a whole."""
    from jacli.language.counting import bounds, gathered

    def shape(index: int) -> tuple[int, ...]:
        return tuple(values[index].shape)

    if node.op == "index":
        return values[node.args[0]][node.value]
    if node.op == "counter":
        _, axis, rank = node.value
        counter = t.arange(*bounds(nodes, node, shape), dtype=t.float64)
        return counter.reshape((1,) * axis + (-1,) + (1,) * (rank - axis - 1))
    if node.op == "gather":
        places = (t.as_tensor(index) for index in gathered(nodes, node, shape))
        return values[node.args[0]][tuple(places)]
    return values[node.args[0]].expand(broadcast(*(tuple(values[arg].shape) for arg in node.args[1:])))


def _nearest(number: int | Fraction) -> float:
    """The nearest double; infinite where a coefficient that was written out is beyond them."""
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, number)


def _power(nodes: Sequence[Operation], node: Operation, args: Sequence[Any]) -> Any:
    """``x**2`` with a number as exponent, as it is typed in PyTorch: its gradient needs no logarithm."""
    exponent = nodes[node.args[1]]
    sign = 1
    if exponent.op == "neg":
        sign, exponent = -1, nodes[exponent.args[0]]
    if exponent.op == "number":
        value = float(exponent.value) * sign
        return args[0] ** (int(value) if value.is_integer() and abs(value) < 2**31 else value)
    return args[0] ** args[1]


def _select(t: Any, node: Operation, values: Mapping[int, Any]) -> Any:
    """The branch taken; between arrays, entry by entry, the first condition that holds."""
    chosen: list[tuple[Any, Any]] = []
    for condition, value in branches(node):
        held = True if condition is None else _everywhere(values[condition])
        if held is not False:
            chosen.append((None if held else values[condition], values[value]))  # type: ignore[index]
        if held:
            break
    result = chosen[-1][1] if chosen and chosen[-1][0] is None else t.tensor(t.nan, dtype=t.float64)
    for condition, value in reversed(chosen):
        if condition is not None:
            result = t.where(condition, value, result)
    return _widened(node, values, result)


def _widened(node: Operation, values: Mapping[int, Any], result: Any) -> Any:
    """A scalar branch of a choice made by an array's conditions has the array's shape."""
    shape = broadcast(*(tuple(values[arg].shape) for arg in node.args if arg in values))
    return result if shape == tuple(result.shape) else result.expand(shape)


def gradient(
    output: Any, inputs: Sequence[Any], cotangent: Any | None = None, *, create_graph: bool = False
) -> list[Any]:
    """``cotangent · ∂output/∂inputs`` by reverse mode, zeros where an input plays no part.

    Shapes: ``cotangent`` like ``output`` (ones where None); one result an input, in its shape. A weighted sum is
    differentiated instead of passing ``grad_outputs``: the numbers are the same, and the first call with
    ``grad_outputs`` imports several hundred modules.
    """
    t = torch()
    total = (
        output
        if cotangent is None and output.ndim == 0
        else (output if cotangent is None else output * cotangent).sum()
    )
    if not total.requires_grad:
        return [t.zeros_like(x) for x in inputs]
    grads = t.autograd.grad(total, list(inputs), retain_graph=True, create_graph=create_graph, allow_unused=True)
    return [t.zeros_like(x) if g is None or _is_absent(g) else g for g, x in zip(grads, inputs, strict=True)]


def _is_absent(gradient: Any) -> bool:
    """Whether torch stands a zero without storage in (the derivative of a sign): its entries cannot be read."""
    return bool(gradient._is_zerotensor())  # noqa: SLF001
