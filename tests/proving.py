"""Helpers of the tests of proofs: a text at a point as a tape, and a reading of tapes that shares nothing with ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mpmath

from jacli.language.parser import read
from jacli.readings.lowering import lower, lower_constant
from jacli.readings.tape import Tape
from jacli.verify import Proof, Prover


@dataclass(frozen=True)
class Prepared:
    """A text's tape with its variables bound."""

    tape: Tape
    outputs: list[int]
    variables: dict[str, int]

    @property
    def wrt(self) -> list[int]:
        return list(self.variables.values())

    def gradient(self, output: int = 0) -> dict[str, Proof]:
        proofs = Prover(self.tape).gradient(self.outputs[output], self.wrt)
        return dict(zip(self.variables, proofs, strict=True))

    def value(self) -> Proof:
        return Prover(self.tape).value(self.outputs[0])

    def hessian(self) -> list[list[Proof]]:
        return Prover(self.tape).hessian(self.outputs[0], self.wrt)


def prepare(text: str, at: str | Mapping[str, str]) -> Prepared:
    """A program of single numbers at a point such as ``x=1/3,y=pi``."""
    point = dict(part.strip().split("=", 1) for part in at.split(",")) if isinstance(at, str) else dict(at)
    program = read(text, tuple(point))
    lowered = lower(program, dict.fromkeys(program.variables, ()), 10**6)
    for name, nodes in lowered.variables.items():
        lowered.tape.bound[nodes[0]] = lower_constant(read(point[name]), lowered.tape)[1][0]
    variables = {name: nodes[0] for name, nodes in lowered.variables.items()}
    return Prepared(lowered.tape, [nodes[0] for nodes in lowered.outputs], variables)


class NotReal(Exception):
    """mpmath finds no real number."""


class TooClose(Exception):
    """A comparison that mpmath's digits cannot be trusted with."""


def mp_value(tape: Tape, output: int, at: Mapping[int, Any]) -> Any:
    """The value of ``output`` in mpmath, only what is taken being evaluated."""
    values: dict[int, Any] = {}
    stack = [output]
    while stack:
        node = stack[-1]
        op, args, value = tape.ops[node]
        wanted = _branch(args, values) if op == "select" else args
        missing = [arg for arg in wanted if arg not in values]
        if missing:
            stack.append(missing[0])
            continue
        stack.pop()
        if op == "variable":
            values[node] = at[node]
        elif op == "select":
            values[node] = values[wanted[-1]]
        elif op == "number":
            values[node] = mpmath.mpf(value.numerator) / value.denominator
        else:
            values[node] = _real(_MP[op](*(values[arg] for arg in args), *(value or ())))
    return values[output]


def _branch(args: tuple[int, ...], values: Mapping[int, Any]) -> list[int]:
    looked = []
    for k in range(0, len(args) - 1, 2):
        looked.append(args[k])
        if values.get(args[k], True):
            return [*looked, args[k + 1]]
    if len(args) % 2 == 0:
        raise NotReal
    return [*looked, args[-1]]


def _real(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, mpmath.mpc):
        if value.imag:
            raise NotReal
        value = value.real
    if not mpmath.isfinite(value):
        raise NotReal
    return value


def _sign(value: Any) -> int:
    if value and abs(value) < mpmath.mpf(10) ** (-mpmath.mp.dps // 2 - 12):
        raise TooClose
    return int(mpmath.sign(value))


def _divided(a: Any, b: Any) -> Any:
    if not _sign(b):
        raise NotReal
    return a / b


def _power(a: Any, b: Any) -> Any:
    if not _sign(a) and b < 0:
        raise NotReal
    if a < 0 and not mpmath.isint(b):
        raise NotReal
    return a**b


def _within(name: str, low: float | None, high: float | None, *, closed: bool = True) -> Any:
    def function(x: Any) -> Any:
        for bound, side in ((low, -1), (high, 1)):
            if bound is not None and _sign(x - bound) in ((side,) if closed else (side, 0)):
                raise NotReal
        return getattr(mpmath, name)(x)

    return function


def _no_pole(function: Any) -> Any:
    def guarded(x: Any, *order: int) -> Any:
        if x <= 0 and mpmath.isint(x):
            raise NotReal
        return function(x, *order)

    return guarded


def _angle(y: Any, x: Any) -> Any:
    if not _sign(y) and not _sign(x):
        raise NotReal
    return mpmath.atan2(y, x)


def _floor(x: Any) -> Any:
    if not mpmath.isint(x):
        _sign(x - mpmath.nint(x))
    return mpmath.floor(x)


_MP: dict[str, Any] = {
    "pi": lambda: +mpmath.pi, "E": lambda: +mpmath.e, "true": lambda: True, "false": lambda: False,
    "neg": lambda a: -a, "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": _divided, "pow": _power, "exp": mpmath.exp, "log": _within("log", 0, None, closed=False),
    "sqrt": _within("sqrt", 0, None), "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan,
    "asin": _within("asin", -1, 1), "acos": _within("acos", -1, 1), "atan": mpmath.atan, "atan2": _angle,
    "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tanh": mpmath.tanh, "asinh": mpmath.asinh,
    "acosh": _within("acosh", 1, None), "atanh": _within("atanh", -1, 1, closed=False),
    "abs": abs, "sign": _sign, "floor": _floor, "ceil": lambda a: -_floor(-a),
    "max": lambda a, b: a if _sign(a - b) >= 0 else b, "min": lambda a, b: a if _sign(a - b) <= 0 else b,
    "erf": mpmath.erf, "erfc": mpmath.erfc, "gamma": _no_pole(mpmath.gamma),
    "lgamma": _no_pole(lambda x: mpmath.log(abs(mpmath.gamma(x)))), "digamma": _no_pole(mpmath.digamma),
    "polygamma": _no_pole(lambda x, n: mpmath.psi(n, x)), "besseli": lambda x, n: mpmath.besseli(n, x),
    "lt": lambda a, b: _sign(a - b) < 0, "le": lambda a, b: _sign(a - b) <= 0, "gt": lambda a, b: _sign(a - b) > 0,
    "ge": lambda a, b: _sign(a - b) >= 0, "eq": lambda a, b: _sign(a - b) == 0, "ne": lambda a, b: _sign(a - b) != 0,
    "and": lambda *c: all(c), "or": lambda *c: any(c), "not": lambda c: not c,
}  # fmt: skip


def mp_slopes(prepared: Prepared, variable: str, step: str = "1e-40", digits: int = 120) -> tuple[Any, Any]:
    """Left and right difference quotients of the first output; None on a side that is not real."""
    tape, output = prepared.tape, prepared.outputs[0]
    with mpmath.workdps(digits):
        at = {node: mp_value(tape, tape.bound[node], {}) for node in prepared.wrt}
        here = mp_value(tape, output, at)
        h = mpmath.mpf(step)
        slopes = []
        for side in (-1, 1):
            moved = dict(at)
            moved[prepared.variables[variable]] += side * h
            try:
                slopes.append((mp_value(tape, output, moved) - here) / (side * h))
            except NotReal:
                slopes.append(None)
        return slopes[0], slopes[1]
