"""Proofs that a constant is exactly zero, where balls can only say that it is very small.

Three attempts, from cheap to dear: all terms cancel once the point's values and the squares of roots and sines are
put in; an algebraic number that is smaller than any non-zero one of its kind can be; SymPy knows an identity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb, fmpq, fmpz

from jacli.readings.balls import PRECISIONS, Balls, branch
from jacli.readings.exact import Angle, NoValueError, UnsureError, compute, is_zero
from jacli.readings.tape import Tape

#: Largest constants that are put to a proof, in operations, and to SymPy.
_MOST_NODES = 2000
_MOST_FOR_SYMPY = 60

#: Bits of a ball that must touch zero, a quarter of them below it, before a proof is tried.
_PRECISION = 512

#: Largest number that SymPy gets to see, in bits, and smallest below 1.
_TAME_BITS = 32

#: Functions whose values SymPy evaluates at any cost and knows no identities of.
_WILD = frozenset(("erf", "erfc", "digamma", "polygamma", "besseli"))


def is_proved_zero(balls: Balls, node: int) -> bool:
    """Whether a constant node is proved to be exactly zero. False means: not proved."""
    order = _order(balls.tape, node)
    if len(order) > _MOST_NODES or not _nearly_zero(balls, node):
        return False
    if _same_formula(balls, node, order) or _too_small(balls, node, order):
        return True
    return _known_to_sympy(balls, node, order)


def _nearly_zero(balls: Balls, node: int) -> bool:
    """Only what is surely very small deserves a proof."""
    point = balls.point(_PRECISION)
    point.evaluate((node,))
    value = point.values[node]
    return is_zero(value) or (isinstance(value, arb) and bool(abs(value) < arb(2) ** (-_PRECISION // 4)))


def _order(tape: Tape, node: int) -> list[int]:
    """The nodes of a constant with the values of its variables, every node after what it needs."""
    wanted = tape.needed((node,))
    values = tape.needed([tape.bound[n] for n in wanted if n in tape.bound])
    known = set(values)
    return [*values, *(n for n in wanted if n not in known)]


# ---- the same formula


#: A polynomial in atoms: for each monomial (atoms with their powers) its coefficient. An atom is an operation on
#: polynomials that is not looked into.
Monomial = tuple[tuple[int, int], ...]
Form = dict[Monomial, fmpq]

#: Longest polynomial that is multiplied out, in terms, and longest coefficient, in bits.
_MOST_TERMS = 400
_MOST_COEFFICIENT = 4096

#: Largest power that is multiplied out.
_MOST_POWER = 8

#: Squares that are put in, in one polynomial.
_MOST_SQUARES = 64


def polynomials(balls: Balls, node: int, moving: Collection[int]) -> dict[int, Form]:
    """A node and all it needs as polynomials in what moves with the variables ``moving``; {} if that tells nothing.

    Nodes with the same polynomial are equal wherever they have a value. Others may be, too.
    """
    order = _order(balls.tape, node)
    if len(order) > _MOST_NODES:
        return {}
    ops, free = balls.tape.ops, _moving(balls.tape, order, moving)
    forms = _forms(balls, order, free)
    still = any(constant(forms[each]) is not None for each in free if each in forms)
    ties = (ops[each].args for each in free if ops[each].op in _COMPARING)
    return forms if still or any(forms[a] == forms[b] for a, b in ties) else {}


_COMPARING = frozenset(("max", "min", "lt", "le", "gt", "ge", "eq", "ne"))


def stays(balls: Balls, node: int, variable: int) -> bool:
    """Whether a node is seen to keep its value when a variable moves."""
    order = _order(balls.tape, node)
    free = _moving(balls.tape, order, {variable})
    if node not in free or len(order) > _MOST_NODES:
        return node not in free
    return constant(_forms(balls, order, free)[node]) is not None


def _moving(tape: Tape, order: list[int], variables: Collection[int]) -> set[int]:
    """The nodes that move with these variables."""
    free = set(variables)
    for each in order:
        if not free.isdisjoint(tape.ops[each].args):
            free.add(each)
    return free


def constant(form: Form) -> Fraction | None:
    """The number that a polynomial is, or None."""
    number = form.get((), fmpq(0))
    return None if form.keys() - {()} else Fraction(int(number.p), int(number.q))


def _same_formula(balls: Balls, node: int, order: list[int]) -> bool:
    """With the point's values in place of variables and the cases taken, all terms cancel."""
    return not _forms(balls, order)[node]


