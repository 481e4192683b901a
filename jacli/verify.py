"""Verdicts: a float beside the truth, and the reason when the two differ.

The truth is a ``Proof``; what torch or SymPy believe at a kink plays no part.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any

from flint import arb, ctx, fmpq

from jacli.errors import JacliError
from jacli.prove import Proof, Prover, double
from jacli.readings.balls import exact
from jacli.readings.exact import NoValueError, UnsureError, compute
from jacli.readings.excuses import Excuse
from jacli.readings.precision import DOUBLE, Precision
from jacli.readings.rounding import OPERATIONS_FACTOR
from jacli.readings.tape import Tape
from jacli.text import to_decimal

__all__ = [
    "Proof",
    "Prover",
    "double",
    "judge",
    "prove_directional",
    "prove_gradient",
    "prove_hessian",
    "prove_hvp",
    "prove_jacobian",
    "prove_value",
    "refuse_absurd",
]

#: A float agrees when it is off by no more than this many times what rounding the typed numbers does.
INPUT_FACTOR = 4

#: Where rounding the typed numbers moves a number by more than this, relative to it, no agreement is left to speak of.
_SHARED = Decimal("1e-3")

_CONTEXT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)


def judge(value: float, proof: Proof, rtol: float = 1e-9, atol: float = 0.0) -> tuple[str, str | None]:
    """A float's status, and the reason in words.

    Args:
        value: what torch gave.
        proof: what is true.
        rtol: relative difference that is called agreement.
        atol: absolute difference that is called agreement.
    """
    if proof.exact is None or proof.kind != "smooth":
        status = "undefined" if proof.kind == "undecided" else proof.kind
        return status, f"{proof.reason}; torch returned {_word(value)}"
    if not math.isfinite(value):
        return _not_finite(value, proof)
    true = to_decimal(proof.exact)
    off = _CONTEXT.subtract(Decimal(value), true).copy_abs()
    if off <= _CONTEXT.multiply(Decimal(rtol), true.copy_abs()) + Decimal(atol) or off <= _nearest(proof):
        return "agree", None
    bound = proof.input_bound
    if off <= INPUT_FACTOR * Decimal(bound) and not _swamped(true, bound):
        return "agree", None
    return _off(value, proof, true, off)


def _nearest(proof: Proof) -> Decimal:
    """Half the distance between zero and its neighbour: no float is nearer to the truth."""
    return Decimal(proof.precision.smallest) / 2


def _swamped(true: Decimal, bound: float) -> bool:
    """Rounding the typed numbers leaves next to nothing of the true value (of 1, where it is zero)."""
    return Decimal(bound) > _CONTEXT.multiply(_SHARED, true.copy_abs() or Decimal(1))


def _off(value: float, proof: Proof, true: Decimal, off: Decimal) -> tuple[str, str]:
    """The verdict on a finite float that is too far from the truth."""
    if off <= INPUT_FACTOR * Decimal(proof.input_bound):
        return "rounding", f"{_moving(proof)}: {_surviving(true, off)}"
    if off <= OPERATIONS_FACTOR * Decimal(proof.operations_bound):
        place = f", most of them in {proof.worst_source}" if proof.worst_source else ""
        return "rounding", f"{_surviving(true, off)}: rounding in {proof.precision.name} loses the others{place}"
    if proof.effect.leaves == "overflow" and value == 0:  # divided by an infinity
        return "rounding", _leaving(value, proof)
    if proof.at_switch:
        return "rounding", f"{proof.reason}; torch returned {_word(value)}, the slope of one side's formula there"
    excuse = proof.excuse() if proof.excuse else Excuse()
    if not excuse.crossing and off <= OPERATIONS_FACTOR * Decimal(excuse.loosely):
        return "rounding", f"{_surviving(true, off)}: rounding in {proof.precision.name} loses the others on the way"
    return _unexplained(value, proof, f"nothing explains the difference from {proof.exact}", excuse)


def _unexplained(value: float, proof: Proof, alarm: str, excuse: Excuse) -> tuple[str, str]:
    """The verdict on a float that rounding around the point does not explain."""
    returned = f"torch returned {_word(value)}"
    if excuse.crossing:
        return "rounding", f"{excuse.crossing}; {returned}"
    if excuse.habit:
        return "disagree", f"{returned}, not {proof.exact}: {excuse.habit}"
    return "disagree", f"{returned}, {alarm}"


def _moving(proof: Proof) -> str:
    held = proof.precision
    size = (
        f"beyond the range of {held.name}" if proof.input_bound >= held.largest else f"by about {proof.input_bound:.1e}"
    )
    return f"rounding the typed numbers to {held.name} moves this number {size}"


def _surviving(true: Decimal, off: Decimal) -> str:
    """How many leading digits of a float are right."""
    digits = math.floor((true.copy_abs() / off).log10()) if true else 0
    return "no digit is right" if digits <= 0 else f"{digits} digit{'s are' if digits > 1 else ' is'} right"


def _not_finite(value: float, proof: Proof) -> tuple[str, str]:
    """The verdict on nan or an infinity where there is a true value."""
    returned = f"torch returned {_word(value)}"
    if proof.effect.leaves:
        return "rounding", _leaving(value, proof)
    if proof.at_switch:
        return "rounding", f"{proof.reason}; {returned}"
    true = to_decimal(proof.exact or "0")
    if _swamped(true, proof.input_bound):
        return "rounding", f"{_moving(proof)}; {returned}"
    if _swamped(true, proof.operations_bound):
        place = f", most of them in {proof.worst_source}" if proof.worst_source else ""
        return "rounding", f"rounding in {proof.precision.name} loses all digits{place}; {returned}"
    excuse = proof.excuse() if proof.excuse else Excuse()
    if excuse.steep:
        return "rounding", f"{excuse.steep}; {returned}"
    return _unexplained(value, proof, f"and nothing explains it: the true value is {proof.exact}", excuse)


def _leaving(value: float, proof: Proof) -> str:
    size = "large" if proof.effect.leaves == "overflow" else "small"
    place, held = proof.worst_source or "an operation", proof.precision.name
    return f"{place} is too {size} for {held} here; torch returned {_word(value)}"


def _word(value: float) -> str:
    return "nan" if math.isnan(value) else repr(value)


# ---- proofs, one call each; ``precision`` is the type of the floats to be judged


def prove_value(tape: Tape, output: int) -> Proof:
    """The value of an output."""
    return _prover(tape).value(output)


def prove_gradient(tape: Tape, output: int, wrt: Sequence[int], precision: Precision = DOUBLE) -> list[Proof]:
    """The derivatives of an output with respect to variable nodes."""
    return _prover(tape, precision).gradient(output, wrt)


def prove_jacobian(tape: Tape, outputs: Sequence[int], wrt: Sequence[int]) -> list[list[Proof]]:
    """The derivatives of every output with respect to variable nodes, a row an output."""
    return _prover(tape).jacobian(outputs, wrt)


def prove_directional(tape: Tape, output: int, tangent: Mapping[int, int], precision: Precision = DOUBLE) -> Proof:
    """The derivative of an output along ``tangent`` (a constant node for each variable node)."""
    return _prover(tape, precision).directional(output, tangent)


def prove_hessian(tape: Tape, output: int, wrt: Sequence[int], precision: Precision = DOUBLE) -> list[list[Proof]]:
    """The second derivatives of an output."""
    return _prover(tape, precision).hessian(output, wrt)


def prove_hvp(tape: Tape, output: int, wrt: Sequence[int], tangent: Mapping[int, int]) -> list[Proof]:
    """The Hessian of an output times ``tangent``."""
    return _prover(tape).hvp(output, wrt, tangent)


#: The prover of the latest tape: requests ask about one tape many times.
_latest: list[Prover] = []


def _prover(tape: Tape, precision: Precision = DOUBLE) -> Prover:
    if not _latest or not _latest[0].proves(tape, precision):
        _latest[:] = [Prover(tape, precision)]
    return _latest[0]


# ---- limits

#: Largest constant, as a power of two: far beyond doubles, near enough to compute with.
MOST_BITS = 1 << 20

_PRECISION = 64


def refuse_absurd(tape: Tape, roots: Iterable[int]) -> None:
    """Refuse constants of a size that nobody means, from an estimate, before anything computes them.

    Raises:
        JacliError: naming the constant and its size.
    """
    wanted = tape.needed(list(roots))
    bound = [tape.bound[node] for node in wanted if node in tape.bound]
    values: dict[int, Any] = {}
    with ctx.workprec(_PRECISION):
        for node in sorted({*wanted, *tape.needed(bound)}):
            value = values[node] = _estimate(tape, node, values)
            if value is not None and _bits(value) > MOST_BITS:
                raise _too_large(tape, node, _bits(value))


def _estimate(tape: Tape, node: int, values: Mapping[int, Any]) -> Any:
    """A constant node's value, or None for what is no number or depends on a variable."""
    op, args, value = tape.ops[node]
    if op == "number":
        return exact(value)
    given = [values[arg] for arg in args]
    if op in ("variable", "select") or any(v is None for v in given):
        return None
    try:
        return compute(op, given, value)
    except NoValueError:
        return None
    except UnsureError as unsure:
        if unsure.first is None and op in _EXPLOSIVE:
            raise _too_large(tape, node, None) from None
        return None


#: What can leave even the exponents of balls.
_EXPLOSIVE = frozenset(("exp", "pow", "sinh", "cosh", "gamma"))


def _bits(value: object) -> float:
    """The base-two logarithm of a number's size, roughly."""
    if isinstance(value, fmpq):
        return float(int(value.p).bit_length() - int(value.q).bit_length())
    if not isinstance(value, arb):
        return 0.0
    mantissa, exponent = value.mid().man_exp()
    return float(int(mantissa).bit_length() + int(exponent))


def _too_large(tape: Tape, node: int, bits: float | None) -> JacliError:
    source = tape.source(node)
    name = f"the constant {source}" if source else "a constant of the point"
    size = "more digits than can be counted" if bits is None else f"about {bits * math.log10(2):.1e} digits"
    return JacliError(
        f"{name} has {size.replace('e+0', 'e').replace('e+', 'e')} and cannot be a double",
        tape.spans[node],
        text=tape.text if source else None,
        kind="limit",
    )
