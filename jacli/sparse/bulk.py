"""The derivatives of all rows of a part by the table's formulas, and where doubles cannot be relied on.

A running error analysis to first order (Wilkinson, Rounding Errors in Algebraic Processes, 1963) accompanies every
value. A row is doubtful where the bound is no longer small beside the tolerance, where a value is not finite, and
where an operand is so near a switching point that rounding could have taken the other side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jacli.functions import ROWS
from jacli.readings import derive, floats, terms
from jacli.readings.adjoint import derivative
from jacli.readings.tape import Tape
from jacli.sparse.family import Floats, Mask
from jacli.sparse.plan import Part, tensors

_UNIT = 2.0**-53

#: How many units in the last place a library function may be off.
_FUNCTION_UNITS = 8

#: A margin this many times the error bound is no margin.
_MARGIN = 8

_ARITHMETIC = frozenset(("neg", "add", "sub", "mul", "div", "select", "max", "min", "abs", "variable"))
_EXACT = frozenset(("number", "pi", "E", "sign", "floor", "ceil", "true", "false", "and", "or", "not"))
_COMPARISONS = frozenset(("lt", "le", "gt", "ge", "eq", "ne"))


@dataclass(frozen=True, slots=True, eq=False)
class Slope:
    """A derivative for every row: values, first-order bounds on their rounding, and which are doubtful."""

    values: Floats
    errors: Floats
    doubtful: Mask


def slopes(part: Part, point: Floats, tolerance: Any) -> dict[str, Slope]:
    """The derivatives by every slot of a variable, independent of autograd."""
    nodes = part.plan.derivatives(part.plan.root, tuple(part.family.columns), part.taken)
    near = _near_a_switch(part, point)
    return {slot: _slope(part, found, near, tolerance) for slot, found in _evaluated(part, nodes, point).items()}


def curvature(part: Part, point: Floats, step: Floats, tolerance: Any) -> dict[str, Slope]:
    """Row by row, the Hessian times ``step``: the derivatives of the slope along it."""
    plan, by = part.plan, tuple(part.family.columns)
    first = plan.derivatives(plan.root, by, part.taken)
    along = {slot: plan.tape.add("variable", value=f"step {slot}") for slot in first}
    total = plan.tape.number(0)
    for slot, node in first.items():
        total = terms.add(plan.tape, total, terms.mul(plan.tape, node, along[slot]))
    t = floats.torch()
    steps = {f"step {slot}": t.from_numpy(step[part.family.columns[slot]]) for slot in first}
    nodes = plan.derivatives(total, by, part.taken)
    near = _near_a_switch(part, point)
    return {slot: _slope(part, found, near, tolerance) for slot, found in _evaluated(part, nodes, point, steps).items()}


def _evaluated(
    part: Part, nodes: Mapping[str, int], point: Floats, more: Mapping[str, Any] | None = None
) -> dict[str, tuple[Any, Any]]:
    """Values and error bounds of a few nodes; zeros for slots without one."""
    slots = tensors(part.family, point) | dict(more or {})
    values, errors = _with_errors(part.plan.tape, list(nodes.values()), slots, leaf=0.0)
    return {
        slot: (values[nodes[slot]], errors[nodes[slot]]) if slot in nodes else (0.0, 0.0)
        for slot in part.family.columns
    }


def _slope(part: Part, found: tuple[Any, Any], near: Mask, tolerance: Any) -> Slope:
    values, errors = (np.broadcast_to(array, len(part.family)) for array in found)
    sure = errors <= (tolerance.rtol * np.abs(values) + tolerance.atol) / 4
    return Slope(values, errors, near | ~(sure & np.isfinite(values)))


def _near_a_switch(part: Part, point: Floats) -> Mask:
    """The rows without a value, and those where rounding could decide a comparison, a sign, a maximum or an edge."""
    tape, root, rows = part.plan.tape, part.plan.root, len(part.family)
    slots = tensors(part.family, point)
    near = np.zeros(rows, bool)
    for value in floats.evaluate(tape.ops, [root], slots).values():  # one on the way may be infinite, and the root not
        near |= ~np.isfinite(value.numpy())
    switches = derive.switches(tape, [root])
    if switches:
        values, errors = _with_errors(tape, switches, slots, leaf=_UNIT)
        for node in switches:
            near |= np.abs(values[node]) <= _MARGIN * errors[node]
    return near


def _with_errors(
    tape: Tape, roots: Sequence[int], slots: Mapping[str, Any], leaf: float
) -> tuple[dict[int, Any], dict[int, Any]]:
    """Values of ``roots`` and of all they need, each with a bound on its rounding; variables are off by ``leaf``."""
    values = floats.evaluate(tape.ops, roots, slots)
    partials = {
        (node, position): derivative(tape, tape.ops[node].op, position, tape.ops[node].args, tape.ops[node].value)
        for node in values
        if tape.ops[node].op not in _ARITHMETIC | _EXACT | _COMPARISONS
        for position in range(len(tape.ops[node].args))
        if position < len(ROWS[tape.ops[node].op].derivatives) and not _is_number(tape, tape.ops[node].args[position])
    }
    slopes = floats.evaluate(tape.ops, list(partials.values()), slots) if partials else {}
    carried: dict[int, dict[int, Any]] = {}
    for (node, position), found in partials.items():
        carried.setdefault(node, {})[position] = np.abs(slopes[found].numpy())
    arrays = {node: value.numpy() for node, value in values.items()}
    errors: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for node in sorted(arrays):
            errors[node] = _error(tape, node, arrays, errors, carried.get(node, {}), leaf)
    return arrays, errors


def dyadic(values: Floats) -> Mask:
    """Whether numbers are multiples of 1/1024, whose sums and products doubles hold exactly while they are small."""
    scaled = values * 1024
    result: Mask = scaled == np.rint(scaled)
    return result


def _own_rounding(op: str, value: Any, operands: Sequence[Any]) -> Any:
    """How far an operation's result may be from that of exact operands like these."""
    size = np.abs(value)
    if op not in ("add", "sub", "mul", "pow"):
        return _UNIT * (1 if op in _ARITHMETIC else _FUNCTION_UNITS) * size
    a, b = operands
    exact = (a == np.rint(a)) & (b == np.rint(b)) & (b >= 0) if op == "pow" else dyadic(a) & dyadic(b)
    return np.where(exact & (size < 2.0**32), 0.0, _UNIT * (_FUNCTION_UNITS if op == "pow" else 1) * size)


