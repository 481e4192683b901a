"""Two readings of one derivative, laid side by side at many points: an entry at a time, which stays in the cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jacli.readings.floats import torch
from jacli.readings.machine import ENLARGED, block

#: What agreement means for single precision where nothing else is asked for.
SINGLE_RTOL = 1e-4

#: How many units of the last place one operation may cost.
SAFETY = 8

#: What a difference between the gaits says about rounding.
_ONE = SAFETY / ENLARGED

#: Keeps a difference relative to zero finite.
_TINY = 1e-300

#: How much more a rounding error is in single precision than in double precision.
_SINGLE = 2.0**29


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two readings say together; tensors of one number a point.

    Attributes:
        sure: they agree, or rounding in single precision explains the difference, and the formulas keep enough digits.
        agrees: they agree.
        gap: the largest relative difference.
    """

    sure: Any
    agrees: Any
    gap: Any


def compare(entries: Any, formulas: Mapping[int, tuple[Any, Any]], rtol: float, atol: float) -> Comparison:
    """Whether torch's derivative is that of the formulas.

    Whatever is not finite makes a difference nan, which is no agreement.

    Args:
        entries: (entries, points), by torch, in the precision to judge.
        formulas: by entry, the rows of its formula in the machine's two gaits; the others are zero everywhere.
        rtol: relative difference that agrees; in single precision at least ``SINGLE_RTOL``.
        atol: absolute difference that agrees.
    """
    t = torch()
    single = entries.dtype != t.float64
    rtol = max(rtol, SINGLE_RTOL) if single else rtol
    shape, device = entries.shape[1:], entries.device
    excess, gap = block(2, shape, device).zero_()
    off, size, spare = block(3, shape, device)  # written again and again: memory that is at hand
    agrees = t.ones_like(excess, dtype=t.bool)
    for place, entry in enumerate(entries):
        if place not in formulas:
            t.maximum(excess, off.copy_(entry).abs_(), out=excess)
            continue
        formula, moved = formulas[place]
        t.sub(entry, formula, out=off).abs_()
        t.abs(formula, out=size)
        t.maximum(gap, t.div(off, t.clamp(size, min=_TINY, out=spare), out=spare), out=gap)
        loss = t.sub(moved, formula, out=spare).abs_()  # enlarged, what rounding may do to the formula
        if single:
            allowed = size * rtol + atol
            agrees &= off <= allowed
            beyond = t.maximum(off - t.maximum(allowed, loss * (_ONE * _SINGLE)), loss * _ONE - allowed / 2)
        else:
            beyond = t.add(off, loss, alpha=_ONE, out=loss).sub_(size, alpha=rtol / 2)
        t.maximum(excess, beyond, out=excess)
    return Comparison(excess <= (0 if single else atol), agrees, gap)
