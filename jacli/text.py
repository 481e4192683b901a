"""Text on a screen: how wide it is, and what is safe to print; decimal strings of any exponent."""

from __future__ import annotations

import unicodedata
from decimal import Decimal, InvalidOperation

#: Exponents that every context of decimals can calculate with.
_MOST_EXPONENT = 10**16


def width_of(text: str) -> int:
    """Columns that ``text`` takes on a terminal: wide characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def printable(text: str) -> str:
    """``text`` with every control or invisible character spelt out, so that an echo cannot command a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def to_decimal(text: str) -> Decimal:
    """A decimal string as a number; an exponent beyond what decimals can hold becomes a very large one."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = None
    if number is not None and abs(number.adjusted()) <= _MOST_EXPONENT:
        return number
    mantissa, exponent = text.lower().split("e")
    return Decimal(f"{mantissa}e{'-' if exponent.startswith('-') else ''}{_MOST_EXPONENT}")
