"""Why a float may be far from the truth although rounding at the operations around the point does not explain it.

Looked into only for floats that nothing else explains: each search walks over a whole result.
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb, ctx, fmpq

from jacli.readings import terms
from jacli.readings.balls import PRECISIONS, Balls
from jacli.readings.exact import Number, ball, is_zero
from jacli.readings.paths import Path
from jacli.readings.rounding import Rounding


@dataclass(frozen=True, slots=True)
class Excuse:
    """What may explain a float.

    Attributes:
        crossing: a switch within rounding of the point.
        habit: something torch does differently.
        steep: an infinite slope that meets a zero on the way.
        loosely: how far rounding may move the number, beyond first order.
    """

    crossing: str | None = None
    habit: str | None = None
    steep: str | None = None
    loosely: float = 0.0


def excuse(rounding: Rounding, path: Path) -> Excuse:
    """What may explain a float of a result that takes ``path``."""
    return Excuse(crossing(rounding, path), habit(rounding.balls, path), steep(rounding.balls, path))


_SWITCHES = frozenset(("floor", "ceil", "abs", "sign", "lt", "le", "gt", "ge", "eq", "ne", "max", "min"))
_HALF = arb("0.5")


def crossing(rounding: Rounding, path: Path) -> str | None:
    """The first switch of a result that floats may take the other way, in words."""
    balls = rounding.balls
    for node in path.nodes:
        op, args, _ = balls.tape.ops[node]
        if op not in _SWITCHES:
            continue
        quantity = args[0] if len(args) == 1 else terms.sub(balls.tape, *args)
        if _within_rounding(rounding, quantity, whole=op in ("floor", "ceil")):
            source = balls.tape.source(node) or "the program"
            held = rounding.precision.name
            return f"{source} switches within rounding of this point, and {held} may take the other side"
    return None


def _within_rounding(rounding: Rounding, quantity: int, *, whole: bool) -> bool:
    """Floats may have the quantity on the other side of 0, or of an integer."""
    value = rounding.balls.value(quantity)
    if not isinstance(value, Number):
        return False
    with ctx.workprec(PRECISIONS[0]):
        number = ball(value)
        distance = abs(number - (number + _HALF).floor()) if whole else abs(number)
        return bool(distance < arb(rounding.moves(quantity)))


def habit(balls: Balls, path: Path) -> str | None:
    """What torch is known to do differently, in words."""
    tape = balls.tape
    for node in path.nodes:
        op, args, _ = tape.ops[node]
        if op == "pow" and is_zero(balls.value(args[1])) and tape.varies(args[1]):
            return "torch takes the slope of a power with exponent 0 for a constant 0, though the exponent moves"
        if op == "polygamma":
            return "torch computes polygamma to some 9 digits"
    dets = {node for part in tape.factored if part.name == "det" for node in part.results}
    if any(is_zero(balls.value(node)) for node in dets.intersection(path.nodes)):
        return "torch differentiates det through the inverse, which a singular matrix does not have"
    return None


def steep(balls: Balls, path: Path) -> str | None:
    """The first operation of a result whose slope is infinite at the point, in words."""
    for node in path.nodes:
        op, args, _ = balls.tape.ops[node]
        if op in _STEEP and node in path.turns and (op != "pow" or _is_steep(balls, *args)):
            source = balls.tape.source(node) or "the program"
            return f"the slope of {source} is infinite here, and doubles make nan of 0 times infinity"
    return None


_STEEP = frozenset(("sqrt", "asin", "acos", "acosh", "pow"))


def _is_steep(balls: Balls, base: int, exponent: int) -> bool:
    """Some first or second derivative of a power of zero is infinite."""
    value = balls.value(exponent)
    natural = type(value) is fmpq and value.q == 1
    return not natural and is_zero(balls.value(base)) and isinstance(value, Number) and bool(ball(value) < 2)
