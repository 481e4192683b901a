"""A second reading of the derivatives of a program of arrays, in doubles, that shares no rule with autograd.

It serves programs too long to be written out in single numbers: their entries cannot all be proved, but every one of
them can be compared with this reading. Functions of numbers are differentiated by the table's formulas, the array
operations by the rules below (Giles, Collected Matrix Derivative Results, 2008), backwards and forwards.

Like ``readings.machine`` it has a second gait, in which what is rounded is moved by ``1 ± 2**-30``: digits that cancel
in one gait are lost in the other. Numbers that doubles hold exactly, as most coefficients, stay where they are.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np

from jacli.functions import ROWS
from jacli.language.syntax import Node, Program
from jacli.readings import derive, floats
from jacli.readings.lowering import FACTORING, call
from jacli.readings.machine import ENLARGED, NUDGE, Machine
from jacli.readings.tape import Tape

#: Operations whose results are whole numbers known beforehand.
_COUNTING = frozenset(("counter", "len"))

#: How many units of the last place one operation may cost.
SAFETY = 8

#: Multiples of 1/1024 below 2**32 have exact sums and products: they are not moved in the second gait.
_GRAIN, _EXACT_BELOW = 1024, 2.0**32

#: Into how many different places the row of nudges may be cut, so that few operations are moved alike.
_OFFSETS = 10_007


class NoRule(Exception):
    """The program has an operation that this reading cannot differentiate."""


def vjp(program: Program, variables: Mapping[str, Any], cotangents: Sequence[Any]) -> dict[str, Any]:
    """``Σ cotangent · ∂output/∂variable`` for every variable; see ``Mirror.vjp``."""
    return Mirror(program, variables).vjp(cotangents)


def _shares(count: int) -> Any:
    """Once to twice up or down: moves of one size would cancel in a difference whose sides were moved equally often."""
    chance = np.random.default_rng(1)
    return chance.choice((-1.0, 1.0), count) * chance.uniform(1, 2, count)


class Mirror:
    """A program at a point, ready for passes in both directions.

    Args:
        program: the program; shapes must have been checked.
        variables: a float64 tensor a variable.
        plain: the same in the first gait, when this is the second.
    """

    def __init__(self, program: Program, variables: Mapping[str, Any], plain: Mirror | None = None) -> None:
        self.program = program
        self._variables = variables
        self._partials: dict[int, Sequence[Any]] = {}
        t = floats.torch()
        with t.no_grad():
            if plain is None:
                self._nudges = None
                self.values = floats.evaluate(program.nodes, program.outputs, variables)
            else:
                largest = max(value.numel() for value in plain.values.values())
                self._nudges = t.from_numpy(1 + NUDGE * _shares(largest + _OFFSETS))
                self.values = self._moved(plain.values)

    @cached_property
    def second(self) -> Mirror:
        """The same in the second gait, in which the same branches are taken."""
        return Mirror(self.program, self._variables, self)

    def _moved(self, plain: Mapping[int, Any]) -> dict[int, Any]:
        values: dict[int, Any] = {}
        for index in sorted(plain):
            node = self.program.nodes[index]
            if not plain[index].is_floating_point() or not (node.args or node.op == "variable"):
                values[index] = plain[index]  # a condition, or a number
            elif node.op == "variable":
                values[index] = self._nudged(index, plain[index])
            else:
                value = floats.applied(self.program.nodes, index, ChainMap(self._shaken(index, values), values))
                values[index] = value if node.op in _EXACT else self._nudged(index, value)
        return values

    def _nudged(self, index: int, value: Any) -> Any:
        """What is rounded, moved by about 2**-30 up or down, entry by entry."""
        if self._nudges is None:
            return value
        t = floats.torch()
        grains = value * _GRAIN
        exact = (grains == grains.round()) & (value.abs() < _EXACT_BELOW)
        return t.where(exact, value, self._moved_anyway(index, value))

    def _moved_anyway(self, index: int, value: Any) -> Any:
        assert self._nudges is not None
        start = index * 7919 % _OFFSETS
        return value * self._nudges[start : start + value.numel()].reshape(value.shape)

    def _shaken(self, index: int, values: Mapping[int, Any]) -> dict[int, Any]:
        """The matrix that a node factors, in the second gait: libraries give the exact result of a matrix nearby."""
        node = self.program.nodes[index]
        if self._nudges is None or node.op not in FACTORING:
            return {}
        return {node.args[0]: self._moved_anyway(index, values[node.args[0]])}

    def _given(self, index: int) -> list[Any]:
        """The arguments of a node, as its rule should see them; None for one that was never computed."""
        shaken = self._shaken(index, self.values)
        return [shaken.get(arg, self.values.get(arg)) for arg in self.program.nodes[index].args]

    # ---- backwards

    def vjp(self, cotangents: Sequence[Any]) -> dict[str, Any]:
        """``Σ cotangent · ∂output/∂variable`` for every variable, in its shape.

        Args:
            cotangents: a tensor an output, in its shape.

        Raises:
            NoRule: where an operation has no rule here.
        """
        t = floats.torch()
        with t.no_grad():
            bars: dict[int, Any] = {}
            for output, cotangent in zip(self.program.outputs, cotangents, strict=True):
                _accumulate(bars, output, cotangent)
            for index in range(len(self.program.nodes) - 1, -1, -1):
                node = self.program.nodes[index]
                if index not in bars or not node.args:
                    continue
                bar = self._nudged(index, bars[index])
                for arg, share in zip(node.args, self._pulled(index, bar), strict=True):
                    if share is not None:
                        _accumulate(bars, arg, _unbroadcast(share, self.values[arg].shape))
            zero = t.zeros((), dtype=t.float64)
            found = self.program.variables
            return {
                name: bars.get(found[name], zero).expand(tensor.shape) if name in found else zero.expand(tensor.shape)
                for name, tensor in self._variables.items()
            }

    def _pulled(self, index: int, bar: Any) -> Sequence[Any]:
        """The cotangents of a node's arguments; None for those that have no part in it."""
        node, value = self.program.nodes[index], self.values[index]
        if node.op == "select":
            t = floats.torch()
            masks = self._taken(node, bar.shape)
            return [None if mask is None else t.where(mask, bar, 0.0) for mask in masks]
        if node.op == "gather":
            return [self._scattered(node, bar), *[None] * (len(node.args) - 1)]
        if node.op == "family" or node.op in _COUNTING:
            return [bar if node.op == "family" else None, *[None] * (len(node.args) - 1)]
        rule = _RULES.get(node.op)
        if rule is not None and not _of_two(node):
            return rule(bar, value, *self._given(index), *(node.value or ()))
        return [None if partial is None else bar * partial for partial in self._slopes(index)]

    def _slopes(self, index: int) -> Sequence[Any]:
        """The partial derivatives of a function of numbers, entry by entry; None by a constant exponent."""
        if index not in self._partials:
            node, shape = self.program.nodes[index], self.values[index].shape
            row = ROWS.get(node.op)
            if row is None or row.kind != "elementwise":
                raise NoRule(node.op)
            machine = _machine(node.op, len(node.args), node.value or (), self._exponent(node))
            args = [self.values[arg].expand(shape) for arg in node.args]
            partials = machine(args, nudged=self._nudges is not None).unbind(0)
            self._partials[index] = [*partials, *[None] * (len(args) - len(partials))]
        return self._partials[index]

    def _exponent(self, node: Node) -> Fraction | None:
        return _number(self.program.nodes, node.args[1]) if node.op == "pow" else None

    def _scattered(self, node: Node, bar: Any) -> Any:
        from jacli.language.counting import gathered

        t = floats.torch()
        array = self.values[node.args[0]]
        places = gathered(self.program.nodes, node, lambda k: tuple(self.values[k].shape))
        indices = t.broadcast_tensors(*(t.as_tensor(place) for place in places))
        return array.new_zeros(array.shape).index_put(indices, bar, accumulate=True)

    def _taken(self, node: Node, shape: Sequence[int]) -> list[Any]:
        """For each argument of a choice, where it is the one taken; None for conditions, and for what never is."""
        t = floats.torch()
        left = t.ones(shape, dtype=t.bool)
        masks: list[Any] = []
        for condition, value in floats.branches(node):
            held = t.ones((), dtype=t.bool) if condition is None else self.values.get(condition)
            mask = None if held is None or value not in self.values else left & held
            masks += [mask] if condition is None else [None, mask]
            left = left if held is None else left & ~held
        return masks

    # ---- forwards

    def jvp(self, tangents: Mapping[str, Any]) -> list[Any]:
        """``Σ ∂output/∂variable · tangent``, a tensor an output, in its shape.

        Args:
            tangents: a tensor a variable, in its shape; zero where there is none.

        Raises:
            NoRule: where an operation has no rule here.
        """
        t = floats.torch()
        with t.no_grad():
            dots: dict[int, Any] = {}
            for index in sorted(self.values):
                node = self.program.nodes[index]
                if node.op == "variable":
                    if node.value in tangents:
                        dots[index] = tangents[node.value]
                elif node.op not in _COUNTING and any(arg in dots for arg in node.args) and self._is_number(index):
                    dots[index] = self._nudged(index, self._pushed(index, dots))
            return [dots.get(node, t.zeros_like(self.values[node])) for node in self.program.outputs]

    def _is_number(self, index: int) -> bool:
        """Whether a node is of numbers, not of conditions."""
        return bool(self.values[index].is_floating_point())

    def _pushed(self, index: int, dots: Mapping[int, Any]) -> Any:
        """A node's tangent from those of its arguments."""
        t = floats.torch()
        node, value = self.program.nodes[index], self.values[index]
        moved = [dots.get(arg) for arg in node.args]
        args = self._given(index)
        if node.op in _LINEAR:
            zeros = {arg: t.zeros_like(self.values[arg]) for arg in node.args}
            return floats.applied(self.program.nodes, index, ChainMap(dict(dots), zeros, self.values))
        if node.op == "select":
            masks = self._taken(node, value.shape)
            taken = [(m, dot) for m, dot in zip(masks, moved, strict=True) if m is not None and dot is not None]
            return sum((t.where(mask, dot, 0.0) for mask, dot in taken), t.zeros_like(value))
        if node.op in _PRODUCTS:
            product = _PRODUCTS[node.op]
            left = None if moved[0] is None else product(t, moved[0], args[1])
            right = None if moved[1] is None else product(t, args[0], moved[1])
            return left if right is None else right if left is None else left + right
        if node.op in _FORWARD:
            return _FORWARD[node.op](value, args, moved, *(node.value or ()))
        if node.op in _RULES and not _of_two(node):  # one number a line: the sum of its gradient times the tangent
            axis = node.value or ()
            (slope,) = _RULES[node.op](t.ones_like(value), value, args[0], *axis)
            return (slope * moved[0]).sum(*axis)
        pairs = zip(self._slopes(index), moved, strict=True)
        return sum((s * dot for s, dot in pairs if s is not None and dot is not None), t.zeros_like(value))

    # ---- switching points

    def switching(self) -> dict[int, Any]:
        """The entries at a switching point, by node: a kink, a tie, a jump, the edge of a domain, or no value.

        So near to one that rounding could decide counts as well. One mask a node, in its shape.
        """
        t = floats.torch()
        found: dict[int, Any] = {}
        valueless = self.valueless()
        with t.no_grad():
            for index in self.values:
                mask = self._switching(index) | valueless.get(index, False)
                if bool(mask.any()):
                    found[index] = mask
        return found

    def valueless(self) -> dict[int, Any]:
        """The entries that have no value, by node: not finite, or the angle of the origin. One mask a node."""
        masks = {index: self._valueless(index) for index in self.values if self._is_number(index)}
        return {index: mask for index, mask in masks.items() if bool(mask.any())}

    def _valueless(self, index: int) -> Any:
        node, found = self.program.nodes[index], ~self.values[index].isfinite()
        if node.op == "atan2":
            y, x = (_near(self.values[arg], self.second.values[arg]) for arg in node.args)
            found = found | (y & x)
        return found

    def _switching(self, index: int) -> Any:
        t = floats.torch()
        node, value, other = self.program.nodes[index], self.values[index], self.second.values[index]
        nowhere = t.zeros(value.shape, dtype=t.bool)
        if node.op in ("max", "min") and len(node.args) == 1:
            gaps = (mirror.values[node.args[0]] - mirror.values[index] for mirror in (self, self.second))
            return nowhere | (_near(*gaps).sum() > 1)
        if node.op in ("norm", "std"):
            return _near(value, other)
        row = ROWS.get(node.op)
        if row is None or row.kind not in ("elementwise", "condition") or not node.args:
            return nowhere
        machine = _switches(node.op, len(node.args), node.value or (), self._exponent(node))
        if machine is None:
            return nowhere
        first, second = (
            machine([mirror.values[arg].expand(value.shape) for arg in node.args], nudged=mirror is not self)
            for mirror in (self, self.second)
        )
        return _near(first, second).any(0)


