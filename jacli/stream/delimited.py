"""Points as text, a line each: separated by commas, semicolons, tabs or spaces, with or without a header.

A block of plain numbers is read at once, as JSON with other punctuation; a block in which anything else turns up is
read line by line.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from jacli.errors import JacliError
from jacli.stream.lines import LineSource, counted, number
from jacli.stream.source import Feed, columns_of
from jacli.stream.task import is_column

_SEPARATORS = ("\t", ",", ";")

_ALL_BUT_MARKS = bytes(set(range(256)) - set(b",\n"))

#: What the fast way leaves to the slow one: words that JSON knows, comments, quotes, brackets.
_SUSPICIOUS = (b"u", b"l", b"#", b'"', b"[", b"{")


class Delimited(LineSource):
    """Lines of numbers."""

    def __init__(self, feed: Feed, name: str, expected: int) -> None:
        super().__init__(feed)
        lines = _first(feed)
        while not lines and feed.peek_on():
            lines = _first(feed)
        if not lines:
            raise JacliError(f"there are no points in {name}", kind="file")
        number, first = lines[0]
        self._separator = _separator(first, expected)
        cells = split(first, self._separator)
        if _are_names(cells):
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

    def _at_once(self, block: bytes, count: int, chosen: Sequence[int]) -> Any:
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
        return columns_of(numbers.reshape(count, self.width), chosen)

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

    def _holds_point(self, text: str) -> bool:
        return _content(text)

    def _cells(self, text: str, chosen: Sequence[int]) -> Sequence[str]:
        cells = split(text, self._separator)
        if len(cells) != self.width:
            raise counted(len(cells), self.width)
        return [cells[column] for column in chosen]


def _first(feed: Feed) -> list[tuple[int, str]]:
    """The first two lines that are more than blank or a comment, with their numbers."""
    lines = enumerate(io.BytesIO(feed.peek()), 1)
    decoded = ((number, line.decode("utf-8", "backslashreplace").rstrip("\r\n")) for number, line in lines)
    return list(islice(((number, line) for number, line in decoded if _content(line)), 2))


def _content(line: str) -> bool:
    """Whether a line is more than blank or a comment."""
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith("#")


def _are_names(cells: Sequence[str]) -> bool:
    """Whether a first line names the columns: some cell is in words, and none is a number that is no name.

    Columns that the program does not use may be called anything, or nothing.
    """
    return any(map(_is_word, cells)) and all(is_column(cell) or not _is_number(cell) for cell in cells)


def _is_word(cell: str) -> bool:
    return cell[:1].isidentifier() and cell.lower() not in ("nan", "inf", "infinity")


def _is_number(cell: str) -> bool:
    try:
        number(cell)
    except JacliError:
        return False
    return True


def _separator(line: str, expected: int) -> str | None:
    """The separator that gives the expected number of cells, else the first that is there; None for spaces."""
    there = [mark for mark in _SEPARATORS if mark in line]
    fitting = [mark for mark in there if len(split(line, mark)) == expected]
    if ";" in fitting and "," in fitting:  # decimals with commas, or calls
        fitting.remove(",")
    return next(iter(fitting or there), None)


def split(line: str, separator: str | None) -> list[str]:
    """A line's cells, without blanks and quotes around them. Raises JacliError where quotes cannot be read."""
    if separator and '"' in line:
        import csv

        try:
            return [cell.strip() for cell in next(csv.reader([line], delimiter=separator, skipinitialspace=True))]
        except csv.Error:  # a line's end within a line, or a cell of more than a hundred thousand characters
            raise JacliError("the quoted cells cannot be read") from None
    cells = line.split(separator) if separator else line.split()
    return [cell.strip().strip('"') for cell in cells]
