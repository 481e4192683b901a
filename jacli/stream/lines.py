"""Points as lines of text, whatever their format: a block of nothing but plain numbers at once, any other by lines."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

from jacli.errors import JacliError
from jacli.stream.source import Bad, Feed, Rows

_NUMBER = re.compile(r"[-+]?((?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE][-+]?[0-9]+)?")
_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+(?:[eE][-+]?[0-9]+)?")

_WORD = re.compile(r"[^\W\d_eE]|E(?![-+0-9])|[^\W\d_]{2}")

#: What a number has in it that is nearer to 0 than every double but 0, whether by its exponent or by its zeros.
_TINY = re.compile(rb"[eE]-[0-9]{3}|0{300}")

#: Characters of a number that a message shows.
_SHOWN = 40


class LineSource:
    """Lines of text, each a point.

    A format says how to read a block of plain numbers (``_at_once``) and what one line holds (``_cells``).
    """

    unit = "line"
    columns: tuple[str, ...] | None = None
    width = 0

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._skip = 0

    def progress(self) -> float | None:
        """The part that has been read."""
        return self._feed.progress()

    def close(self) -> None:
        """Nothing more will be read."""
        self._feed.close()

    def read(self, chosen: Sequence[int]) -> Iterator[Rows]:
        """Every point's numbers in the chosen columns."""
        import numpy as np

        line, cells = 1, partial(self._cells, chosen=chosen)
        for block in self._feed.blocks():
            count = block.count(b"\n") + (not block.endswith(b"\n"))
            numbers = None if line <= self._skip else self._at_once(block, count, chosen)
            if numbers is None or not _survive(numbers, block):
                yield self._line_by_line(block, line, cells, len(chosen))
            else:
                yield Rows(np.arange(line, line + count), numbers + 0.0, (), as_typed(block, line, cells))
            line += count

    def _at_once(self, block: bytes, count: int, chosen: Sequence[int]) -> Any:
        """The numbers of a block of ``count`` lines of nothing but plain numbers, else None."""
        raise NotImplementedError

    def _holds_point(self, text: str) -> bool:
        """Whether a line is there to be read."""
        raise NotImplementedError

    def _cells(self, text: str, chosen: Sequence[int]) -> Sequence[str]:
        """A line's numbers in the chosen columns, as they were typed. Raises JacliError where it is no point."""
        raise NotImplementedError

    def _line_by_line(self, block: bytes, first: int, cells: Callable[[str], Sequence[str]], width: int) -> Rows:
        import numpy as np

        lines, numbers, bad, words = [], [], [], []
        for line, raw in enumerate(block.split(b"\n"), first):
            text = _decoded(raw)
            if line <= self._skip or not self._holds_point(text):
                continue
            try:
                given = cells(text)
                numbers.append([*map(number, given)])
                lines.append(line)
                words += [line] if any(map(_WORD.search, given)) else []
            except JacliError as error:
                bad.append(Bad(line, text, error.message))
        array = np.array(numbers, np.float64).reshape(-1, width)
        return Rows(np.array(lines, np.int64), array + 0.0, tuple(bad), as_typed(block, first, cells), frozenset(words))


def _survive(numbers: Any, block: bytes) -> bool:
    """Whether doubles hold what was typed: nothing is too large for them, or so small that it became 0."""
    import numpy as np

    return bool(np.isfinite(numbers).all() and (numbers.all() or not _TINY.search(block)))


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace").removesuffix("\r")


def as_typed(block: bytes, first: int, cells: Callable[[str], Sequence[str]]) -> Callable[[int], Sequence[str]]:
    """What gives a line's numbers as they were typed: read again, for few points ask for it."""

    @cache
    def lines() -> list[bytes]:
        return block.split(b"\n")

    return lambda line: cells(_decoded(lines()[line - first]))


def counted(given: int, width: int) -> JacliError:
    """A line has too many values, or too few."""
    return JacliError(f"{given} value{'s' * (given != 1)} where {width} {'is' if width == 1 else 'are'} expected")


def number(cell: str) -> float:
    """A cell's double: a decimal, or a constant expression as ``--at`` takes it. Raises JacliError."""
    if not cell:
        raise JacliError("a value is missing")
    plain = _NUMBER.fullmatch(cell)
    if plain:
        value = float(cell)
        if math.isinf(value) or (value == 0 and plain.group(1).strip("0.")):
            raise JacliError(f"{_clipped(cell)} is beyond the range of doubles (about 1e-308 to 1.8e308)")
        return value
    if _COMMA.fullmatch(cell):
        raise JacliError(f"{cell} is not one number: decimals take a point, as {cell.replace(',', '.')}")
    from jacli.language.points import read_constant
    from jacli.problem import doubles, shape_of

    constant = read_constant(cell)
    if shape_of(constant):
        raise JacliError(f"{_clipped(cell)} is not one number")
    return doubles(constant)[0]


def _clipped(cell: str) -> str:
    return cell if len(cell) <= _SHOWN else f"{cell[: _SHOWN // 2]}… ({len(cell)} characters)"
