"""Text on a screen: how wide it is, and what is safe to print."""

from __future__ import annotations

import unicodedata


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