def sure(values: Any, first: Any, second: Any, rtol: float, atol: float) -> Any:
    """Where numbers agree with this reading, and this reading keeps enough digits; arrays of one shape.

    Args:
        values: the numbers, by autograd.
        first: by this reading.
        second: in its second gait.
        rtol: relative difference that agrees.
        atol: absolute difference that agrees.
    """
    off, loss = abs(values - first), abs(second - first) * (SAFETY / ENLARGED)
    return off + loss <= (rtol * abs(first) + atol) / 2


def _near(first: Any, second: Any) -> Any:
    """Where a number is zero, or as near as rounding may bring it."""
    return ~(first.abs() > (second - first).abs() * (SAFETY / ENLARGED))


def _of_two(node: Node) -> bool:
    return node.op in ("max", "min") and len(node.args) > 1


def _number(nodes: Sequence[Node], index: int) -> Fraction | None:
    """A number that is typed: ``2``, ``-2``, ``1/2``."""
    op, args, value, _ = nodes[index]
    if op == "number":
        return Fraction(value)
    known = [_number(nodes, arg) for arg in args] if op in ("neg", "div") else [None]
    if None in known or (op == "div" and known[1] == 0):
        return None
    return -known[0] if op == "neg" else known[0] / known[1]  # type: ignore[operator]


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


