"""What is known about some points: results, statuses, and which of them need a closer look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jacli.result import STATUSES

#: What a point's status can be; a point is as bad as its worst entry.
POINT_STATUSES = (*STATUSES, "unchecked")
AGREE, ROUNDING, UNCHECKED = (POINT_STATUSES.index(name) for name in ("agree", "rounding", "unchecked"))


@dataclass(slots=True)
class Answer:
    """The results at some points.

    Attributes:
        values: (points, output entries).
        entries: (points, derivative entries).
        status: (points,), positions in ``POINT_STATUSES``.
        gap: (points,), the largest relative difference between the two readings; nan where unknown.
        suspects: the points, by row, that are to be settled one by one.
        reasons: by row, why a settled point does not plainly agree.
    """

    values: Any
    entries: Any
    status: Any
    gap: Any
    suspects: Sequence[int] = ()
    reasons: dict[int, str] = field(default_factory=dict)


def merged(count: int, parts: Sequence[tuple[Any, Answer]]) -> Answer:
    """One answer for ``count`` points from answers for some of them, each with the rows that it is about."""
    import numpy as np

    def gathered(name: str) -> Any:
        first = getattr(parts[0][1], name)
        whole = np.empty((*first.shape[1:], count), first.dtype).T  # a column lies together, as in the parts
        for rows, part in parts:
            whole[rows] = getattr(part, name)
        return whole

    return Answer(
        gathered("values"),
        gathered("entries"),
        gathered("status"),
        gathered("gap"),
        sorted(int(rows[row]) for rows, part in parts for row in part.suspects),
    )