def _forms(balls: Balls, order: list[int], free: Collection[int] = ()) -> dict[int, Form]:
    """Each node as a polynomial, with the point's values in place of what is not ``free`` to move."""
    forms: dict[int, Form] = {}
    atoms = _Atoms()
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
        found = _combined(op, given) if given else None
        reduced = None if found is None else atoms.reduced(found)
        forms[each] = atoms.made(op, value, given) if reduced is None else reduced
    return forms


class _Atoms:
    """Operations on polynomials that are not looked into, but for what their squares are."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}
        self.squares: dict[int, Form] = {}

    def made(self, op: str, value: Any, given: list[Form]) -> Form:
        """The atom of an operation, as a polynomial. Equal operations are one atom."""
        if op == "E":
            op, given = "exp", [{(): fmpq(1)}]
        known = _computed(op, value, given)
        if known is not None:
            return {(): known} if known else {}
        key = (op, value, *(frozenset(form.items()) for form in given))
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = len(self.known)
            square = self._square(op, given)
            if square is not None:
                self.squares[found] = square
        return {((found, 1),): fmpq(1)}

    def _square(self, op: str, given: list[Form]) -> Form | None:
        """What the square of an atom is: that of a root, and of a sine by its cosine (DLMF 4.21.12, 4.35.11)."""
        if op == "sqrt":
            return given[0]
        if op not in ("sin", "sinh"):
            return None
        other = self.made("cos" if op == "sin" else "cosh", None, given)
        one: Form = {(): fmpq(1)}
        squared = _multiplied(other, other) or {}
        return _added(one, _scaled(squared, fmpq(-1))) if op == "sin" else _added(squared, _scaled(one, fmpq(-1)))

    def reduced(self, form: Form) -> Form | None:
        """The polynomial with the squares put in, None where it grows too long."""
        for _ in range(_MOST_SQUARES):
            found = next(((m, atom) for m in form for atom, power in m if power > 1 and atom in self.squares), None)
            if found is None:
                return form
            monomial, atom = found
            powers = dict(monomial)
            powers[atom] -= 2
            rest = {tuple((a, p) for a, p in sorted(powers.items()) if p): form[monomial]}
            more = _multiplied(rest, self.squares[atom])
            if more is None or len(form) > _MOST_TERMS:
                return None
            form = _added({m: c for m, c in form.items() if m != monomial}, more)
        return None


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


def _combined(op: str, forms: list[Form]) -> Form | None:
    """The polynomial of an operation on polynomials, None where it is an atom of its own."""
    if op in ("variable", "select"):
        return forms[0]
    if op == "neg":
        return _scaled(forms[0], fmpq(-1))
    if op in ("add", "sub"):
        return _added(forms[0], forms[1] if op == "add" else _scaled(forms[1], fmpq(-1)))
    if op == "mul":
        return _multiplied(*forms)
    if op == "div" and len(forms[1]) == 1:
        ((monomial, factor),) = forms[1].items()
        return _multiplied(forms[0], {tuple((atom, -power) for atom, power in monomial): 1 / factor})
    if op == "pow":
        return _power(forms[0], forms[1].get((), fmpq(0))) if forms[1].keys() == {()} else None
    return None


def _power(form: Form, exponent: fmpq) -> Form | None:
    """A small whole power."""
    if exponent.q != 1 or not 0 < exponent <= _MOST_POWER:
        return None
    result: Form | None = form
    for _ in range(int(exponent.p) - 1):
        result = None if result is None else _multiplied(result, form)
    return result


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


def _multiplied(a: Form, b: Form) -> Form | None:
    if len(a) * len(b) > _MOST_TERMS:
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
            monomial = tuple(sorted((atom, power) for atom, power in powers.items() if power))
            total[monomial] = total.get(monomial, fmpq(0)) + coefficient
    return {monomial: coefficient for monomial, coefficient in total.items() if coefficient}


# ---- algebraic numbers


@dataclass(frozen=True, slots=True)
class _Size:
    """An algebraic number as a quotient of algebraic integers: bounds on their conjugates, in bits, and the degree.

    The BFMSS bound (Burnikel, Funke, Mehlhorn, Schirra, Schmitt 2009, doi:10.1007/s00453-007-9132-4): a number
    that is not zero is at least ``1/(upper**(degree - 1) * lower)``.
    """

    upper: float
    lower: float
    degree: int


def _too_small(balls: Balls, node: int, order: list[int]) -> bool:
    """The ball lies within the gap that separates zero from every other such algebraic number."""
    sizes: dict[int, _Size] = {}
    degree = field = 1  # of the roots, and of the field that holds the sines and cosines
    for each in order:
        size = _size(balls, each, sizes)
        if size is None and not isinstance(balls.value(each), Angle):
            return False
        if size is not None:
            sizes[each] = size
            degree *= size.degree
        if balls.tape.ops[each].op in _CIRCULAR:
            field = math.lcm(field, 4 * _denominator(balls, each))
    if node not in sizes:
        return False
    gap = math.ceil((degree * field - 1) * sizes[node].upper + sizes[node].lower) + 1
    for precision in PRECISIONS:
        if precision > gap:
            point = balls.point(precision)
            point.evaluate((node,))
            value = point.values[node]
            if isinstance(value, arb) and abs(value) < arb(2) ** -gap:
                return True
    return False


def _size(balls: Balls, node: int, sizes: dict[int, _Size]) -> _Size | None:
    """Bounds for one node, None where it is not seen to be algebraic."""
    value = balls.value(node)
    if isinstance(value, fmpq):
        return _Size(_log2(value.p), _log2(value.q), 1)
    op, args, _ = balls.tape.ops[node]
    if op in _CIRCULAR:  # twice a sine or cosine is an algebraic integer, its conjugates at most 2
        bits = 2.0 if op == "tan" else 1.0
        return _Size(bits, bits, 1) if isinstance(balls.value(args[0]), Angle) else None
    if op == "variable":
        args = (balls.tape.bound[node],)
    if not all(arg in sizes for arg in args):
        return None
    if op == "pow":
        exponent = balls.value(args[1])
        return _of_power(sizes[args[0]], exponent) if isinstance(exponent, fmpq) else None
    rule = _RULES.get(op)
    return None if rule is None else rule(*(sizes[arg] for arg in args))


def _log2(number: fmpz) -> float:
    return math.log2(abs(int(number))) if number else 0.0


_CIRCULAR = ("sin", "cos", "tan")


def _denominator(balls: Balls, node: int) -> int:
    """That of the argument's turns: its sine and cosine lie in the cyclotomic field of four times this order."""
    turns = balls.value(balls.tape.ops[node].args[0])
    return int(turns.turns.q) if isinstance(turns, Angle) else 1


