"""Points as text, a line each: separated by commas, semicolons, tabs or spaces, with or without a header.

A block of plain numbers is read at once, as JSON with other punctuation; a block in which anything else turns up is
read line by line.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from jacli.errors import JacliError
from jacli.stream.source import Bad, Feed, Rows, columns_of
from jacli.stream.task import is_column

_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+(?:[eE][-+]?[0-9]+)?")
_SEPARATORS = ("\t", ",", ";")

_ALL_BUT_MARKS = bytes(set(range(256)) - set(b",\n"))

#: What the fast way leaves to the slow one: words that JSON knows, comments, quotes, brackets.
_SUSPICIOUS = (b"u", b"l", b"#", b'"', b"[", b"{")


class Delimited:
    """Lines of numbers."""

    typed = True
    unit = "line"

    def __init__(self, feed: Feed, name: str, expected: int) -> None:
        self._feed = feed
        self.columns: tuple[str, ...] | None = None
        self._skip = 0
        lines = _first(feed)
        while not lines and feed.peek_on():
            lines = _first(feed)
        if not lines:
            raise JacliError(f"there are no points in {name}", kind="file")
        number, first = lines[0]
        self._separator = _separator(first, expected)
        cells = split(first, self._separator)
        if all(map(is_column, cells)):
            self.columns, self._skip = tuple(cells), number
            while len(lines) == 1:
                if not feed.peek_on():
                    raise JacliError(f"there are no points in {name}, only the names of columns", kind="file")
                lines = _first(feed)
        elif (
            len(cells) != expected
            and len(lines) > 1
            and len(split(lines[1][1], _separator(lines[1][1], expected))) == expected
        ):
            self._separator = _separator(lines[1][1], expected)  # the first line is the odd one out
            cells = split(lines[1][1], self._separator)
        self.width = len(cells)

    def progress(self) -> float | None:
        """The part that has been read."""
        return self._feed.progress()

    def close(self) -> None:
        """Nothing more will be read."""
        self._feed.close()

    def read(self, chosen: Sequence[int]) -> Iterator[Rows]:
        """Every point's numbers in the chosen columns."""
        import numpy as np

        line = 1
        for raw in self._feed.blocks():
            block = raw.removeprefix(b"\xef\xbb\xbf") if line == 1 else raw
            count = block.count(b"\n") + (not block.endswith(b"\n"))
            numbers = None if line <= self._skip else self._at_once(block, count)
            if numbers is None:
                yield self._line_by_line(block, line, chosen)
            else:
                yield Rows(np.arange(line, line + count), columns_of(numbers, chosen))
            line += count

    def _at_once(self, block: bytes, count: int) -> Any:
        """The numbers of a block of nothing but plain numbers, else None."""
        import numpy as np
        import orjson

        if any(mark in block for mark in _SUSPICIOUS):
            return None
        text = self._with_commas(block)
        if text is None:
            return None
        try:
            numbers = np.fromiter(orjson.loads(b"[" + text.replace(b"\n", b",") + b"]"), np.float64)
        except (ValueError, OverflowError):
            return None
        if len(numbers) != count * self.width:
            return None
        if text.translate(None, _ALL_BUT_MARKS) != ((b"," * (self.width - 1) + b"\n") * count)[:-1]:
            return None  # the right number of numbers, but not in every line
        return numbers.reshape(count, self.width) if np.isfinite(numbers).all() else None

    def _with_commas(self, block: bytes) -> bytes | None:
        """The lines with commas, without the last line's end."""
        text = (block.replace(b"\r\n", b"\n") if b"\r" in block else block).removesuffix(b"\n")
        if self._separator == ",":
            return None if b"\t" in text else text
        if b"," in text:
            return None
        if self._separator is None:
            return re.sub(rb"[ \t]+", b",", re.sub(rb"(?m)^[ \t]+|[ \t]+$", b"", text))
        return text.replace(self._separator.encode(), b",")

    def _line_by_line(self, block: bytes, first: int, chosen: Sequence[int]) -> Rows:
        import numpy as np

        lines, numbers, bad = [], [], []
        for line, raw in enumerate(block.split(b"\n"), first):
            text = raw.decode("utf-8", "backslashreplace").removesuffix("\r")
            if line <= self._skip or not _content(text):
                continue
            try:
                cells = split(text, self._separator)
                if len(cells) != self.width:
                    raise counted(len(cells), self.width)
                numbers.append([number(cells[column]) for column in chosen])
                lines.append(line)
            except JacliError as error:
                bad.append(Bad(line, text, error.message))
        return Rows(np.array(lines, np.int64), np.array(numbers, np.float64).reshape(-1, len(chosen)), tuple(bad))


def _first(feed: Feed) -> list[tuple[int, str]]:
    """The first two lines that are more than blank or a comment, with their numbers."""
    lines = enumerate(io.BytesIO(feed.peek()), 1)
    decoded = ((number, line.decode("utf-8-sig", "backslashreplace").rstrip("\r\n")) for number, line in lines)
    return list(islice(((number, line) for number, line in decoded if _content(line)), 2))


def _content(line: str) -> bool:
    """Whether a line is more than blank or a comment."""
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith("#")


def _separator(line: str, expected: int) -> str | None:
    """The separator that gives the expected number of cells, else the first that is there; None for spaces."""
    there = [mark for mark in _SEPARATORS if mark in line]
    fitting = [mark for mark in there if len(split(line, mark)) == expected]
    if ";" in fitting and "," in fitting:  # decimals with commas, or calls
        fitting.remove(",")
    return next(iter(fitting or there), None)


def split(line: str, separator: str | None) -> list[str]:
    """A line's cells, without blanks and quotes around them."""
    if separator == "," and '"' in line:
        import csv

        return [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True))]
    cells = line.split(separator) if separator else line.split()
    return [cell.strip().strip('"') for cell in cells]


def counted(given: int, width: int) -> JacliError:
    """A line has too many values, or too few."""
    return JacliError(f"{given} value{'s' * (given != 1)} where {width} {'is' if width == 1 else 'are'} expected")


def number(cell: str) -> float:
    """A cell's double: a decimal, or a constant expression as ``--at`` takes it. Raises JacliError."""
    if not cell:
        raise JacliError("a value is missing")
    if _NUMBER.fullmatch(cell):
        value = float(cell)
        if math.isinf(value):
            raise JacliError(f"{cell} is beyond the range of doubles (about 1.8e308)")
        return value
    if _COMMA.fullmatch(cell):
        raise JacliError(f"{cell} is not one number: decimals take a point, as {cell.replace(',', '.')}")
    from jacli.language.points import read_point
    from jacli.problem import doubles

    items = read_point(cell).items
    values = doubles(items[0].value)
    if len(items) != 1 or items[0].name is not None or len(values) != 1:
        raise JacliError(f"{cell} is not one number")
    return values[0]
