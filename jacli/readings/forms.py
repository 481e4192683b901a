"""Formulas as polynomials in what is not looked into, so that equal ones look alike.

Exponentials are powers of one another, hyperbolic functions are made of them; squares of roots, of sines and of the
imaginary unit are known; dividing by a sum is multiplying by a power of it, -1. What is found equal is equal wherever
it has a value. The reverse does not hold: polynomials that differ may still be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from fractions import Fraction
from typing import Any

from flint import fmpq

from jacli.readings.balls import Balls, branch
from jacli.readings.exact import NoValueError, UnsureError, compute
from jacli.readings.tape import Tape

#: A polynomial in atoms: for each monomial (atoms with their powers) its coefficient. Powers are whole or, of
#: exponentials, fractions.
Monomial = tuple[tuple[int, "int | Fraction"], ...]
Form = dict[Monomial, fmpq]

#: Longest polynomial that is multiplied out, in terms, and longest coefficient, in bits.
_MOST_TERMS = 400
_MOST_COEFFICIENT = 4096

#: The same where denominators are cleared: once, at the end.
_MOST_CLEARED = 4000

#: Largest power that is multiplied out.
_MOST_POWER = 8

#: Squares that are put in, in one polynomial.
_MOST_SQUARES = 64

_ONE: Form = {(): fmpq(1)}


def constant(form: Form) -> Fraction | None:
    """The number that a polynomial is, or None."""
    number = form.get((), fmpq(0))
    return None if form.keys() - {()} else _fraction(number)


def is_zero_formula(balls: Balls, order: list[int]) -> bool:
    """Whether all terms of the last node of ``order`` cancel, with the point's values and the cases taken put in.

    Args:
        balls: the tape at the point.
        order: the node, after all that it needs.
    """
    return _vanishes(balls, order, waves=False) or (turns(balls.tape, order) and _vanishes(balls, order, waves=True))


def turns(tape: Tape, nodes: Collection[int]) -> bool:
    """Whether there are sines and cosines to be looked into."""
    return any(tape.ops[node].op in _MADE_OF_WAVES for node in nodes)


def _vanishes(balls: Balls, order: list[int], *, waves: bool) -> bool:
    forms, atoms = _formed(balls, order, (), waves=waves)
    cleared = atoms.cleared(forms[order[-1]])
    return cleared is not None and not cleared


def forms_of(balls: Balls, order: list[int], free: Collection[int] = (), *, waves: bool = False) -> dict[int, Form]:
    """Each node of ``order`` as a polynomial, with the point's values in place of what is not ``free`` to move.

    With ``waves`` sines and cosines are looked into.
    """
    return _formed(balls, order, free, waves=waves)[0]


def _formed(balls: Balls, order: list[int], free: Collection[int], *, waves: bool) -> tuple[dict[int, Form], _Atoms]:
    forms: dict[int, Form] = {}
    atoms = _Atoms(waves=waves)
    for each in order:
        op, args, value = balls.tape.ops[each]
        if op == "variable":
            args, value = ((), each) if each in free else ((balls.tape.bound[each],), value)
        elif op == "select":
            looked, taken = branch(args, balls.value)
            steady = all(condition not in free for condition in looked)
            args, value = ((taken,), None) if steady and isinstance(taken, int) else ((), each)
        known = None if each in free else balls.value(each)
        if isinstance(known, fmpq):
            forms[each] = {(): known} if known else {}
            continue
        given = [forms.get(arg, {}) for arg in args]
        found = atoms.combined(op, given) if given or op == "E" else None
        reduced = None if found is None else atoms.reduced(found)
        forms[each] = atoms.made(op, value, given) if reduced is None else reduced
    return forms, atoms


class _Atoms:
    """What polynomials are made of.

    Attributes:
        known: atoms by what they are.
        squares: what the square of an atom is.
        sums: what an atom is that stands for a sum, to be divided by.
        waves: sines and cosines are made of powers of ``exp(i x)`` rather than atoms of their own: longer, but sums
            of angles are seen.
    """

    def __init__(self, *, waves: bool) -> None:
        self.known: dict[Any, int] = {}
        self.squares: dict[int, Form] = {}
        self.sums: dict[int, Form] = {}
        self.logs: dict[int, Form] = {}
        self.waves = waves

    def made(self, op: str, value: Any, given: list[Form]) -> Form:
        """The atom of an operation, as a polynomial. Equal operations are one atom."""
        known = _computed(op, value, given)
        if known is not None:
            return {(): known} if known else {}
        atom = self._atom((op, value, *map(_key, given)))
        square = self._square(op, given)
        if square is not None:
            self.squares[atom] = square
        if op == "log":
            self.logs[atom] = given[0]
        return {((atom, 1),): fmpq(1)}

    def _atom(self, key: Any) -> int:
        return self.known.setdefault(key, len(self.known))

    def _square(self, op: str, given: list[Form]) -> Form | None:
        """What the square of an atom is: that of a root, and of a sine by its cosine (DLMF 4.21.12)."""
        if op == "sqrt":
            return given[0]
        if op != "sin":
            return None
        other = self.made("cos", None, given)
        squared = _multiplied(other, other) or {}
        return _added(_ONE, _scaled(squared, fmpq(-1)))

    # ---- operations that are looked into

    def combined(self, op: str, forms: list[Form]) -> Form | None:
        """The polynomial of an operation on polynomials, None where it is an atom of its own."""
        if op == "E":
            return self.exponential(_ONE)
        if op in ("variable", "select"):
            return forms[0]
        if op == "neg":
            return _scaled(forms[0], fmpq(-1))
        if op in ("add", "sub"):
            return _added(forms[0], forms[1] if op == "add" else _scaled(forms[1], fmpq(-1)))
        if op == "mul":
            return _multiplied(forms[0], forms[1])
        if op == "div":
            return self._quotient(forms[0], forms[1])
        if op == "pow":
            exponent = constant(forms[1])
            return None if exponent is None else self._power(forms[0], exponent)
        rule = _MADE_OF_EXPONENTIALS.get(op) or (_MADE_OF_WAVES.get(op) if self.waves else None)
        return rule(self, forms[0]) if rule else None

    def _quotient(self, top: Form | None, bottom: Form | None) -> Form | None:
        if not top or not bottom:
            return None if not bottom else top
        if len(bottom) > 1:  # a sum: divided by its first coefficient, so that multiples of it are one atom
            lead = min(bottom)
            factor, scaled = bottom[lead], _scaled(bottom, 1 / bottom[lead])
            atom = self._atom(("sum", _key(scaled)))
            self.sums[atom] = scaled
            bottom = {((atom, 1),): factor}
        ((monomial, factor),) = bottom.items()
        return _multiplied(top, {tuple((atom, -power) for atom, power in monomial): 1 / factor})

    def _power(self, form: Form, exponent: Fraction) -> Form | None:
        """A small whole power."""
        if exponent.denominator != 1 or not 0 < abs(exponent) <= _MOST_POWER:
            return None
        result: Form | None = form
        for _ in range(abs(int(exponent)) - 1):
            result = None if result is None else _multiplied(result, form)
        return result if exponent > 0 else self._quotient(_ONE, result)

    def exponential(self, form: Form, kind: str = "exp") -> Form | None:
        """``exp``, or for ``wave`` ``exp(i x)``: a power for each term, so that sums are products."""
        result: Form | None = _ONE
        for monomial, coefficient in form.items():
            factor = self._of_logarithm(monomial, coefficient) if kind == "exp" else None
            if factor is None:
                factor = {((self._atom((kind, monomial)), _whole(_fraction(coefficient))),): fmpq(1)}
            result = None if result is None else _multiplied(result, factor)
        return result

    def _of_logarithm(self, monomial: Monomial, times: fmpq) -> Form | None:
        """``exp(n log a)`` is ``a^n``, as the logarithm has a value."""
        if len(monomial) != 1 or monomial[0][1] != 1 or monomial[0][0] not in self.logs:
            return None
        return self._power(self.logs[monomial[0][0]], _fraction(times))

    def wave(self, form: Form, sign: int) -> Form | None:
        """``exp(ix) + sign exp(-ix)``, halved; the sine's is divided by i."""
        there, back = self.exponential(form, "wave"), self.exponential(_scaled(form, fmpq(-1)), "wave")
        if there is None or back is None:
            return None
        half = _scaled(_added(there, _scaled(back, fmpq(sign))), fmpq(1, 2))
        return half if sign > 0 else _multiplied(half, {((self._unit(), 1),): fmpq(-1)})

    def _unit(self) -> int:
        """The imaginary unit."""
        atom = self._atom("i")
        self.squares[atom] = {(): fmpq(-1)}
        return atom

    def hyperbolic(self, form: Form, sign: int) -> Form | None:
        """``(exp(x) + sign exp(-x))/2``."""
        there, back = self.exponential(form), self.exponential(_scaled(form, fmpq(-1)))
        if there is None or back is None:
            return None
        return _scaled(_added(there, _scaled(back, fmpq(sign))), fmpq(1, 2))

    def tangent(self, sine: Form | None, cosine: Form | None) -> Form | None:
        """A sine divided by a cosine."""
        return None if sine is None or cosine is None else self._quotient(sine, cosine)

    # ---- normal forms

    def reduced(self, form: Form, only: int | None = None) -> Form | None:
        """The polynomial with the squares put in (of one atom, where denominators are cleared), None if too long."""
        squares, most = (self.squares, _MOST_TERMS) if only is None else ({only}, _MOST_CLEARED)
        for _ in range(_MOST_SQUARES if only is None else _MOST_CLEARED):
            found = next(((m, atom) for m in form for atom, power in m if power > 1 and atom in squares), None)
            if found is None:
                return form
            monomial, atom = found
            powers = dict(monomial)
            powers[atom] -= 2
            rest = {tuple((a, p) for a, p in sorted(powers.items()) if p): form[monomial]}
            more = _multiplied(rest, self.squares[atom], most)
            if more is None or len(form) > most:
                return None
            form = _added({m: c for m, c in form.items() if m != monomial}, more)
        return None

    def cleared(self, form: Form) -> Form | None:
        """The polynomial times all that it divides by, which is not zero; None where it grows too long."""
        for atom in sorted({*self.sums, *self.squares}, reverse=True):  # what it stands for is made of earlier ones
            powers = [power for monomial in form for each, power in monomial if each == atom]
            if not powers:
                continue
            whole = _multiplied(form, {((atom, max(0, -min(powers))),): fmpq(1)}, _MOST_CLEARED)
            put_in = self._without if atom in self.sums else self.reduced
            found = None if whole is None else put_in(whole, atom)
            if found is None:
                return None
            form = found
        return form

    def _without(self, form: Form, atom: int) -> Form | None:
        """The polynomial with the sum that an atom stands for put in, as it has no negative powers of it."""
        by_power: dict[int, Form] = {}
        for monomial, coefficient in form.items():
            power = int(dict(monomial).get(atom, 0))
            by_power.setdefault(power, {})[tuple(each for each in monomial if each[0] != atom)] = coefficient
        total: Form | None = {}
        for power in range(max(by_power), -1, -1):  # Horner
            total = _multiplied(total, self.sums[atom], _MOST_CLEARED) if total else total
            if total is None:
                return None
            total = _added(total, by_power.get(power, {}))
        return total


