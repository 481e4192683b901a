"""Room for recursion over expressions that are nested, but not without bound."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deep(frames: int) -> Iterator[None]:
    """Raise Python's recursion limit to ``frames`` for a while."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, frames))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
