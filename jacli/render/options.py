"""How a result should look. Nothing here is read from the environment: whoever asks decides."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """Choices of presentation.

    Attributes:
        digits: significant digits to show, or None for every digit that a number has.
        width: columns of the terminal, or None when the output may be as wide as it needs to be.
        color: whether escape sequences are welcome.
    """

    digits: int | None = None
    width: int | None = None
    color: bool = False