_MADE_OF_EXPONENTIALS: dict[str, Callable[[_Atoms, Form], Form | None]] = {
    "exp": _Atoms.exponential,
    "sinh": lambda atoms, form: atoms.hyperbolic(form, -1),
    "cosh": lambda atoms, form: atoms.hyperbolic(form, 1),
    "tanh": lambda atoms, form: atoms.tangent(atoms.hyperbolic(form, -1), atoms.hyperbolic(form, 1)),
}
_MADE_OF_WAVES: dict[str, Callable[[_Atoms, Form], Form | None]] = {
    "sin": lambda atoms, form: atoms.wave(form, -1),
    "cos": lambda atoms, form: atoms.wave(form, 1),
    "tan": lambda atoms, form: atoms.tangent(atoms.wave(form, -1), atoms.wave(form, 1)),
}


def _computed(op: str, value: Any, given: list[Form]) -> fmpq | None:
    """A function of numbers, where it is one that is exact, as ``sin(0)``."""
    numbers = [form.get((), fmpq(0)) for form in given if form.keys() <= {()}]
    if not given or len(numbers) < len(given) or op == "select":
        return None
    try:
        found = compute(op, numbers, value)
    except (NoValueError, UnsureError):
        return None
    return found if isinstance(found, fmpq) else None


