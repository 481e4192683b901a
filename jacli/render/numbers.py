"""Numbers for the eye. Every rounding of the program happens in this file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import TYPE_CHECKING

from jacli.text import to_decimal

if TYPE_CHECKING:
    from jacli.result import Entry


def show(value: float, digits: int | None = None) -> str:
    """A double: the shortest text that reads back as the same double, or ``digits`` significant digits."""
    return repr(value) if digits is None else f"{value:.{digits}g}"


def show_exact(text: str | None, digits: int | None = None) -> str:
    """A decimal string (or ``oo``) as it is, or rounded to ``digits`` significant digits; empty where there is none."""
    if text is None or digits is None or text.endswith("oo"):
        return text or ""
    far = round_far(text, digits)
    if far is not None:
        return far
    rounded = Context(prec=digits).plus(to_decimal(text))
    fits_a_double = digits <= 15 and abs(rounded.adjusted()) < 300  # then write it just as the float beside it
    return show(float(rounded), digits) if fits_a_double else str(rounded)


#: Exponents that decimals of the default range hold, with room for the digits.
_MOST_EXPONENT = 900_000


def round_far(text: str, digits: int) -> str | None:
    """A decimal string with an exponent beyond what contexts of decimals hold, rounded; None for every other."""
    mantissa, _, exponent = text.lower().partition("e")
    if abs(int(exponent or 0)) <= _MOST_EXPONENT:
        return None
    number = Context(prec=digits).plus(Decimal(mantissa))
    power = int(exponent) + number.adjusted()
    return f"{number.scaleb(-number.adjusted())}E{power:+d}"


def show_difference(entry: Entry) -> str:
    """``value - exact`` to two digits: enough to see how large it is, and the column says that it is rounded."""
    if entry.difference is None:
        return ""
    return "0" if entry.difference == 0 else f"{entry.difference:.1e}"


def agreeing_digits(entry: Entry) -> str:
    """How many leading digits of the exact value the float has right: a count, or ``all``."""
    if entry.exact is None or entry.difference is None:
        return ""
    if entry.difference == 0:
        return "all"
    exact, gap = to_decimal(entry.exact), Decimal(entry.difference)
    return str(max(0, (exact / gap).adjusted())) if exact and gap.is_finite() else "0"


def show_array(values: Sequence[float], shape: Sequence[int], digits: int | None = None) -> str:
    """Values in their shape: ``2.0``, ``[1.0, 2.0]``, ``[[1.0, 2.0], [3.0, 4.0]]``."""
    if not shape:
        return show(values[0], digits)
    step = math.prod(shape[1:])
    parts = (values[index * step : (index + 1) * step] for index in range(shape[0]))
    return "[" + ", ".join(show_array(part, shape[1:], digits) for part in parts) + "]"


def show_shape(shape: Sequence[int]) -> str:
    """``scalar``, ``3``, ``2×3``."""
    return "×".join(map(str, shape)) or "scalar"