def _of_power(base: _Size, exponent: fmpq) -> _Size:
    times, root = int(exponent.p), int(exponent.q)
    upper, lower = (base.upper, base.lower) if times > 0 else (base.lower, base.upper)
    return _root(_Size(upper * abs(times), lower * abs(times), 1), root)


def _root(a: _Size, k: int) -> _Size:
    if a.upper >= a.lower:
        return _Size((a.upper + (k - 1) * a.lower) / k, a.lower, k)
    return _Size(a.upper, ((k - 1) * a.upper + a.lower) / k, k)


def _sum(a: _Size, b: _Size) -> _Size:
    return _Size(max(a.upper + b.lower, a.lower + b.upper) + 1, a.lower + b.lower, 1)


def _same(a: _Size) -> _Size:
    return _Size(a.upper, a.lower, 1)


_RULES: dict[str, Callable[..., _Size]] = {
    "variable": _same, "neg": _same, "abs": _same, "add": _sum, "sub": _sum, "sqrt": lambda a: _root(a, 2),
    "mul": lambda a, b: _Size(a.upper + b.upper, a.lower + b.lower, 1),
    "div": lambda a, b: _Size(a.upper + b.lower, a.lower + b.upper, 1),
}  # fmt: skip


# ---- the rest


def _known_to_sympy(balls: Balls, node: int, order: list[int]) -> bool:
    """SymPy simplifies it to 0. Asked about short constants only: it may take long."""
    if len(order) > _MOST_FOR_SYMPY or not all(_tame(balls, each) for each in order):
        return False
    from jacli.readings.symbols import constant, sympy

    expression = constant(balls.tape, node)
    return expression is not None and bool(expression.is_zero or sympy().simplify(expression).is_zero)


def _tame(balls: Balls, node: int) -> bool:
    """Small enough for SymPy, which would write out or evaluate anything."""
    value = balls.value(node)
    if isinstance(value, fmpq):
        return bool(value.height_bits() <= _TAME_BITS)
    if balls.tape.ops[node].op in _WILD:
        return False
    size, most = abs(value) if isinstance(value, arb) else arb(1), arb(2) ** _TAME_BITS
    return bool(size < most and (size > 1 / most or size.contains(0)))
