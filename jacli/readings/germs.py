"""One-sided power series whose coefficients are nodes of the tape: arithmetic and functions.

A germ is what a program looks like infinitely close to the point on one side: ``sum(c[k]*s**k)`` for small s > 0.
Coefficients are exact constants of the same tape, so whether one is zero is settled like any other question. The
series of the functions come from addition theorems and a handful of expansions at 0 (DLMF 4.6, 4.19, 4.24, 4.33,
5.7, 7.6, 10.29), not from the derivative formulas of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, factorial

from flint import fmpq

from jacli.readings import terms
from jacli.readings.balls import Balls, Undefined, Unknown


@dataclass(frozen=True, slots=True)
class Germ:
    """``terms[k]`` is the coefficient of ``s**(start + k)``; what follows is unknown from ``s**order`` on.

    ``order`` None: there is nothing more. Without terms it is exactly 0, or all that is known is ``O(s**order)``
    (then ``start`` is ``order``).
    """

    start: int
    terms: tuple[int, ...]
    order: int | None

    @property
    def nothing(self) -> bool:
        """Exactly zero."""
        return not self.terms and self.order is None


ZERO = Germ(0, (), None)

#: The exponent that stands for a function smaller than every power, such as exp(-1/s). It has many divisors.
FLAT = 720720
_BEYOND = FLAT // 10

#: Whole powers up to this are multiplied out.
_MOST_PRODUCTS = 64

_MOST_RECURRENCES = 64


class MoreTermsError(Exception):
    """The terms kept do not reach far enough."""


@dataclass
class RamifyError(Exception):
    """Fractional powers appear: walk again with t = s**degree."""

    degree: int


@dataclass
class NotRealError(Exception):
    """There is no real value on this side."""

    reason: str


@dataclass
class NoGermError(Exception):
    """Beyond power series: the reason in words."""

    reason: str


# ---- Taylor coefficients at 0

_Series = Callable[[int], tuple[Fraction | int, ...]]


def _taylor(coefficient: Callable[[int], Fraction | int]) -> _Series:
    return lru_cache(maxsize=None)(lambda count: tuple(coefficient(k) for k in range(count)))


_EXP = _taylor(lambda k: Fraction(1, factorial(k)))
_SINH = _taylor(lambda k: Fraction(k % 2, factorial(k)))
_COSH = _taylor(lambda k: Fraction(1 - k % 2, factorial(k)))
_SIN = _taylor(lambda k: Fraction((0, 1, 0, -1)[k % 4], factorial(k)))
_COS = _taylor(lambda k: Fraction((1, 0, -1, 0)[k % 4], factorial(k)))
_LOG1P = _taylor(lambda k: Fraction((-1) ** (k + 1), k) if k else 0)
_ATAN = _taylor(lambda k: Fraction((0, 1, 0, -1)[k % 4], k) if k else 0)


@lru_cache(maxsize=256)
def _binomial(power: Fraction, count: int) -> tuple[Fraction, ...]:
    coefficients = [Fraction(1)]
    for k in range(1, count):
        coefficients.append(coefficients[-1] * (power - k + 1) / k)
    return tuple(coefficients)


class Algebra:
    """Calculating with germs of which ``count`` terms are kept."""

    def __init__(self, balls: Balls, count: int) -> None:
        self.balls = balls
        self.tape = balls.tape
        self.count = count

    # ---- making and taking apart

    def constant(self, node: int) -> Germ:
        """A germ that is one number."""
        return ZERO if self.exactly(node, 0) else Germ(0, (node,), None)

    def exactly(self, node: int, number: int) -> bool:
        """Whether a coefficient is this whole number, as far as is seen without a proof."""
        known = terms.number(self.tape, node)
        if known is None:
            value = self.balls.value(node)
            return type(value) is fmpq and bool(value == number)
        return known == number

    def number(self, value: int | Fraction) -> Germ:
        """A germ that is one known number."""
        return self.constant(self.tape.number(value))

    def coefficient(self, germ: Germ, exponent: int) -> int:
        """The coefficient of ``s**exponent``."""
        place = exponent - germ.start
        if 0 <= place < len(germ.terms):
            return germ.terms[place]
        if germ.order is not None and exponent >= germ.order:
            raise MoreTermsError
        return self.tape.number(0)

    def lead(self, germ: Germ) -> Germ:
        """The germ with a first coefficient that is proved not to be zero (or exactly zero)."""
        for place, node in enumerate(germ.terms):
            if self.sign_of(node):
                return self.made(germ.start + place, list(germ.terms[place:]), germ.order)
        if germ.order is not None:
            raise MoreTermsError
        return ZERO

    def sign(self, germ: Germ) -> int:
        """The germ's sign close to the point."""
        germ = self.lead(germ)
        return 0 if germ.nothing else self.sign_of(germ.terms[0])

    def sign_of(self, node: int) -> int:
        """A coefficient's sign."""
        number = terms.number(self.tape, node)
        if number is not None:
            return (number > 0) - (number < 0)
        found = self.balls.sign(node)
        if isinstance(found, Undefined):
            raise NotRealError(found.reason)
        if isinstance(found, Unknown):
            raise NoGermError("a coefficient cannot be told from zero")
        return found

    def made(self, start: int, coefficients: list[int], order: int | None) -> Germ:
        """A germ in normal form: no zeros in front or behind that are seen without computing, no terms too many."""
        first = 0
        while first < len(coefficients) and terms.number(self.tape, coefficients[first]) == 0:
            first += 1
        kept = coefficients[first : first + self.count]
        start += first
        if len(coefficients) > first + self.count:
            order = start + self.count if order is None else min(order, start + self.count)
        while kept and terms.number(self.tape, kept[-1]) == 0:
            kept.pop()
        if not kept:
            return ZERO if order is None else Germ(order, (), order)
        return Germ(start, tuple(kept), order)

    def split(self, germ: Germ) -> tuple[int, Germ]:
        """The constant term, and the rest, which vanishes at the point. Raises NoGermError at a pole."""
        if germ.start < 0:
            germ = self.lead(germ)
        if germ.start < 0:
            raise NoGermError("it grows without bound close to the point")
        constant = self.coefficient(germ, 0)
        rest = germ.terms[1 - germ.start :] if germ.start == 0 else germ.terms
        return constant, self.made(max(germ.start, 1), list(rest), germ.order)

    def pole(self, germ: Germ) -> int:
        """The sign of a germ that grows without bound, else 0."""
        if germ.start >= 0:
            return 0
        germ = self.lead(germ)
        return self.sign_of(germ.terms[0]) if germ.start < 0 and germ.terms else 0

    # ---- arithmetic

    def neg(self, a: Germ) -> Germ:
        """The negative."""
        return Germ(a.start, tuple(terms.neg(self.tape, node) for node in a.terms), a.order)

    def add(self, a: Germ, b: Germ) -> Germ:
        """The sum."""
        if a.nothing or b.nothing:
            return b if a.nothing else a
        if abs(a.start) > _BEYOND and abs(b.start) > _BEYOND:
            raise NoGermError("two exponentials are compared close to the point")
        start = min(a.start, b.start)
        order = _least(a.order, b.order)
        stop = max(a.start + len(a.terms), b.start + len(b.terms))
        if stop - start > 2 * self.count + len(a.terms) + len(b.terms) or (order is not None and order < stop):
            stop = min(stop, start + self.count) if order is None else min(stop, order, start + self.count)
            order = _least(order, stop)
        return self.made(start, [self._both(a, b, exponent) for exponent in range(start, stop)], order)

    def _both(self, a: Germ, b: Germ, exponent: int) -> int:
        p, q = exponent - a.start, exponent - b.start
        if not 0 <= p < len(a.terms):
            return b.terms[q] if 0 <= q < len(b.terms) else self.tape.number(0)
        return terms.add(self.tape, a.terms[p], b.terms[q]) if 0 <= q < len(b.terms) else a.terms[p]

    def sub(self, a: Germ, b: Germ) -> Germ:
        """The difference."""
        return self.add(a, self.neg(b))

    def mul(self, a: Germ, b: Germ) -> Germ:
        """The product."""
        if a.nothing or b.nothing:
            return ZERO
        start = a.start + b.start
        if abs(start) < _BEYOND < max(abs(a.start), abs(b.start)):
            raise NoGermError("an exponential is multiplied by the inverse of another")
        order = _least(None if a.order is None else a.order + b.start, None if b.order is None else b.order + a.start)
        size = len(a.terms) + len(b.terms) - 1
        if order is not None:
            size = min(size, order - start)
        if size > self.count:
            size, order = self.count, _least(order, start + self.count)
        tape = self.tape
        out = [tape.number(0)] * max(size, 0)
        for i, p in enumerate(a.terms[:size]):
            for j, q in enumerate(b.terms[: size - i]):
                out[i + j] = terms.add(tape, out[i + j], terms.mul(tape, p, q))
        return self.made(start, out, order)

    def times(self, factor: int, a: Germ) -> Germ:
        """A germ times one number."""
        return self.mul(self.constant(factor), a)

    def div(self, a: Germ, b: Germ) -> Germ:
        """The quotient; powers of s that both have cancel."""
        b = self.lead(b)
        if b.nothing:
            raise NotRealError("division by zero")
        if a.nothing:
            return ZERO
        first = b.terms[0]
        scaled = Germ(a.start, tuple(terms.div(self.tape, node, first) for node in a.terms), a.order)
        if len(b.terms) == 1 and b.order is None:
            return self.mul(scaled, Germ(-b.start, (self.tape.number(1),), None))
        return self.number(1) if a == b else self.mul(scaled, self._relative_power(b, Fraction(-1)))

    def _scaled_power(self, a: Germ, power: Fraction) -> Germ:
        """``a**power`` for a germ in lead form."""
        return self.times(self._power_of(a.terms[0], power), self._relative_power(a, power))

    def _relative_power(self, a: Germ, power: Fraction) -> Germ:
        """``(a/c)**power`` with c the first coefficient: a power of s times ``(1 + u)**power``."""
        exponent = a.start * power
        if exponent.denominator != 1:
            raise RamifyError(exponent.denominator)
        if abs(exponent) > _BEYOND:
            exponent = Fraction(FLAT if exponent > 0 else -FLAT)
        relative = [terms.div(self.tape, node, a.terms[0]) for node in a.terms[1:]]
        u = self.made(1, relative, None if a.order is None else a.order - a.start)
        series = self.compose(_binomial(power, self.count), u)
        return self.mul(Germ(int(exponent), (self.tape.number(1),), None), series)

    def _power_of(self, node: int, power: Fraction) -> int:
        if self.exactly(node, 1):
            return self.tape.number(1)
        if power == Fraction(1, 2):
            return self.tape.add("sqrt", node)
        return self.tape.add("pow", node, self.tape.number(power))

    def power(self, a: Germ, power: Fraction) -> Germ:
        """``a**power`` with a constant rational exponent."""
        if power.denominator == 1 and 0 <= power <= _MOST_PRODUCTS:
            return self._product(a, int(power))
        a = self.lead(a)
        if a.nothing:
            if power > 0:
                return ZERO
            raise NotRealError("division by zero")
        if power.denominator != 1 and self.sign_of(a.terms[0]) < 0:
            raise NotRealError("a fractional power of a negative number")
        return self._scaled_power(a, power)

    def _product(self, a: Germ, count: int) -> Germ:
        result = self.number(1)
        while count:
            if count % 2:
                result = self.mul(result, a)
            count //= 2
            a = self.mul(a, a) if count else a
        return result

    def general_power(self, a: Germ, b: Germ) -> Germ:
        """``a**b`` with an exponent that moves or is irrational."""
        a = self.lead(a)
        if a.nothing or a.start > 0:
            return self._power_of_nearly_zero(a, b)
        if self.sign_of(a.terms[0]) < 0:
            raise NotRealError("a negative number to a power that is not an integer")
        return self.exp(self.mul(b, self.log(a)))

    def _power_of_nearly_zero(self, a: Germ, b: Germ) -> Germ:
        exponent, rest = self.split(b)
        side = self.sign_of(exponent) or self.sign(rest)
        if a.nothing:
            if side > 0:
                return ZERO
            raise NotRealError("division by zero")
        if side <= 0 or not rest.nothing:
            raise NoGermError("a logarithm of the distance to the point")
        bound = self.tape.add("floor", terms.mul(self.tape, exponent, self.tape.number(a.start)))
        known = self.balls.value(bound)
        if type(known) is not fmpq or self.sign(a) < 0:
            raise NotRealError("a negative number to a power that is not an integer")
        return Germ(int(known.p), (), int(known.p))

    # ---- functions

    def compose(self, coefficients: tuple[Fraction | int, ...], u: Germ) -> Germ:
        """``sum(c[k]*u**k)`` for a germ that vanishes at the point, by Horner's rule."""
        return self.compose_nodes([self.tape.number(c) for c in coefficients], u)

    def compose_nodes(self, coefficients: list[int], u: Germ) -> Germ:
        """The same for coefficients that are nodes."""
        if u.nothing:
            return self.constant(coefficients[0])
        result = Germ(0, (), 0)  # nothing is known of what follows the last coefficient
        for node in reversed(coefficients):
            result = self.add(self.mul(result, u), self.constant(node))
        return result

    def exp(self, a: Germ) -> Germ:
        """The exponential of c + u is that of c times that of u; at a pole it is beyond every power."""
        side = self.pole(a)
        if side:
            return Germ(-side * FLAT, (self.tape.number(1),), -side * FLAT + 1)
        c, u = self.split(a)
        return self.times(self._of("exp", c, 1), self.compose(_EXP(self.count), u))

    def _of(self, op: str, c: int, at_zero: int | None = None) -> int:
        """A function of a constant; its value at 0 may be known."""
        if at_zero is not None and self.exactly(c, 0):
            return self.tape.number(at_zero)
        return self.tape.add(op, c)

    def log(self, a: Germ) -> Germ:
        """The logarithm of c + u is that of c plus that of 1 + u/c."""
        a = self.lead(a)
        if a.nothing or self.sign_of(a.terms[0]) < 0:
            raise NotRealError("the logarithm of a number that is not positive")
        if a.start:
            raise NoGermError("a logarithm of the distance to the point")
        c, u = self.split(a)
        constant = self.tape.number(0) if self.exactly(c, 1) else self.tape.add("log", c)
        return self.add(self.constant(constant), self.compose(_LOG1P(self.count), self.div(u, self.constant(c))))

    def sqrt(self, a: Germ) -> Germ:
        """The square root."""
        a = self.lead(a)
        if not a.nothing and self.sign_of(a.terms[0]) < 0:
            raise NotRealError("the square root of a negative number")
        return self.power(a, Fraction(1, 2))

    def _turned(self, a: Germ, names: tuple[str, str], series: tuple[Germ, Germ], sign: int) -> Germ:
        """Addition theorem: f(c)*g(u) ± g(c)*f(u), where ``series`` are g(u) and f(u)."""
        c, _ = self.split(a)
        first = self.times(self._of(names[0], c, 0 if names[0].startswith("s") else 1), series[0])
        second = self.times(self._of(names[1], c, 0 if names[1].startswith("s") else 1), series[1])
        return self.add(first, second) if sign > 0 else self.sub(first, second)

    def sin(self, a: Germ) -> Germ:
        """The sine."""
        return self._turned(a, ("sin", "cos"), self._pair(a, _COS, _SIN), 1)

    def cos(self, a: Germ) -> Germ:
        """The cosine."""
        return self._turned(a, ("cos", "sin"), self._pair(a, _COS, _SIN), -1)

    def sinh(self, a: Germ) -> Germ:
        """The hyperbolic sine."""
        return self._turned(a, ("sinh", "cosh"), self._pair(a, _COSH, _SINH), 1)

    def cosh(self, a: Germ) -> Germ:
        """The hyperbolic cosine."""
        return self._turned(a, ("cosh", "sinh"), self._pair(a, _COSH, _SINH), 1)

    def _pair(self, a: Germ, even: _Series, odd: _Series) -> tuple[Germ, Germ]:
        if self.pole(a):
            raise NoGermError("it oscillates or grows without bound close to the point")
        u = self.split(a)[1]
        return self.compose(even(self.count), u), self.compose(odd(self.count), u)

    def tan(self, a: Germ) -> Germ:
        """Sine over cosine."""
        return self.div(self.sin(a), self.cos(a))

    def tanh(self, a: Germ) -> Germ:
        """Hyperbolic sine over cosine."""
        side = self.pole(a)
        if side:
            return self._nearly(side)
        return self.div(self.sinh(a), self.cosh(a))

    def _nearly(self, value: int) -> Germ:
        """A constant up to something smaller than every power."""
        return Germ(0, (self.tape.number(value),), self.count)

    def atan(self, a: Germ) -> Germ:
        """The inverse tangent of c + u is that of c plus that of u/(1 + c*(c + u))."""
        side = self.pole(a)
        if side:  # atan(a) = ±pi/2 - atan(1/a)
            return self.sub(self.constant(self._half_pi(side)), self.atan(self.div(self.number(1), a)))
        c, u = self.split(a)
        below = self.add(self.number(1), self.mul(self.constant(c), a))
        return self.add(self.constant(self._of("atan", c, 0)), self.compose(_ATAN(self.count), self.div(u, below)))

    def _half_pi(self, side: int) -> int:
        return terms.mul(self.tape, self.tape.number(Fraction(side, 2)), self.tape.add("pi"))

    def asin(self, a: Germ) -> Germ:
        """By the angle of the right triangle with legs a and sqrt(1 - a**2)."""
        leg = self.sqrt(self.sub(self.number(1), self.mul(a, a)))
        if leg.nothing:
            return self.constant(self.tape.add("asin", self.split(a)[0]))
        return self._from("asin", a, self.atan(self.div(a, leg)))

    def acos(self, a: Germ) -> Germ:
        """What asin leaves of a right angle."""
        return self._from("acos", a, self.sub(self.constant(self._half_pi(1)), self.asin(a)))

    def asinh(self, a: Germ) -> Germ:
        """By its logarithm (DLMF 4.37.16)."""
        return self._from("asinh", a, self.log(self.add(a, self.sqrt(self.add(self.mul(a, a), self.number(1))))))

    def acosh(self, a: Germ) -> Germ:
        """By its logarithm (DLMF 4.37.19)."""
        return self._from("acosh", a, self.log(self.add(a, self.sqrt(self.sub(self.mul(a, a), self.number(1))))))

    def atanh(self, a: Germ) -> Germ:
        """By its logarithm (DLMF 4.37.24)."""
        difference = self.sub(self.log(self.add(self.number(1), a)), self.log(self.sub(self.number(1), a)))
        return self._from("atanh", a, self.times(self.tape.number(Fraction(1, 2)), difference))

    def _from(self, op: str, a: Germ, result: Germ) -> Germ:
        """``result`` with its constant term written as the function of the argument's."""
        return self.add(self.constant(self.tape.add(op, self.split(a)[0])), self.split(result)[1])

    def atan2(self, y: Germ, x: Germ) -> Germ:
        """The angle of a point, from the quotient that stays bounded."""
        up, right = self.sign(y), self.sign(x)
        y, x = self.lead(y), self.lead(x)
        if not up and not right:
            raise NotRealError("the angle of the origin")
        if right and (not up or x.start <= y.start):
            angle = self.atan(self.div(y, x))
            if right > 0:
                return angle
            turn = self._half_pi(2 if up >= 0 else -2)
            return self.add(self.constant(turn), angle)
        return self.sub(self.constant(self._half_pi(up)), self.atan(self.div(x, y)))

    def abs(self, a: Germ) -> Germ:
        """The absolute value."""
        return self.neg(a) if self.sign(a) < 0 else a

    def floor(self, a: Germ) -> Germ:
        """The greatest integer, which just left of an integer is one less."""
        c, rest = self.split(a)
        value = self.balls.value(c)
        if type(value) is fmpq and value.q == 1:
            return self.number(int(value.p) - (self.sign(rest) < 0))
        return self.constant(self.tape.add("floor", c))

    # ---- special functions

    def erf(self, a: Germ) -> Germ:
        """The error function."""
        side = self.pole(a)
        return self._nearly(side) if side else self._error_function("erf", a, 1)

    def erfc(self, a: Germ) -> Germ:
        """Its complement."""
        side = self.pole(a)
        return self._nearly(1 - side) if side else self._error_function("erfc", a, -1)

    def _error_function(self, op: str, a: Germ, sign: int) -> Germ:
        """The integral of 2/sqrt(pi)*exp(-(c + u)**2) over u, term by term."""
        c, u = self.split(a)
        tape = self.tape
        unit = Germ(1, (tape.number(1),), None)
        through = self.mul(unit, self.add(self.constant(terms.mul(tape, tape.number(2), c)), unit))
        inner = self.exp(self.neg(through))
        scale = terms.mul(tape, tape.number(2 * sign), self._of("exp", terms.neg(tape, terms.mul(tape, c, c)), 1))
        scale = terms.div(tape, scale, tape.add("sqrt", tape.add("pi")))
        integral = [
            terms.mul(tape, scale, terms.mul(tape, tape.number(Fraction(1, k + 1)), self.coefficient(inner, k)))
            for k in range(self.count)
        ]
        return self.compose_nodes([tape.add(op, c), *integral], u)

    def gamma(self, a: Germ) -> Germ:
        """At a pole by the recurrence DLMF 5.5.1; elsewhere the exponential of the series of lgamma."""
        shift = self._to_the_right(a)
        if shift:
            below = self._product_of(a, shift)
            return self.div(self.gamma(self.add(a, self.number(shift))), below)
        c, u = self.split(a)
        growth = self.compose_nodes([self.tape.number(0), *self._polygammas(c, 0, self.count)], u)
        return self.times(self.tape.add("gamma", c), self.exp(growth))

    def lgamma(self, a: Germ) -> Germ:
        """The logarithm of the gamma function."""
        if self._to_the_right(a):
            raise NoGermError("a logarithm of the distance to the point")
        c, u = self.split(a)
        return self.compose_nodes([self.tape.add("lgamma", c), *self._polygammas(c, 0, self.count)], u)

    def digamma(self, a: Germ) -> Germ:
        """The derivative of lgamma."""
        return self.polygamma(a, 0)

    def polygamma(self, a: Germ, order: int) -> Germ:
        """At a pole by the recurrence DLMF 5.15.5."""
        shift = self._to_the_right(a)
        if shift:
            result = self.polygamma(self.add(a, self.number(shift)), order)
            sign = (-1) ** order * factorial(order)
            for k in range(shift):
                step = self.power(self.add(a, self.number(k)), Fraction(-order - 1))
                result = self.sub(result, self.times(self.tape.number(sign), step))
            return result
        c, u = self.split(a)
        tape = self.tape
        first = _polygamma(self.balls, order, c)
        more = [
            terms.mul(tape, tape.number(Fraction(1, factorial(k))), _polygamma(self.balls, order + k, c))
            for k in range(1, self.count)
        ]
        return self.compose_nodes([first, *more], u)

    def _polygammas(self, c: int, order: int, count: int) -> list[int]:
        """The Taylor coefficients of lgamma at c, from the first power on."""
        tape = self.tape
        return [
            terms.mul(tape, tape.number(Fraction(1, factorial(k + 1))), _polygamma(self.balls, order + k, c))
            for k in range(count)
        ]

    def _to_the_right(self, a: Germ) -> int:
        """How many steps of 1 take the germ off the poles 0, -1, -2, … (0 when it is not at one)."""
        value = self.balls.value(self.split(a)[0])
        if type(value) is not fmpq or value.q != 1 or value > 0:
            return 0
        if value < -_MOST_RECURRENCES:
            raise NoGermError("a far pole of the gamma function")
        return 1 - int(value.p)

    def _product_of(self, a: Germ, count: int) -> Germ:
        result = self.number(1)
        for k in range(count):
            result = self.mul(result, self.add(a, self.number(k)))
        return result

    def besseli(self, a: Germ, order: int) -> Germ:
        """The k-th derivative is a binomial sum of neighbours (DLMF 10.29.5)."""
        c, u = self.split(a)
        tape = self.tape
        coefficients = []
        for k in range(self.count):
            total = tape.number(0)
            for i in range(k + 1):
                neighbour = tape.add("besseli", c, value=(abs(order - k + 2 * i),))
                total = terms.add(tape, total, terms.mul(tape, tape.number(comb(k, i)), neighbour))
            coefficients.append(terms.mul(tape, tape.number(Fraction(1, factorial(k) * 2**k)), total))
        return self.compose_nodes(coefficients, u)


def _polygamma(balls: Balls, order: int, c: int) -> int:
    return balls.tape.add("digamma", c) if order == 0 else balls.tape.add("polygamma", c, value=(order,))


def _least(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)