def _key(form: Form) -> frozenset[tuple[Monomial, fmpq]]:
    return frozenset(form.items())


def _fraction(number: fmpq) -> Fraction:
    return Fraction(int(number.p), int(number.q))


def _whole(power: int | Fraction) -> int | Fraction:
    """A whole power as an integer."""
    return int(power) if power.denominator == 1 else power


def _scaled(form: Form, factor: fmpq) -> Form:
    return {monomial: factor * coefficient for monomial, coefficient in form.items()}


def _added(a: Form, b: Form) -> Form:
    total = dict(a)
    for monomial, coefficient in b.items():
        found = total.get(monomial, fmpq(0)) + coefficient
        if found:
            total[monomial] = found
        else:
            total.pop(monomial)
    return total


def _multiplied(a: Form, b: Form, most: int = _MOST_TERMS) -> Form | None:
    if len(a) * len(b) > most * most // _MOST_TERMS:
        return None
    total: Form = {}
    for p, c in a.items():
        for q, d in b.items():
            powers = dict(p)
            for atom, power in q:
                powers[atom] = powers.get(atom, 0) + power
            coefficient = c * d
            if coefficient.height_bits() > _MOST_COEFFICIENT:
                return None
            monomial = tuple(sorted((atom, _whole(power)) for atom, power in powers.items() if power))
            total[monomial] = total.get(monomial, fmpq(0)) + coefficient
    return {monomial: coefficient for monomial, coefficient in total.items() if coefficient}
