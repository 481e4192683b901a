"""Families from programs of arrays. Not written yet."""

from __future__ import annotations

from jacli.problem import Bound
from jacli.sparse.system import System


def system(bound: Bound) -> System | None:
    """Soon."""
    return None
