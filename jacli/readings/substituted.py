"""SymPy's formulas at a point: the tree is walked in exact numbers and balls, nothing is simplified on the way.

SymPy's own ``evalf`` and ``subs`` are no judge of a formula at a singular point and have no bound on their time. What
is evaluated here is what the formula says: ``(x*exp(x) - exp(x) + 1)/x**2`` has no value at 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

from flint import arb, ctx, fmpq

from jacli.readings.balls import Balls, Undefined, Unknown, exact
from jacli.readings.decimals import decimal
from jacli.readings.exact import NoValueError, Truth, UnsureError, compute, sign
from jacli.recursion import deep

#: Significant digits of the value of a formula, and the bits that give them.
DIGITS = 30
_ACCURACY = 104

#: Bits of precision that are tried in turn.
_PRECISIONS = (192, 384, 768, 1536)

_FRAMES = 50_000

#: A sum that is smaller than this at the last precision is written 0.
_NOTHING = arb(2) ** -1000


class NoEvaluator(Exception):
    """A kind of expression that is not evaluated."""


class Substituted:
    """Values of SymPy expressions whose symbols are the entries of a bound tape's variables.

    Args:
        balls: the tape at its point.
        nodes: each symbol's name with its node on the tape.
    """

    def __init__(self, balls: Balls, nodes: Mapping[str, int]) -> None:
        self.balls = balls
        self.nodes = nodes
        self._walks: dict[int, _Walk] = {}

    def decimal(self, expression: Any) -> str | None:
        """The value to ``DIGITS`` digits or exactly, "nan" where there is none, None where it is not known."""
        if expression is None:
            return None
        for precision in _PRECISIONS:
            try:
                with ctx.workprec(precision), deep(_FRAMES):
                    value = self._walk(precision).value(expression)
            except NoValueError:
                return "nan"
            except (NoEvaluator, RecursionError):
                return None
            except UnsureError:
                continue
            if type(value) is not arb or value.rel_accuracy_bits() >= _ACCURACY:
                return decimal(value, DIGITS)
            if abs(value) < _NOTHING:
                return "0"
        return None

    def _walk(self, precision: int) -> _Walk:
        if precision not in self._walks:
            self._walks[precision] = _Walk(self.balls, self.nodes, precision)
        return self._walks[precision]


class _Walk:
    """One precision: the value of every expression seen, each evaluated once."""

    def __init__(self, balls: Balls, nodes: Mapping[str, int], precision: int) -> None:
        self.point = balls.point(precision)
        self.nodes = nodes
        self.known: dict[Any, Any] = {}

    def value(self, e: Any) -> Any:
        """The value of an expression, or of a condition. Raises NoValueError, UnsureError or NoEvaluator."""
        found = self.known.get(e)
        if found is None:
            found = self.known[e] = self._value(e)
        return found

    def _value(self, e: Any) -> Any:
        if e.is_Rational:
            return exact(Fraction(int(e.p), int(e.q)))
        if e.is_Symbol:
            return self._variable(e.name)
        name = e.func.__name__
        if name in ("Add", "Mul"):
            return self._folded("add" if name == "Add" else "mul", e.args)
        if name == "Piecewise":
            return self._selected(e)
        form = _FORMS.get(name)
        if form is None:
            raise NoEvaluator
        return form(self, *e.args)

    def _variable(self, name: str) -> Any:
        if name not in self.nodes:
            raise NoEvaluator
        node = self.nodes[name]
        self.point.evaluate((node,))
        value = self.point.values[node]
        if isinstance(value, Undefined | Unknown):
            raise UnsureError
        return value

    def _folded(self, op: str, args: Sequence[Any]) -> Any:
        return reduce(lambda a, b: compute(op, (a, b)), map(self.value, args))

    def _selected(self, e: Any) -> Any:
        """Only the case taken is looked at."""
        for value, condition in e.args:
            if self.value(condition).holds:
                return self.value(value)
        raise NoValueError("no case of the Piecewise holds here")

    def heaviside(self, x: Any, middle: Any) -> Any:
        """0, 1, and at the jump what SymPy puts there."""
        side = sign(self.value(x))
        return fmpq(side > 0) if side else self.value(middle)


Form = Callable[..., Any]


def _same(op: str) -> Form:
    return lambda walk, *args: compute(op, [walk.value(arg) for arg in args])


def _any_number_of(op: str) -> Form:
    return lambda walk, *args: reduce(lambda a, b: compute(op, (a, b)), map(walk.value, args))


def _over(top: str | None, bottom: str) -> Form:
    def form(walk: _Walk, x: Any) -> Any:
        above = fmpq(1) if top is None else compute(top, (walk.value(x),))
        return compute("div", (above, compute(bottom, (walk.value(x),))))

    return form


def _ordered(op: str) -> Form:
    def form(walk: _Walk, order: Any, x: Any) -> Any:
        if not order.is_Integer:
            raise NoEvaluator
        return compute(op, (walk.value(x),), (int(order),))

    return form


def _nothing(_walk: _Walk, *_args: Any) -> Any:
    raise NoValueError("SymPy's formula is not a finite number here")


_FORMS: dict[str, Form] = {
    "Pi": _same("pi"),
    "Exp1": _same("E"),
    "EulerGamma": lambda walk: arb.const_euler(),
    "BooleanTrue": lambda walk: Truth(holds=True, stable=True),
    "BooleanFalse": lambda walk: Truth(holds=False, stable=True),
    "Abs": _same("abs"),
    "ceiling": _same("ceil"),
    "loggamma": _same("lgamma"),
    "polygamma": _ordered("polygamma"),
    "besseli": _ordered("besseli"),
    "Heaviside": _Walk.heaviside,
    "Max": _any_number_of("max"),
    "Min": _any_number_of("min"),
    "StrictLessThan": _same("lt"),
    "LessThan": _same("le"),
    "StrictGreaterThan": _same("gt"),
    "GreaterThan": _same("ge"),
    "Equality": _same("eq"),
    "Unequality": _same("ne"),
    "And": _same("and"),
    "Or": _same("or"),
    "Not": _same("not"),
    "Pow": _same("pow"),
    "sec": _over(None, "cos"),
    "csc": _over(None, "sin"),
    "cot": _over("cos", "sin"),
    "NaN": _nothing,
    "ComplexInfinity": _nothing,
    "Infinity": _nothing,
    "NegativeInfinity": _nothing,
}
_FORMS |= {
    name: _same(name)
    for name in (
        "exp log sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh sign floor erf erfc gamma digamma"
    ).split()
}