def _is_number(tape: Tape, node: int) -> bool:
    return tape.ops[node].op == "number"


def _error(
    tape: Tape, node: int, values: Mapping[int, Any], errors: Mapping[int, Any], carried: Mapping[int, Any], leaf: float
) -> Any:
    """A node's error bound: what its arguments' errors do to it, and its own rounding."""
    op, args, _ = tape.ops[node]
    value = values[node]
    if op in _EXACT or op in _COMPARISONS:
        return 0.0
    if op == "variable":
        return leaf * np.abs(value)
    if op in ("neg", "abs"):
        return errors[args[0]]
    if op in ("select", "max", "min"):
        known = [errors[arg] for arg in (args[1::2] + args[-1:] if op == "select" else args) if arg in errors]
        return sum(known[1:], known[0])
    total = _own_rounding(op, value, [values[arg] for arg in args])
    if op in ("add", "sub"):
        return total + errors[args[0]] + errors[args[1]]
    if op == "mul":
        a, b = args
        return total + np.abs(values[a]) * errors[b] + np.abs(values[b]) * errors[a]
    if op == "div":
        a, b = args
        return total + (errors[a] + np.abs(value) * errors[b]) / np.abs(values[b])
    for position, slope in carried.items():
        total = total + slope * errors[args[position]]
    return total