def _function(
    op: str, count: int, integers: tuple[int, ...], exponent: Fraction | None
) -> tuple[Tape, int, Sequence[int]]:
    """A function of numbers on a tape: its node, and its variables; a constant exponent is none."""
    tape = Tape()
    variables = [tape.add("variable", value=str(i)) for i in range(count if exponent is None else 1)]
    args = (*variables, *(() if exponent is None else (tape.number(exponent),)))
    return tape, call(tape, op, args, integers), variables


@cache
def _machine(op: str, count: int, integers: tuple[int, ...], exponent: Fraction | None) -> Machine:
    """The partial derivatives of a function of numbers, by the table's formulas, on columns."""
    tape, output, variables = _function(op, count, integers, exponent)
    columns = {str(i): i for i in range(count)}
    return Machine(tape, derive.gradient(tape, output, variables), columns)


@cache
def _switches(op: str, count: int, integers: tuple[int, ...], exponent: Fraction | None) -> Machine | None:
    """What is zero where a function of numbers has a kink, a jump, a tie or an edge; None where it never has."""
    tape, output, _ = _function(op, count, integers, exponent)
    nodes = derive.switches(tape, [output])
    return Machine(tape, nodes, {str(i): i for i in range(count)}) if nodes else None


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


def _spread(bar: Any, axis: int | None) -> Any:
    """One number a line, ready to be broadcast along it."""
    return bar if axis is None else bar.unsqueeze(axis)


