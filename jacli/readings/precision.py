"""Types of floating-point numbers, as IEEE 754 has them: what the rounding of a verdict is measured by."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Precision:
    """A binary floating-point type.

    Attributes:
        name: in words.
        digits: binary digits of a number.
        smallest: the distance between zero and its neighbours.
        normal: the smallest number with all its digits.
        largest: the largest number.
    """

    name: str
    digits: int
    smallest: float
    normal: float
    largest: float

    @property
    def unit(self) -> float:
        """How far rounding may move a number, relative to it."""
        return 2.0**-self.digits

    def holds(self, top: int, bottom: int) -> bool:
        """Whether a number of the type, of any exponent, is ``top / bottom``, a quotient in lowest terms."""
        return not bottom & (bottom - 1) and top.bit_length() - (top & -top).bit_length() < self.digits


DOUBLE = Precision("doubles", 53, 2.0**-1074, 2.0**-1022, 1.7976931348623157e308)
SINGLE = Precision("single precision", 24, 2.0**-149, 2.0**-126, 3.4028234663852886e38)
