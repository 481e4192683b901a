"""Proofs that a constant is exactly zero, where balls can only say that it is very small."""

from __future__ import annotations

from jacli.readings.balls import Balls


def is_proved_zero(balls: Balls, node: int) -> bool:
    """Whether a constant node is proved to be exactly zero. False means: not proved."""
    return False
