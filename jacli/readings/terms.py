"""Arithmetic on a tape that folds exact numbers: what writes derivatives and series as nodes.

``0*x`` is 0 and ``1*x`` is x, so derivatives stay short and their zeros are seen without computing.
"""

from __future__ import annotations

from fractions import Fraction

from jacli.readings.tape import Tape

#: Longest number that is folded, in bits.
_MOST_BITS = 4096


def number(tape: Tape, node: int) -> Fraction | int | None:
    """The number that a node is, or None."""
    op = tape.ops[node]
    return op.value if op.op == "number" else None


def _folded(tape: Tape, value: Fraction | int) -> int | None:
    short = max(value.numerator.bit_length(), value.denominator.bit_length()) <= _MOST_BITS
    return tape.number(value) if short else None


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
    folded = _folded(tape, p + q) if p is not None and q is not None else None
    return tape.add("add", a, b) if folded is None else folded


def sub(tape: Tape, a: int, b: int) -> int:
    """The node of ``a - b``."""
    if a == b:
        return tape.number(0)
    p, q = number(tape, a), number(tape, b)
    if q == 0:
        return a
    if p == 0:
        return neg(tape, b)
    folded = _folded(tape, p - q) if p is not None and q is not None else None
    return tape.add("sub", a, b) if folded is None else folded


def mul(tape: Tape, a: int, b: int) -> int:
    """The node of ``a * b``."""
    p, q = number(tape, a), number(tape, b)
    if p is not None and q is not None:
        folded = _folded(tape, p * q)
        if folded is not None:
            return folded
    for value, other in ((p, b), (q, a)):
        if value == 0:
            return tape.number(0)
        if value == 1:
            return other
        if value == -1:
            return neg(tape, other)
    return tape.add("mul", a, b)


def div(tape: Tape, a: int, b: int) -> int:
    """The node of ``a / b``; ``b`` is not the number 0."""
    p, q = number(tape, a), number(tape, b)
    if q:
        return mul(tape, a, tape.number(1 / Fraction(q))) if p is not None or q in (1, -1) else tape.add("div", a, b)
    return a if p == 0 else tape.add("div", a, b)
