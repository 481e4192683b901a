"""Arithmetic on a tape that folds numbers: what writes derivatives and series as nodes.

``0*x`` is 0 and ``1*x`` is x, so derivatives stay short and their zeros are seen without computing. Nothing is
folded that doubles would round: the effect of that rounding is asked for later.
"""

from __future__ import annotations

from fractions import Fraction

from jacli.readings.precision import DOUBLE
from jacli.readings.tape import Tape


def number(tape: Tape, node: int) -> Fraction | int | None:
    """The number that a node is, or None."""
    op = tape.ops[node]
    return op.value if op.op == "number" else None


def is_double(value: Fraction | int) -> bool:
    """Whether a double holds the number exactly (as far as it lies within their range)."""
    return DOUBLE.holds(value.numerator, value.denominator)


def _folded(tape: Tape, result: Fraction | int, *parts: Fraction | int) -> int | None:
    """The number that an operation gives, unless doubles round it: then the operation must stay to be seen."""
    return tape.number(result) if all(map(is_double, (result, *parts))) else None


def neg(tape: Tape, a: int) -> int:
    """The node of ``-a``."""
    op = tape.ops[a]
    if op.op == "number":
        return tape.number(-op.value)
    return op.args[0] if op.op == "neg" else tape.add("neg", a)


def add(tape: Tape, a: int, b: int) -> int:
    """The node of ``a + b``."""
    p, q = number(tape, a), number(tape, b)
    if p == 0:
        return b
    if q == 0:
        return a
    folded = _folded(tape, p + q, p, q) if p is not None and q is not None else None
    if folded is not None:
        return folded
    for other, summand in ((a, b), (b, a)):
        opposite = negated(tape, summand)
        if opposite is not None:
            return sub(tape, other, opposite)
    return tape.add("add", a, b)


def negated(tape: Tape, a: int) -> int | None:
    """The node that ``a`` is visibly the negative of, or None."""
    op = tape.ops[a]
    if op.op == "number" and op.value < 0:
        return tape.number(-op.value)
    return op.args[0] if op.op == "neg" else None


def sub(tape: Tape, a: int, b: int) -> int:
    """The node of ``a - b``."""
    if a == b:
        return tape.number(0)
    p, q = number(tape, a), number(tape, b)
    if q == 0:
        return a
    if p == 0:
        return neg(tape, b)
    folded = _folded(tape, p - q, p, q) if p is not None and q is not None else None
    return tape.add("sub", a, b) if folded is None else folded


def mul(tape: Tape, a: int, b: int) -> int:
    """The node of ``a * b``."""
    p, q = number(tape, a), number(tape, b)
    if p is not None and q is not None:
        folded = _folded(tape, p * q, p, q)
        if folded is not None:
            return folded
    for value, other in ((p, b), (q, a)):
        if value == 0:
            return tape.number(0)
        if value == 1:
            return other
        if value == -1:
            return neg(tape, other)
    for factor, other in ((a, b), (b, a)):
        opposite = negated(tape, factor)
        if opposite is not None:
            return neg(tape, mul(tape, opposite, other))
    return tape.add("mul", a, b)


def div(tape: Tape, a: int, b: int) -> int:
    """The node of ``a / b``; ``b`` is not 0."""
    if a == b:
        return tape.number(1)
    p, q = number(tape, a), number(tape, b)
    if q in (1, -1):
        return a if q == 1 else neg(tape, a)
    if p == 0:
        return a
    folded = _folded(tape, Fraction(p) / q, p, q) if p is not None and q else None
    if folded is not None:
        return folded
    opposite = negated(tape, a)
    return tape.add("div", a, b) if opposite is None else neg(tape, div(tape, opposite, b))
