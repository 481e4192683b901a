"""Asymptotic expansions on one side of the point: arithmetic and functions.

A germ is what a program looks like infinitely close to the point on one side, for small s > 0: a sum of terms
``c * s**a / log(1/s)**l``, the largest first, perhaps times an exponential of such terms, and a bound on what is
left out. Such functions of one variable can be compared, and the larger of two wins for good (Hardy, Orders of
Infinity, 1910; Gruntz, doctoral thesis, ETH Zürich 1996, for the method). Coefficients are exact constants of the
same tape, so whether one is zero is settled like any other question. The series of the functions come from addition
theorems and a handful of expansions at 0 (DLMF 4.6, 4.19, 4.24, 4.33, 5.7, 7.6, 10.29), not from the derivative
formulas of the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from math import comb, factorial

from flint import arb, fmpq

from jacli.readings import terms
from jacli.readings.balls import Balls, Known, Undefined, Unknown
from jacli.readings.exact import Angle

#: How small a term is: ``s**a / log(1/s)**l``. Of two, the one that is larger as a pair is smaller close to the point.
Exponent = tuple[Fraction | int | float, Fraction | int]

#: An exponent and the node of its coefficient.
Term = tuple[Exponent, int]

#: The exponents of a constant, of the distance to the point, and of the logarithm of its inverse.
CONSTANT: Exponent = (0, 0)
DISTANCE: Exponent = (1, 0)
LOGARITHM: Exponent = (0, -1)

#: A bound on what is smaller than every power of s.
_FLAT: Exponent = (math.inf, 0)


class Rest(Enum):
    """What is known of the part that a germ's terms leave out, next to its bound.

    ``CUT``: more terms would tell. ``BOUNDED``: nothing will. ``SWINGS``: divided by the bound it has no limit.
    """

    CUT = 0
    BOUNDED = 1
    SWINGS = 2


@dataclass(frozen=True, slots=True)
class Germ:
    """``exp(scale) * (terms + rest)``, the terms with growing exponents.

    Attributes:
        terms: the coefficients that are kept.
        order: the rest is at most a constant times this; None where there is no rest. Terms are larger.
        rest: what more is known of it.
        scale: terms each larger than ``log(1/s)``, the first one surely not zero; empty for an exponential of 0.
    """

    terms: tuple[Term, ...]
    order: Exponent | None = None
    rest: Rest = Rest.CUT
    scale: tuple[Term, ...] = ()

    @property
    def nothing(self) -> bool:
        """Exactly zero."""
        return not self.terms and self.order is None

    @property
    def first(self) -> Exponent:
        """The exponent that bounds all of it, the scale aside. Not for what is exactly zero."""
        if self.terms:
            return self.terms[0][0]
        if self.order is None:
            raise ValueError("zero has no exponent")
        return self.order

    @property
    def plain(self) -> bool:
        """A power series, as far as is seen: it serves both sides of the point."""
        whole = all(isinstance(a, int) or getattr(a, "denominator", 0) == 1 for (a, _), _ in self.terms)
        return whole and not self.scale and self.rest is Rest.CUT and all(not log for (_, log), _ in self.terms)

    @property
    def vague(self) -> bool:
        """No more than a bound is known, however many terms are kept."""
        return not self.terms and self.order is not None and self.rest is not Rest.CUT

    @property
    def unsettled(self) -> bool:
        """It has a bound close to the point, but no limit that is known, however many terms are kept."""
        late = self.order is None or self.order > CONSTANT
        return not late and not self.scale and self.rest is not Rest.CUT


ZERO = Germ(())

#: All that is known is that it stays bounded; and one that surely has no limit either.
BOUNDED = Germ((), CONSTANT, Rest.BOUNDED)
SWINGING = Germ((), CONSTANT, Rest.SWINGS)

#: Whole powers up to this are multiplied out.
_MOST_PRODUCTS = 64

_MOST_RECURRENCES = 64

#: Products of terms that one look is worth: some three times what it has taken where it told something.
_MOST_TERM_PRODUCTS = 30_000

#: Irrational exponents are bounded by multiples of one over this.
_STEPS = 64

#: Functions that stay bounded whatever their argument is, and those that do where their argument does.
_ALWAYS_BOUNDED = frozenset(("sin", "cos", "tanh", "atan", "erf", "erfc"))
_CONTINUOUS = frozenset(("exp", "sinh", "cosh", "asinh"))


class MoreTermsError(Exception):
    """The terms kept do not reach far enough."""


@dataclass
class NotRealError(Exception):
    """There is no real value on this side."""

    reason: str


@dataclass
class NoGermError(Exception):
    """Beyond these expansions: the reason in words."""

    reason: str


# ---- Taylor coefficients at 0

#: Relative accuracy, in bits, of an exponent.
_ENOUGH = 64

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

    def __init__(self, balls: Balls, count: int, beside: int | None = None) -> None:
        self.balls = balls
        self.beside = beside  # a variable that stays, whose coefficients are not put in
        self.tape = balls.tape
        self.count = count
        self.signs: set[int] = set()  # nodes that had to have the sign they have
        self.used: set[int] = set()  # nodes that had to have a value
        self.equal: set[int] = set()  # nodes that had to have the very value they have
        self.products = 0  # of terms, so far

    # ---- making and taking apart

    def constant(self, node: int) -> Germ:
        """A germ that is one number."""
        return ZERO if self.exactly(node, 0) else self.monomial(CONSTANT, node)

    def monomial(self, exponent: Exponent, node: int | None = None) -> Germ:
        """A germ of one term, with the coefficient 1 unless another is given."""
        return Germ(((exponent, self.tape.number(1) if node is None else node),))

    def exactly(self, node: int, number: int) -> bool:
        """Whether a coefficient is this whole number, as far as is seen without a proof."""
        known = terms.number(self.tape, node)
        if known is not None:
            return known == number
        if self.beside is not None and self.beside in self.tape.needed((node,)):
            return False
        return self.holds(node, lambda value: value == number)

    def holds(self, node: int, test: Callable[[fmpq], bool]) -> bool:
        """Whether a coefficient is a fraction that passes a test. It is noted that what follows depends on it."""
        value = self.balls.value(node)
        passed = type(value) is fmpq and test(value)
        (self.equal if passed else self.signs).add(node)
        return passed

    def exact(self, node: int, accuracy: int = 0) -> Known:
        """A coefficient's very value. It is noted that what follows depends on it."""
        self.equal.add(node)
        return self.balls.value(node, accuracy)

    def number(self, value: int | Fraction) -> Germ:
        """A germ that is one known number."""
        return self.constant(self.tape.number(value))

    def coefficient(self, germ: Germ, exponent: Exponent) -> int:
        """The coefficient of an exponent."""
        if germ.scale:
            if self.scale_sign(germ.scale) < 0:
                return self.tape.number(0)
            raise NoGermError("it grows without bound close to the point")
        for each, node in germ.terms:
            if each == exponent:
                return node
        if germ.order is not None and exponent >= germ.order:
            raise self._hidden(germ)
        return self.tape.number(0)

    def swings(self, germ: Germ, exponent: Exponent) -> bool:
        """Divided by this term it surely has no limit, what is larger aside."""
        return germ.rest is Rest.SWINGS and germ.order == exponent and not germ.scale

    def _hidden(self, germ: Germ) -> MoreTermsError | NoGermError:
        """Why the rest of a germ says nothing."""
        if germ.rest is Rest.CUT:
            return MoreTermsError()
        return NoGermError("no more than a bound is known close to the point")

    def lead(self, germ: Germ) -> Germ:
        """The germ with a first coefficient that is proved not to be zero (or exactly zero)."""
        for place, (_, node) in enumerate(germ.terms):
            if self.sign_of(node):
                return replace(germ, terms=germ.terms[place:])
        if germ.order is not None:
            raise self._hidden(germ)
        return ZERO

    def sign(self, germ: Germ) -> int:
        """The germ's sign close to the point."""
        germ = self.lead(germ)
        return 0 if germ.nothing else self.sign_of(germ.terms[0][1])

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
        (self.signs if found else self.equal).add(node)
        return found

    def made(
        self,
        found: Iterable[Term],
        order: Exponent | None,
        rest: Rest = Rest.CUT,
        scale: tuple[Term, ...] = (),
    ) -> Germ:
        """A germ in normal form: sorted, without zeros that are seen without computing, and no terms too many."""
        kept = sorted(term for term in found if terms.number(self.tape, term[1]) != 0)
        if order is not None:
            kept = [term for term in kept if term[0] < order]
        if len(kept) > self.count:
            order, rest, kept = kept[self.count][0], Rest.CUT, kept[: self.count]
        return Germ(tuple(kept), order, rest, scale) if kept or order is not None else ZERO

    def parts(self, germ: Germ) -> tuple[list[Term], int, Germ]:
        """The terms that grow without bound, the constant term, and what vanishes at the point."""
        if germ.scale and self.scale_sign(germ.scale) < 0:
            return [], self.tape.number(0), germ
        constant = self.coefficient(germ, CONSTANT)
        large = [term for term in germ.terms if term[0] < CONSTANT and self.sign_of(term[1])]
        small = [term for term in germ.terms if term[0] > CONSTANT]
        return large, constant, self.made(small, germ.order, germ.rest)

    def split(self, germ: Germ) -> tuple[int, Germ]:
        """The constant term, and the rest, which vanishes at the point. Raises NoGermError at a pole."""
        large, constant, rest = self.parts(germ)
        if large:
            raise NoGermError("it grows without bound close to the point")
        return constant, rest

    def pole(self, germ: Germ) -> int:
        """The sign of a germ that grows without bound, else 0."""
        if germ.nothing or (self.scale_sign(germ.scale) or (germ.first < CONSTANT)) <= 0:
            return 0
        germ = self.lead(germ)
        if germ.nothing or (not germ.scale and germ.first >= CONSTANT):
            return 0
        return self.sign_of(germ.terms[0][1])

    def scale_sign(self, scale: tuple[Term, ...]) -> int:
        """1 for an exponential that grows, -1 for one that vanishes, 0 for none."""
        return self.sign_of(scale[0][1]) if scale else 0

    # ---- arithmetic

    def neg(self, a: Germ) -> Germ:
        """The negative."""
        return replace(a, terms=tuple((e, terms.neg(self.tape, node)) for e, node in a.terms))

    def add(self, a: Germ, b: Germ) -> Germ:
        """The sum. Beside an exponential, one that grows slower is lost in the rest."""
        if a.nothing or b.nothing:
            return b if a.nothing else a
        side = self.scale_sign(self._joined(a.scale, b.scale, -1)) if a.scale != b.scale else 0
        if side:
            a, b = (a, b) if side > 0 else (b, a)
            b = Germ((), _FLAT, Rest.BOUNDED)
        order, rest = _larger((a.order, a.rest), (b.order, b.rest))
        total = dict(a.terms)
        for exponent, node in b.terms:
            total[exponent] = terms.add(self.tape, total[exponent], node) if exponent in total else node
        return self.made(total.items(), order, rest, a.scale)

    def _joined(self, a: tuple[Term, ...], b: tuple[Term, ...], factor: int = 1) -> tuple[Term, ...]:
        """The scale ``a + factor*b``, without the terms that are proved to cancel."""
        total = dict(a)
        for exponent, node in b:
            given = terms.neg(self.tape, node) if factor < 0 else node
            total[exponent] = terms.add(self.tape, total[exponent], given) if exponent in total else given
        return tuple(term for term in sorted(total.items()) if self.sign_of(term[1]))

    def sub(self, a: Germ, b: Germ) -> Germ:
        """The difference."""
        return self.add(a, self.neg(b))

    def mul(self, a: Germ, b: Germ) -> Germ:
        """The product."""
        if a.nothing or b.nothing:
            return ZERO
        self.products += len(a.terms) * len(b.terms)
        if self.products > _MOST_TERM_PRODUCTS:
            raise NoGermError("the program is too long for a closer look")
        order, rest = _larger(self._rest_times(a, b), self._rest_times(b, a))
        exponents = sorted({_plus(e, f) for e, _ in a.terms for f, _ in b.terms})
        if len(exponents) > self.count:  # those beyond would be cut
            order, rest = _larger((order, rest), (exponents[self.count], Rest.CUT))
        total: dict[Exponent, int] = {}
        for e, p in a.terms:
            for f, q in b.terms:
                exponent = _plus(e, f)
                if order is None or exponent < order:
                    product = terms.mul(self.tape, p, q)
                    known = total.get(exponent)
                    total[exponent] = product if known is None else terms.add(self.tape, known, product)
        return self.made(total.items(), order, rest, self._joined(a.scale, b.scale))

    def _rest_times(self, a: Germ, b: Germ) -> tuple[Exponent | None, Rest]:
        """The rest of a germ times another."""
        if a.order is None:
            return None, Rest.CUT
        swings = a.rest is Rest.SWINGS and self._surely(b)
        return _plus(a.order, b.first), a.rest if swings or a.rest is Rest.CUT else Rest.BOUNDED

    def _surely(self, germ: Germ) -> bool:
        """The first coefficient is proved not to be zero."""
        try:
            return bool(germ.terms and self.sign_of(germ.terms[0][1]))
        except NoGermError:
            return False

    def times(self, factor: int, a: Germ) -> Germ:
        """A germ times one number."""
        return self.mul(self.constant(factor), a)

    def div(self, a: Germ, b: Germ) -> Germ:
        """The quotient; powers of s that both have cancel."""
        b = self.lead(b)
        if b.nothing:
            raise NotRealError("division by zero")
        first = b.terms[0][1]
        scaled = replace(a, terms=tuple((e, terms.div(self.tape, node, first)) for e, node in a.terms))
        return self.mul(scaled, self._relative_power(b, Fraction(-1)))

    def _relative(self, a: Germ) -> Germ:
        """The u of ``first term * (1 + u)`` for a germ in lead form."""
        exponent, first = a.terms[0]
        back = _times(exponent, -1)
        relative = [(_plus(e, back), terms.div(self.tape, node, first)) for e, node in a.terms[1:]]
        return self.made(relative, None if a.order is None else _plus(a.order, back), a.rest)

    def _relative_power(self, a: Germ, power: Fraction) -> Germ:
        """``(a/c)**power`` with c the first coefficient: a power of s times ``(1 + u)**power``."""
        factor = self.tape.number(power)
        scale = tuple((e, terms.mul(self.tape, node, factor)) for e, node in a.scale)
        front = replace(self.monomial(_times(a.first, power)), scale=scale)
        return self.mul(front, self.compose(_binomial(power, self.count), self._relative(a)))

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
        if power.denominator != 1 and self.sign_of(a.terms[0][1]) < 0:
            raise NotRealError("a fractional power of a negative number")
        return self.times(self._power_of(a.terms[0][1], power), self._relative_power(a, power))

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
        if a.nothing:
            up = self.pole(b) or self.sign(b)
            if up >= 0:
                return ZERO if up else self.number(1)
            raise NotRealError("division by zero")
        if self.sign_of(a.terms[0][1]) < 0:
            if not self._leaves_integers(b):
                raise NoGermError("a negative number to a power that may be an integer")
            raise NotRealError("a negative number to a power that is not an integer")
        return self.exp(self.mul(b, self.log(a)))

    def still(self, a: Germ) -> int | None:
        """The node of the one number that a germ is all along, None where it moves or may move."""
        if a.scale or a.order is not None or any(exponent != CONSTANT for exponent, _ in a.terms):
            return None
        return a.terms[0][1] if a.terms else self.tape.number(0)

    def _leaves_integers(self, a: Germ) -> bool:
        """It is not an integer close to the point, as it moves without jumps, or does not move and is none."""
        large, c, rest = self.parts(a)
        if not self.lead(rest).nothing or large:
            return a.rest is Rest.CUT or a.order > CONSTANT  # type: ignore[operator]
        value = self.exact(c)
        return isinstance(value, Angle) or (isinstance(value, arb) and not value.contains_integer())

    def derivative(self, a: Germ) -> Germ:
        """The derivative by s of an exact germ without a scale, term by term."""
        if a.scale or a.order is not None:
            raise ValueError("the derivative of a rest may be anything")
        total = ZERO
        for (power, logs), node in a.terms:
            for factor, exponent in ((power, (power - 1, logs)), (logs, (power - 1, logs + 1))):
                slope = terms.mul(self.tape, self.tape.number(Fraction(factor)), node)
                total = self.add(total, self.made([(exponent, slope)], None))
        return total

    # ---- functions

    def apply(self, op: str, given: list[Germ], value: tuple[int, ...] | None) -> Germ:
        """An operation by its name on the tape. What has no limit may still have a function that stays bounded."""
        inside = op in _CONTINUOUS and given[0].vague and given[0].order == CONSTANT
        if given[0].unsettled and (op in _ALWAYS_BOUNDED or inside):
            return BOUNDED
        return getattr(self, op)(*given, *(value or ()))  # type: ignore[no-any-return]

    def compose(self, coefficients: tuple[Fraction | int, ...], u: Germ) -> Germ:
        """``sum(c[k]*u**k)`` for a germ that vanishes at the point, by Horner's rule."""
        return self.compose_nodes([self.tape.number(c) for c in coefficients], u)

    def compose_nodes(self, coefficients: list[int], u: Germ) -> Germ:
        """The same for coefficients that are nodes."""
        if u.nothing:
            return self.constant(coefficients[0])
        result = Germ((), CONSTANT)  # nothing is known of what follows the last coefficient
        for node in reversed(coefficients):
            result = self.add(self.mul(result, u), self.constant(node))
        return result

    def exp(self, a: Germ) -> Germ:
        """The exponential of a sum: that of large terms is a power of s or a scale, the rest is expanded."""
        side = self.scale_sign(a.scale)
        if side > 0 and self.sign(a) < 0:
            return Germ((), _FLAT, Rest.BOUNDED)
        if side > 0:
            raise NoGermError("an exponential of an exponential")
        large, c, u = self.parts(a)
        front = self.number(1)
        for term in large:
            front = self.mul(front, self._exp_of_large(term))
        return self.mul(front, self.times(self._of("exp", c, 1), self.compose(_EXP(self.count), u)))

    def _exp_of_large(self, term: Term) -> Germ:
        """The exponential of one term that grows without bound; that of ``k*log(1/s)`` is ``s**-k``."""
        exponent, node = term
        if LOGARITHM < exponent < CONSTANT:
            raise NoGermError("a growth between logarithms and powers")
        if exponent != LOGARITHM:
            return replace(self.number(1), scale=(term,))
        value = self.exact(node, _ENOUGH)
        if isinstance(value, fmpq):
            return self.monomial((Fraction(-int(value.p), int(value.q)), 0))
        if isinstance(value, Angle):
            value = arb.pi() * value.turns
        if not isinstance(value, arb):
            raise NoGermError("a constant cannot be decided")
        below = (-value * _STEPS).floor().lower().floor().unique_fmpz()
        if below is None:
            raise NoGermError("an exponent cannot be decided")
        return Germ((), (Fraction(int(below), _STEPS), 0), Rest.BOUNDED)

    def _of(self, op: str, c: int, at_zero: int | None = None) -> int:
        """A function of a constant; its value at 0 may be known."""
        if at_zero is not None and self.exactly(c, 0):
            return self.tape.number(at_zero)
        return self.tape.add(op, c)

    def log(self, a: Germ) -> Germ:
        """The logarithm of a product: that of the first term, plus that of 1 + u."""
        a = self.lead(a)
        if a.nothing or self.sign_of(a.terms[0][1]) < 0:
            raise NotRealError("the logarithm of a number that is not positive")
        (power, logs), c = a.terms[0]
        if logs:
            raise NoGermError("a logarithm of a logarithm")
        first = self.constant(self.tape.number(0) if self.exactly(c, 1) else self.tape.add("log", c))
        distance = self.monomial(LOGARITHM, self.tape.number(-Fraction(power))) if power else ZERO
        large = self.add(Germ(a.scale), distance)
        return self.add(self.add(large, first), self.compose(_LOG1P(self.count), self._relative(a)))

    def sqrt(self, a: Germ) -> Germ:
        """The square root."""
        a = self.lead(a)
        if not a.nothing and self.sign_of(a.terms[0][1]) < 0:
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
        return self._wave(a) or self._turned(a, ("sin", "cos"), self._pair(a, _COS, _SIN), 1)

    def cos(self, a: Germ) -> Germ:
        """The cosine."""
        return self._wave(a) or self._turned(a, ("cos", "sin"), self._pair(a, _COS, _SIN), -1)

    def _wave(self, a: Germ) -> Germ | None:
        """What a periodic function makes of an argument without limit. It surely has none itself where the argument
        is, but for what vanishes, continuous and takes all large values.
        """
        if not self.pole(a):
            return None
        settled = a.order is None or (not a.scale and a.order > CONSTANT)
        return SWINGING if settled else BOUNDED

    def sinh(self, a: Germ) -> Germ:
        """The hyperbolic sine."""
        if self.pole(a):
            return self._halved(self.sub(self.exp(a), self.exp(self.neg(a))))
        return self._turned(a, ("sinh", "cosh"), self._pair(a, _COSH, _SINH), 1)

    def cosh(self, a: Germ) -> Germ:
        """The hyperbolic cosine."""
        if self.pole(a):
            return self._halved(self.add(self.exp(a), self.exp(self.neg(a))))
        return self._turned(a, ("cosh", "sinh"), self._pair(a, _COSH, _SINH), 1)

    def _halved(self, a: Germ) -> Germ:
        return self.times(self.tape.number(Fraction(1, 2)), a)

    def _pair(self, a: Germ, even: _Series, odd: _Series) -> tuple[Germ, Germ]:
        u = self.split(a)[1]
        return self.compose(even(self.count), u), self.compose(odd(self.count), u)

    def tan(self, a: Germ) -> Germ:
        """Sine over cosine."""
        return self.div(self.sin(a), self.cos(a))

    def tanh(self, a: Germ) -> Germ:
        """Hyperbolic sine over cosine; at a pole ±(1 - q)/(1 + q) with q = exp(-2*abs(a))."""
        side = self.pole(a)
        if not side:
            return self.div(self.sinh(a), self.cosh(a))
        q, one = self.exp(self.times(self.tape.number(-2 * side), a)), self.number(1)
        return self.times(self.tape.number(side), self.div(self.sub(one, q), self.add(one, q)))

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
        if self.pole(a):
            return result
        return self.add(self.constant(self.tape.add(op, self.split(a)[0])), self.split(result)[1])

    def atan2(self, y: Germ, x: Germ) -> Germ:
        """The angle of a point, from the quotient that stays bounded."""
        up, right = self.sign(y), self.sign(x)
        if not up and not right:
            raise NotRealError("the angle of the origin")
        slope = self.div(y, x) if right else ZERO
        if not right or self.pole(slope):
            return self.sub(self.constant(self._half_pi(up)), self.atan(self.div(x, y)))
        angle = self.atan(slope)
        if right > 0:
            return angle
        return self.add(self.constant(self._half_pi(2 if up >= 0 else -2)), angle)

    def abs(self, a: Germ) -> Germ:
        """The absolute value."""
        if a.vague:
            return replace(a, rest=Rest.BOUNDED)
        return self.neg(a) if self.sign(a) < 0 else a

    def floor(self, a: Germ) -> Germ:
        """The greatest integer, which just left of an integer is one less. At a pole the fraction swings."""
        wave = BOUNDED if a.unsettled else self._wave(a)
        if wave:
            return self.add(a, wave)
        c, rest = self.split(a)
        if self.holds(c, _is_whole):
            return self.number(int(self.balls.value(c).p) - (self.sign(rest) < 0))  # type: ignore[union-attr]
        return self.constant(self.tape.add("floor", c))

    # ---- special functions

    def erf(self, a: Germ) -> Germ:
        """The error function."""
        side = self.pole(a)
        return self.sub(self.number(side), self._tail(a)) if side else self._error_function("erf", a, 1)

    def erfc(self, a: Germ) -> Germ:
        """Its complement."""
        side = self.pole(a)
        return self.add(self.number(1 - side), self._tail(a)) if side else self._error_function("erfc", a, -1)

    def _tail(self, a: Germ) -> Germ:
        """At a pole the error function is within ``exp(-a**2)`` of its limit (DLMF 7.8.1)."""
        return self.mul(self.exp(self.neg(self.mul(a, a))), BOUNDED)

    def _error_function(self, op: str, a: Germ, sign: int) -> Germ:
        """The integral of 2/sqrt(pi)*exp(-(c + u)**2) over u, term by term."""
        c, u = self.split(a)
        tape = self.tape
        unit = self.monomial(DISTANCE)
        through = self.mul(unit, self.add(self.constant(terms.mul(tape, tape.number(2), c)), unit))
        inner = self.exp(self.neg(through))
        scale = terms.mul(tape, tape.number(2 * sign), self._of("exp", terms.neg(tape, terms.mul(tape, c, c)), 1))
        scale = terms.div(tape, scale, tape.add("sqrt", tape.add("pi")))
        integral = [
            terms.mul(tape, scale, terms.mul(tape, tape.number(Fraction(1, k + 1)), self.coefficient(inner, (k, 0))))
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
        shift = self._to_the_right(a)
        if shift:
            return self.sub(
                self.lgamma(self.add(a, self.number(shift))), self.log(self.abs(self._product_of(a, shift)))
            )
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
        c = self.split(a)[0]
        if not self.holds(c, lambda value: _is_whole(value) and value <= 0):
            return 0
        steps = 1 - int(self.balls.value(c).p)  # type: ignore[union-attr]
        if steps > _MOST_RECURRENCES:
            raise NoGermError("a far pole of the gamma function")
        return steps

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


def _is_whole(value: fmpq) -> bool:
    return bool(value.q == 1)


def _plus(a: Exponent, b: Exponent) -> Exponent:
    return a[0] + b[0], a[1] + b[1]


def _times(exponent: Exponent, factor: Fraction | int) -> Exponent:
    return exponent[0] * factor, exponent[1] * factor


_Bound = tuple[Exponent | None, Rest]


def _larger(a: _Bound, b: _Bound) -> _Bound:
    """What is known of the sum of two rests: the larger wins."""
    if a[0] is None or b[0] is None:
        return b if a[0] is None else a
    if a[0] != b[0]:
        return min(a, b, key=lambda bound: bound[0])  # type: ignore[arg-type, return-value]
    return a[0], Rest.CUT if Rest.CUT in (a[1], b[1]) else Rest.BOUNDED
