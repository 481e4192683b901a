"""Arithmetic of the exact readings: rationals while they are short, rational multiples of pi, else balls.

A ball (Arb, Johansson 2017, doi:10.1109/TC.2017.2690633) contains the true number. Zeros, signs and whole numbers
are therefore known for certain or not at all; ``compute`` says which. Precision is flint's ``ctx.prec``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from flint import acb, arb, fmpq, fmpz

#: A rational with more bits than this becomes a ball.
MOST_BITS = 4096


class Angle(NamedTuple):
    """``turns`` times pi, exactly. The sine of 2*pi*168/12 is then 0 and not a ball around it."""

    turns: fmpq


class Truth(NamedTuple):
    """Whether a condition holds, and whether it still does after any small move of the point."""

    holds: bool
    stable: bool


Number = fmpq | Angle | arb
Value = Number | Truth


class NoValueError(Exception):
    """There is no real number here; the message says why, in words."""


@dataclass
class UnsureError(Exception):
    """More precision, or a proof, must say whether argument ``first`` equals ``other`` exactly.

    ``other`` is the position of another argument or an exact number; ``first`` None: only precision can help.
    """

    first: int | None = None
    second: int | None = None
    number: fmpq | None = None


def ball(value: Any) -> arb:
    """The number as a ball at the present precision."""
    if isinstance(value, fmpq):
        return arb(value)
    if isinstance(value, Angle):
        return arb.pi() * arb(value.turns)
    number: arb = value
    return number


def short(value: fmpq) -> fmpq | arb:
    """The rational itself, or a ball when it has grown long."""
    return value if value.height_bits() <= MOST_BITS else arb(value)


def shortened(value: Number, longest: int) -> Number:
    """The number, or a ball for a rational of more than ``longest`` bits."""
    return arb(value) if type(value) is fmpq and value.height_bits() > longest else value


def angle(turns: fmpq) -> Number:
    """``turns`` times pi; 0 is a rational."""
    return Angle(turns) if turns else turns


def is_zero(value: object) -> bool:
    """Exactly and certainly 0."""
    return type(value) is fmpq and not value


def sign(value: Number, position: int = 0) -> int:
    """-1, 0 or 1, or UnsureError about the argument at ``position``."""
    if isinstance(value, fmpq):
        return (value > 0) - (value < 0)
    if isinstance(value, Angle):
        return 1 if value.turns > 0 else -1
    if value > 0:
        return 1
    if value < 0:
        return -1
    raise UnsureError(position, number=fmpq(0)) if value.is_finite() else UnsureError


def compare(a: Number, b: Number, positions: tuple[int, int] = (0, 1)) -> int:
    """The sign of a - b, or UnsureError about the two."""
    if type(a) is fmpq and type(b) is fmpq:
        return (a > b) - (a < b)
    if type(a) is Angle and type(b) is Angle:
        return (a.turns > b.turns) - (a.turns < b.turns)
    x, y = ball(a), ball(b)
    if x > y:
        return 1
    if x < y:
        return -1
    raise UnsureError(*positions) if x.is_finite() and y.is_finite() else UnsureError


def _against(a: Number, number: int) -> int:
    """The sign of the first argument less a whole number."""
    try:
        return compare(a, fmpq(number))
    except UnsureError as unsure:
        if unsure.first is None:
            raise
        raise UnsureError(0, number=fmpq(number)) from None


_HALF_BALL = arb("0.5")


def whole(value: Number, position: int = 0) -> int | None:
    """The value as an integer, None when it certainly is not one, or UnsureError."""
    if isinstance(value, fmpq):
        return int(value.p) if value.q == 1 else None
    if isinstance(value, Angle):
        return None  # pi is irrational
    if not value.is_finite():
        raise UnsureError
    if not value.contains_integer():
        return None
    near = (value.mid() + _HALF_BALL).floor().unique_fmpz()
    raise UnsureError(position, number=fmpq(near)) if near is not None else UnsureError


# ---- arithmetic


def _neg(a: Number) -> Number:
    return Angle(-a.turns) if isinstance(a, Angle) else -a


def _add(a: Number, b: Number) -> Number:
    if type(a) is fmpq:
        if type(b) is fmpq:
            return short(a + b)
        if not a:
            return b
    elif type(a) is Angle and type(b) is Angle:
        return angle(a.turns + b.turns)
    if is_zero(b):
        return a
    return ball(a) + ball(b)


def _sub(a: Number, b: Number) -> Number:
    if type(a) is fmpq and type(b) is fmpq:
        return short(a - b)
    return _add(a, _neg(b))


def _mul(a: Number, b: Number) -> Number:
    if type(a) is fmpq:
        if type(b) is fmpq:
            return short(a * b)
        if not a or a == 1:
            return b if a else a
        if type(b) is Angle:
            return Angle(a * b.turns)
    elif type(b) is fmpq:
        return _mul(b, a)
    return ball(a) * ball(b)


def _div(a: Number, b: Number) -> Number:
    if not sign(b, 1):
        raise NoValueError("division by zero")
    if type(b) is fmpq:
        return short(a / b) if type(a) is fmpq else _mul(1 / b, a)
    if is_zero(a):
        return a
    if type(a) is Angle and type(b) is Angle:
        return a.turns / b.turns
    return ball(a) / ball(b)


def _pow(a: Number, b: Number) -> Number:
    if type(b) is fmpq and b.q == 1:
        return _whole_power(a, b.p)
    if type(a) is fmpq and a == 1:
        return a
    side = sign(a, 0)
    if side == 0:
        if sign(b, 1) > 0:
            return fmpq(0)
        raise NoValueError("division by zero (0 to a negative power)")
    if side > 0:
        return _root_power(a, b) or ball(a) ** ball(b)
    if whole(b, 1) is None:
        raise NoValueError("a negative number to a power that is not an integer is complex (the principal root)")
    raise UnsureError  # an integer exponent is exact or unknown: never here


def _whole_power(a: Number, n: fmpz) -> Number:
    if n == 0:
        return fmpq(1)
    if n < 0 and not sign(a, 0):
        raise NoValueError("division by zero (0 to a negative power)")
    if type(a) is fmpq:
        if a.height_bits() <= 1 or a.height_bits() * abs(n) <= MOST_BITS:  # 0, 1 and -1 never grow
            power: Number = a ** int(n if a.height_bits() > 1 else n % 2 or 2)
            return power
        if a < 0:
            return _neg(_whole_power(-a, n)) if n % 2 else _whole_power(-a, n)
    if n == 1:
        return a
    base = ball(a)
    if base < 0 and abs(n) > MOST_BITS:
        power = (-base) ** arb(n)
        return -power if n % 2 else power
    return base**n if abs(n) <= MOST_BITS else base ** arb(n)


def _root_power(a: Number, b: Number) -> fmpq | None:
    """``a**b`` where that is a short rational, as ``8**(1/3)``."""
    if type(a) is not fmpq or type(b) is not fmpq or b.q > 64 or a.height_bits() * (abs(b.p) + 1) > MOST_BITS:
        return None
    degree = int(b.q)
    top, bottom = a.p.root(degree), a.q.root(degree)
    return fmpq(top, bottom) ** int(b.p) if top**degree == a.p and bottom**degree == a.q else None


# ---- elementary functions


def _exp(a: Number) -> Number:
    return fmpq(1) if is_zero(a) else ball(a).exp()


def _log(a: Number) -> Number:
    side = sign(a)
    if side <= 0:
        raise NoValueError("the logarithm of zero" if side == 0 else "the logarithm of a negative number")
    return fmpq(0) if type(a) is fmpq and a == 1 else ball(a).log()


def _sqrt(a: Number) -> Number:
    side = sign(a)
    if side < 0:
        raise NoValueError("the square root of a negative number")
    if side == 0:
        return fmpq(0)
    return _root_power(a, _HALF) or ball(a).sqrt()


_HALF = fmpq(1, 2)
_SIN = {0: fmpq(0), 1: _HALF, 3: fmpq(1), 5: _HALF, 6: fmpq(0), 7: -_HALF, 9: fmpq(-1), 11: -_HALF}


def _sin_of_turns(turns: fmpq) -> fmpq | None:
    """sin(pi*turns) where that is rational (Niven's theorem: 0, 1/2 and 1 only, at multiples of pi/6)."""
    return _SIN.get(int((turns * 6).p) % 12) if 6 % turns.q == 0 else None


def _sin(a: Number) -> Number:
    if type(a) is Angle:
        exact = _sin_of_turns(a.turns)
        return arb.sin_pi_fmpq(a.turns) if exact is None else exact
    return a if is_zero(a) else ball(a).sin()


def _cos(a: Number) -> Number:
    if type(a) is Angle:
        exact = _sin_of_turns(a.turns + _HALF)
        return arb.cos_pi_fmpq(a.turns) if exact is None else exact
    return fmpq(1) if is_zero(a) else ball(a).cos()


def _tan(a: Number) -> Number:
    if type(a) is not Angle:
        return a if is_zero(a) else ball(a).tan()
    below = _cos(a)
    if is_zero(below):
        raise NoValueError("the tangent of an odd multiple of pi/2")
    if (a.turns * 4).q == 1 and not is_zero(_sin(a)):
        return fmpq(1 if int((a.turns * 4).p) % 4 == 1 else -1)
    return _div(_sin(a), below)


_ASIN = {fmpq(0): fmpq(0), _HALF: fmpq(1, 6), fmpq(1): _HALF, -_HALF: fmpq(-1, 6), fmpq(-1): -_HALF}
_ATAN = {fmpq(0): fmpq(0), fmpq(1): fmpq(1, 4), fmpq(-1): fmpq(-1, 4)}


def _within_one(a: Number, name: str) -> None:
    if _against(a, 1) > 0 or _against(a, -1) < 0:
        raise NoValueError(f"{name} outside -1 to 1")


def _asin(a: Number) -> Number:
    _within_one(a, "asin")
    return angle(_ASIN[a]) if type(a) is fmpq and a in _ASIN else ball(a).asin()


def _acos(a: Number) -> Number:
    _within_one(a, "acos")
    return angle(_HALF - _ASIN[a]) if type(a) is fmpq and a in _ASIN else ball(a).acos()


def _atan(a: Number) -> Number:
    return angle(_ATAN[a]) if type(a) is fmpq and a in _ATAN else ball(a).atan()


def _atan2(y: Number, x: Number) -> Number:
    if not (is_zero(y) or is_zero(x)) and (ball(x) > 0 or not ball(y).contains(0)):
        return _atan2_of_exact(y, x) or arb.atan2(ball(y), ball(x))
    up, right = sign(y, 0), sign(x, 1)
    if not up and not right:
        raise NoValueError("the angle of the origin, atan2(0, 0)")
    if not up:
        return fmpq(0) if right > 0 else Angle(fmpq(1))
    return Angle(fmpq(up, 2)) if not right else arb.atan2(ball(y), ball(x))


def _atan2_of_exact(y: Number, x: Number) -> Number | None:
    if type(y) is not fmpq or type(x) is not fmpq or abs(y) != abs(x):
        return None
    return Angle(fmpq(1 if y > 0 else -1) * (fmpq(1, 4) if x > 0 else fmpq(3, 4)))


def _acosh(a: Number) -> Number:
    side = _against(a, 1)
    if side < 0:
        raise NoValueError("acosh below 1")
    return ball(a).acosh() if side else fmpq(0)


def _atanh(a: Number) -> Number:
    if _against(a, 1) >= 0 or _against(a, -1) <= 0:
        raise NoValueError("atanh outside the open interval from -1 to 1")
    return a if is_zero(a) else ball(a).atanh()


def _odd(method: str) -> Callable[[Number], Number]:
    """A function that is 0 at 0 and has no other special value."""
    return lambda a: a if is_zero(a) else getattr(ball(a), method)()


# ---- functions with kinks and jumps


def _abs(a: Number) -> Number:
    return _neg(a) if sign(a) < 0 else a


def _sign(a: Number) -> Number:
    return fmpq(sign(a))


def _floor(a: Number) -> Number:
    if type(a) is fmpq:
        return fmpq(a.floor())
    value = ball(a)
    below = value.floor().unique_fmpz()
    if below is None:
        whole(value)
        raise UnsureError
    return fmpq(below)


def _ceil(a: Number) -> Number:
    return _neg(_floor(_neg(a)))


def _max(a: Number, b: Number) -> Number:
    return a if compare(a, b) >= 0 else b


def _min(a: Number, b: Number) -> Number:
    return a if compare(a, b) <= 0 else b


# ---- special functions


def _no_pole(a: Number, name: str) -> None:
    """Poles lie at 0, -1, -2, …"""
    if type(a) is fmpq and a.q == 1 and a <= 0:
        raise NoValueError(f"{name} has a pole at {a.p}")
    if type(a) is arb and a.contains_integer() and not a > 0:
        whole(a)


def _gamma(a: Number) -> Number:
    _no_pole(a, "gamma")
    if type(a) is fmpq and a.q == 1 and a <= 200:
        return fmpq(fmpz(math.factorial(int(a.p) - 1)))
    return ball(a).gamma()


def _lgamma(a: Number) -> Number:
    _no_pole(a, "lgamma")
    if type(a) is fmpq and a in (1, 2):
        return fmpq(0)
    value = ball(a)
    return value.lgamma() if value > 0 else abs(value.gamma()).log()


def _digamma(a: Number) -> Number:
    _no_pole(a, "digamma")
    return ball(a).digamma()


def _polygamma(a: Number, order: int) -> Number:
    _no_pole(a, "polygamma")
    return _digamma(a) if order == 0 else acb(ball(a)).polygamma(order).real


def _besseli(a: Number, order: int) -> Number:
    if is_zero(a):
        return fmpq(0 if order else 1)
    return ball(a).bessel_i(arb(abs(order)))  # I(-n) = I(n), DLMF 10.27.1


# ---- conditions


def _comparison(holds: Callable[[int], bool]) -> Callable[[Number, Number], Truth]:
    def decide(a: Number, b: Number) -> Truth:
        side = compare(a, b)
        return Truth(holds(side), side != 0)

    return decide


def _all(*conditions: Truth) -> Truth:
    """A stable False decides; otherwise all must be stable."""
    if any(c.stable and not c.holds for c in conditions):
        return Truth(holds=False, stable=True)
    return Truth(all(c.holds for c in conditions), all(c.stable for c in conditions))


def _not(condition: Truth) -> Truth:
    return Truth(not condition.holds, condition.stable)


def _any(*conditions: Truth) -> Truth:
    return _not(_all(*map(_not, conditions)))


OPERATIONS: dict[str, Callable[..., Value]] = {
    "pi": lambda: Angle(fmpq(1)), "E": arb.const_e,
    "true": lambda: Truth(holds=True, stable=True), "false": lambda: Truth(holds=False, stable=True),
    "neg": _neg, "add": _add, "sub": _sub, "mul": _mul, "div": _div, "pow": _pow,
    "exp": _exp, "log": _log, "sqrt": _sqrt,
    "sin": _sin, "cos": _cos, "tan": _tan, "asin": _asin, "acos": _acos, "atan": _atan, "atan2": _atan2,
    "sinh": _odd("sinh"), "cosh": lambda a: fmpq(1) if is_zero(a) else ball(a).cosh(), "tanh": _odd("tanh"),
    "asinh": _odd("asinh"), "acosh": _acosh, "atanh": _atanh,
    "abs": _abs, "sign": _sign, "floor": _floor, "ceil": _ceil, "max": _max, "min": _min,
    "erf": _odd("erf"), "erfc": lambda a: fmpq(1) if is_zero(a) else ball(a).erfc(),
    "gamma": _gamma, "lgamma": _lgamma, "digamma": _digamma,
    "lt": _comparison(lambda side: side < 0), "le": _comparison(lambda side: side <= 0),
    "gt": _comparison(lambda side: side > 0), "ge": _comparison(lambda side: side >= 0),
    "eq": _comparison(lambda side: side == 0), "ne": _comparison(lambda side: side != 0),
    "and": _all, "or": _any, "not": _not,
}  # fmt: skip

#: Functions with a constant integer parameter.
WITH_ORDER: dict[str, Callable[[Number, int], Number]] = {"polygamma": _polygamma, "besseli": _besseli}


def compute(op: str, args: Sequence[Any], value: Any = None) -> Value:
    """One operation on exact values.

    Raises:
        NoValueError: there is no real result.
        UnsureError: the present precision cannot tell.
    """
    result = WITH_ORDER[op](args[0], value[0]) if op in WITH_ORDER else OPERATIONS[op](*args)
    if type(result) is arb and not result.is_finite():
        raise UnsureError
    return result
