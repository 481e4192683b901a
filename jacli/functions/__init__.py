"""THE table of functions: a row a function. Reading, every walk, hints, ``jacli functions``, docs and tests use it."""

from __future__ import annotations

from jacli.functions.arrays import ARRAYS
from jacli.functions.conditions import CONDITIONS
from jacli.functions.elementwise import ELEMENTWISE
from jacli.functions.row import Function

__all__ = ["TABLE", "Function", "lookup", "suggest"]

_ALL: tuple[Function, ...] = (*ELEMENTWISE, *CONDITIONS, *ARRAYS)

#: Every row that a user may call.
TABLE: tuple[Function, ...] = tuple(row for row in _ALL if row.listed)

ROWS: dict[str, Function] = {row.name: row for row in _ALL}
_SPELLINGS: dict[str, Function] = {name: row for row in TABLE for name in (row.name, *row.aliases)} | {
    row.name: row for row in _ALL
}


def lookup(spelling: str) -> Function | None:
    """The row for a name or any other spelling of it, or None."""
    return _SPELLINGS.get(spelling)


def suggest(spelling: str) -> str | None:
    """The closest known spelling, or None when nothing is close. Deterministic: ties are alphabetical."""
    from difflib import get_close_matches

    by_case = {name.lower(): name for name in sorted(_SPELLINGS, reverse=True) if _SPELLINGS[name].listed}
    close = get_close_matches(spelling.lower(), sorted(by_case), n=1, cutoff=0.6)
    return by_case[close[0]] if close else None
