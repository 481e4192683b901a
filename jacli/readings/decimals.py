"""Exact numbers as decimal strings and as doubles, correctly rounded."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction

from flint import arb, ctx, fmpq

from jacli.readings.exact import Number, ball

#: Significant digits of every number that is shown.
DIGITS = 20

#: Bits for numbers that become balls only to be written.
_WIDER = 256


def _context(digits: int) -> Context:
    return Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN)


_CONTEXT = _context(DIGITS)


def decimal(value: Number, digits: int = DIGITS) -> str:
    """The number with 20 significant digits (or as many as asked for), or all of them if they are fewer."""
    if type(value) is fmpq:
        return written(_context(digits).divide(Decimal(int(value.p)), Decimal(int(value.q))), digits)
    with ctx.workprec(_WIDER):
        middle, _, exponent = ball(value).mid_rad_10exp(digits + 5)
    return written(Decimal(int(middle)), digits, int(exponent))


def written(number: Decimal, digits: int = DIGITS, power: int = 0) -> str:
    """``number*10**power`` without trailing zeros; with an exponent where it is far from 1."""
    context = _CONTEXT if digits == DIGITS else _context(digits)
    number = number.normalize(context)
    if not number:
        return "0"
    sign, figures, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise TypeError("a decimal that is not finite")
    size = len(figures) + exponent + power - 1
    if -7 <= size < DIGITS + 1:
        return format(number.scaleb(power, context), "f")
    text = "".join(map(str, figures))
    mantissa = text[0] + ("." + text[1:] if len(text) > 1 else "")
    return f"{'-' if sign else ''}{mantissa}e{'+' if size > 0 else '-'}{abs(size):02d}"


def is_writable(value: Number) -> bool:
    """Whether the number's exponent can itself be written (in some 600 digits)."""
    return type(value) is not arb or int(value.mid().man_exp()[1]).bit_length() <= _LONGEST_EXPONENT


_LONGEST_EXPONENT = 2048


def nearest(value: Number) -> float | None:
    """The double nearest to the number; infinite when it is too large; None when the ball is too wide to tell."""
    if type(value) is fmpq:
        return _float(Fraction(int(value.p), int(value.q)))
    with ctx.workprec(_WIDER):
        number = ball(value)
    if abs(number) < _TINY:
        return 0.0
    if abs(number) > _HUGE:
        return float("inf") if number > 0 else float("-inf")
    middle, radius = _fraction(number.mid()), _fraction(number.rad())
    low, high = _float(middle - radius), _float(middle + radius)
    return low if low == high else None


_TINY, _HUGE = arb(2) ** -1100, arb(2) ** 1100


def _fraction(number: arb) -> Fraction:
    mantissa, exponent = number.man_exp()
    power = int(exponent)
    return Fraction(int(mantissa) << power) if power >= 0 else Fraction(int(mantissa), 1 << -power)


def _float(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