def _sum(bar: Any, _: Any, a: Any, axis: int | None = None) -> Sequence[Any]:
    return (_spread(bar, axis).expand(a.shape),)


def _mean(bar: Any, _: Any, a: Any, axis: int | None = None) -> Sequence[Any]:
    return _sum(bar / (a.numel() if axis is None else a.shape[axis]), _, a, axis)


def _norm(bar: Any, value: Any, a: Any, axis: int | None = None) -> Sequence[Any]:
    return (_sum(bar / value, value, a, axis)[0] * a,)


def _logsumexp(bar: Any, value: Any, a: Any, axis: int | None = None) -> Sequence[Any]:
    return (_spread(bar, axis) * (a - _spread(value, axis)).exp(),)


def _prod(bar: Any, _: Any, a: Any, axis: int | None = None) -> Sequence[Any]:
    """Each entry's slope is the product of the others, which no entry is divided out of."""
    t = floats.torch()
    flat = a.reshape(-1) if axis is None else a.movedim(axis, 0)
    one = t.ones_like(flat[:1])
    before = t.cat([one, flat[:-1]]).cumprod(0)
    after = t.cat([one, flat.flip(0)[:-1]]).cumprod(0).flip(0)
    others = before * after
    return (_spread(bar, axis) * (others.reshape(a.shape) if axis is None else others.movedim(0, axis)),)


