"""Proofs that a constant is exactly zero, where balls can only say that it is very small.

Three attempts, from cheap to dear: all terms cancel once the point's values are put in and denominators are cleared
(``forms``); an algebraic number that is smaller than any non-zero one of its kind can be; SymPy knows an identity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

from flint import arb, fmpq, fmpz

from jacli.readings.balls import PRECISIONS, Balls
from jacli.readings.exact import Angle, is_zero
from jacli.readings.forms import Form, constant, forms_of, is_zero_formula, turns
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
    if is_zero_formula(balls, order) or _too_small(balls, node, order):
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


def polynomials(balls: Balls, node: int, moving: Collection[int], *, waves: bool) -> dict[int, Form]:
    """A node and all it needs as polynomials in what moves with the variables ``moving``; {} if that tells nothing.

    With ``waves`` sines and cosines are looked into.

    Nodes with the same polynomial are equal wherever they have a value. Others may be, too.
    """
    order = _order(balls.tape, node)
    if len(order) > _MOST_NODES or (waves and not turns(balls.tape, order)):
        return {}
    ops, free = balls.tape.ops, _moving(balls.tape, order, moving)
    forms = forms_of(balls, order, free, waves=waves)
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
    return constant(forms_of(balls, order, free)[node]) is not None


def _moving(tape: Tape, order: list[int], variables: Collection[int]) -> set[int]:
    """The nodes that move with these variables."""
    free = set(variables)
    for each in order:
        if not free.isdisjoint(tape.ops[each].args):
            free.add(each)
    return free


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
