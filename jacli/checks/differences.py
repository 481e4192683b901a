"""Central differences of a function of doubles, with the step that serves best and an estimate of the error.

For steps h, h/4, h/16, … the central quotients are extrapolated once (Richardson 1911: their error is even in h, so
``D(h) + (D(h) - D(4h))/15`` is of fourth order). The step is the one whose extrapolation differs least from both its
neighbours, rounding included: too long a step is off by curvature, too short a one by cancellation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

#: A function of the flattened point; its flattened values.
Function = Callable[[Sequence[float]], Sequence[float]]

_UNIT = 2.0**-52

#: Steps reach from an eighth of the larger of |x| and 1 down to 2**-26 of the smaller, in this many at most.
_LONGEST, _SHORTEST, _MOST_STEPS = -3, -26, 24

#: A step must be seen in the sum with x: it has at least a few bits in common with it.
_SEEN = 48


@dataclass(frozen=True, slots=True)
class Slope:
    """A derivative by differences.

    Attributes:
        value: the extrapolated central quotient; nan where the function has no values around the point.
        error: its estimated error.
        step: the step chosen.
        sides: the quotients to the left and to the right with that step, where they differ however short the step:
            the function seems to have a kink there.
    """

    value: float = math.nan
    error: float = math.inf
    step: float = math.nan
    sides: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class _Quotients:
    """With one step: the central quotient, what rounding may do to it, and the one-sided quotients."""

    step: float
    central: float
    noise: float
    left: float
    right: float

    @property
    def gap(self) -> float:
        return abs(self.right - self.left)


def steps(x: float) -> list[float]:
    """Powers of two, longest first, a fixed ratio apart: four unless ``x`` is very far from 1."""
    size = abs(x) or 1.0
    top = math.frexp(max(size, 1.0))[1] + _LONGEST
    bottom = max(math.frexp(min(size, 1.0))[1] + _SHORTEST, math.frexp(size)[1] - _SEEN, -1000)
    ratio = max(2, math.ceil((top - bottom) / _MOST_STEPS))
    return [math.ldexp(1.0, exponent) for exponent in range(top, bottom - 1, -ratio)]


def column(function: Function, point: Sequence[float], index: int) -> list[Slope]:
    """The derivatives of all outputs with respect to one entry of the point."""
    x = point[index]
    ladder = steps(x)
    here = function(point)
    tables: list[list[_Quotients]] = [[] for _ in here]
    for step in ladder:
        right, left = x + step, x - step
        above, below = (function([*point[:index], moved, *point[index + 1 :]]) for moved in (right, left))
        for table, up, middle, down in zip(tables, above, here, below, strict=True):
            table.append(_quotients(step, (left, x, right), (down, middle, up)))
    ratio = ladder[0] / ladder[1]
    return [_best(table, ratio) for table in tables]


def _quotients(step: float, at: tuple[float, float, float], values: tuple[float, float, float]) -> _Quotients:
    (left, x, right), (down, middle, up) = at, values
    width = right - left
    noise = 2 * _UNIT * (abs(up) + abs(down)) / width
    return _Quotients(step, (up - down) / width, noise, (middle - down) / (x - left), (up - middle) / (right - x))


def _best(table: Sequence[_Quotients], ratio: float) -> Slope:
    finer = [now.central + (now.central - before.central) / (ratio**2 - 1) for before, now in pairwise(table)]
    best, chosen = Slope(), -1
    for k in range(1, len(finer) - 1):
        spread = max(abs(finer[k] - finer[k - 1]), abs(finer[k] - finer[k + 1]))
        error = spread + table[k + 1].noise
        if math.isfinite(finer[k]) and error < best.error:
            best, chosen = Slope(finer[k], error, table[k + 1].step), k + 1
    return best if chosen < 0 else Slope(best.value, best.error, best.step, _sides(table, chosen, best.error))


def _sides(table: Sequence[_Quotients], chosen: int, error: float) -> tuple[float, float] | None:
    """The one-sided quotients where they stay apart: on a smooth function their gap shrinks with the step."""
    now, before = table[chosen], table[chosen - 2]
    apart = now.gap > 1e-3 * (abs(now.left) + abs(now.right)) + 100 * (now.noise + error)
    return (now.left, now.right) if apart and now.gap > before.gap / 2 else None