def _extreme(bar: Any, value: Any, a: Any) -> Sequence[Any]:
    return (floats.torch().where(a == value, bar, 0.0),)


def _var(bar: Any, _: Any, a: Any) -> Sequence[Any]:
    return (bar * 2 * (a - a.mean()) / (a.numel() - 1),)


def _std(bar: Any, value: Any, a: Any) -> Sequence[Any]:
    return (bar * (a - a.mean()) / ((a.numel() - 1) * value),)


def _concat(bar: Any, _: Any, *arrays: Any) -> Sequence[Any]:
    return tuple(bar.split([array.shape[0] for array in arrays]))


def _trace(bar: Any, _: Any, a: Any) -> Sequence[Any]:
    return (bar * floats.torch().eye(a.shape[0], dtype=a.dtype),)


def _inverse(bar: Any, value: Any, _: Any) -> Sequence[Any]:
    return (-value.T @ bar @ value.T,)


def _det(bar: Any, value: Any, a: Any) -> Sequence[Any]:
    return (bar * value * floats.torch().linalg.inv_ex(a).inverse.T,)


def _solve(bar: Any, value: Any, a: Any, _: Any) -> Sequence[Any]:
    back = floats.torch().linalg.solve_ex(a.T, bar).result
    return (-back.outer(value) if bar.ndim == 1 else -back @ value.T), back


def _cross(bar: Any, _: Any, a: Any, b: Any) -> Sequence[Any]:
    cross = floats.torch().linalg.cross
    return cross(b, bar), cross(bar, a)


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
    "logsumexp": _logsumexp,
    "prod": _prod,
    "max": _extreme,
    "min": _extreme,
    "var": _var,
    "std": _std,
    "softmax": _softmax,
    "cumsum": lambda bar, value, a, axis=0: (bar.flip(axis).cumsum(axis).flip(axis),),
    "dot": lambda bar, value, a, b: (bar * b, bar * a),
    "outer": lambda bar, value, a, b: (
        (bar @ b.reshape(-1)).reshape(a.shape),
        (a.reshape(-1) @ bar).reshape(b.shape),
    ),
    "cross": _cross,
    "trace": _trace,
    "det": _det,
    "inv": _inverse,
    "solve": _solve,
    "transpose": lambda bar, value, a: (bar.permute(*range(bar.ndim - 1, -1, -1)),),
    "reshape": lambda bar, value, a, *shape: (bar.reshape(a.shape),),
    "concat": _concat,
}

# ---- the same forwards: linear operations are their own rule, products have two terms

_MOVES = frozenset("index gather family reshape transpose concat stack array".split())
_EXACT = _MOVES | frozenset("neg abs sign floor ceil max min select".split())
_LINEAR = _MOVES | frozenset("neg add sub sum mean cumsum trace".split())

_PRODUCTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "mul": lambda t, a, b: a * b,
    "matmul": lambda t, a, b: a @ b,
    "dot": lambda t, a, b: (a * b).sum(),
    "outer": lambda t, a, b: t.outer(a.reshape(-1), b.reshape(-1)),
    "cross": lambda t, a, b: t.linalg.cross(a, b),
}


def _divided(value: Any, args: Sequence[Any], moved: Sequence[Any]) -> Any:
    top, bottom = moved
    change = 0.0 if top is None else top
    return (change if bottom is None else change - value * bottom) / args[1]


def _softened(value: Any, _: Sequence[Any], moved: Sequence[Any], axis: int | None = None) -> Any:
    return _softmax(moved[0], value, None, axis)[0]  # its Jacobian is symmetric


def _solved(value: Any, args: Sequence[Any], moved: Sequence[Any]) -> Any:
    matrix, right = moved
    change = floats.torch().zeros_like(value) if right is None else right
    return floats.torch().linalg.solve_ex(args[0], change if matrix is None else change - matrix @ value).result


_FORWARD: dict[str, Callable[..., Any]] = {
    "div": _divided,
    "softmax": _softened,
    "inv": lambda value, args, moved: -value @ moved[0] @ value,
    "solve": _solved,
}
