"""Points from files and streams, in blocks: whatever cannot be read is reported with its line, and the rest goes on."""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from jacli.errors import JacliError

#: Bytes that are read at once.
BLOCK = 1 << 22

#: Longest line of text.
LONGEST_LINE = 1 << 24

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

#: How long a stream may stay silent before what has come is answered, in seconds.
_PATIENCE = 0.05


@dataclass(frozen=True, slots=True)
class Bad:
    """A line that is no point."""

    line: int
    text: str
    message: str


@dataclass(frozen=True, slots=True)
class Rows:
    """Points in the order of the file.

    Attributes:
        lines: (points,) the line, or row, each point comes from, counted from 1.
        numbers: (points, chosen columns), float64 and finite.
        bad: the lines between them that are no points.
        typed: gives a line's numbers as they were typed, one tenth where the double is only next to it; None where
            the doubles are all there is.
        words: the lines in which a number was typed in words, as pi/2: it may be none of the numbers that doubles or
            decimals are, and the zero of a function that no double sees.
    """

    lines: Any
    numbers: Any
    bad: tuple[Bad, ...] = ()
    typed: Callable[[int], Sequence[str]] | None = None
    words: frozenset[int] = frozenset()


class Source(Protocol):
    """Where points come from.

    Attributes:
        columns: the columns' names, or None where there are none.
        width: how many columns there are.
        unit: what a place is called: ``line`` or ``row``.
    """

    columns: tuple[str, ...] | None
    width: int
    unit: str

    def read(self, chosen: Sequence[int]) -> Iterator[Rows]:
        """Every point's numbers in the chosen columns."""

    def progress(self) -> float | None:
        """The part that has been read, or None where nobody knows how much there is."""

    def close(self) -> None:
        """Nothing more will be read."""


def columns_of(numbers: Any, chosen: Sequence[int]) -> Any:
    """The chosen columns of an array, which itself is given back where these are all of them in order."""
    return numbers if list(chosen) == list(range(numbers.shape[1])) else numbers[:, list(chosen)]


class Feed:
    """Bytes in blocks of whole lines."""

    def __init__(self, file: BinaryIO, size: int | None) -> None:
        self.file = file
        self.size = size
        self.taken = 0
        self._rest = b""
        self._peeked: bytes | None = None
        self._begun = self._ended = False

    @classmethod
    def of_stream(cls) -> Feed:
        """Standard input."""
        if sys.stdin is None:
            return cls(io.BytesIO(b""), 0)
        return cls(sys.stdin.buffer, None)

    def peek(self) -> bytes:
        """The first block, which will come again."""
        if self._peeked is None:
            self._peeked = self._block() or b""
        return self._peeked

    def peek_on(self) -> bool:
        """Make the first block longer; False at the end of everything, or where it is long enough."""
        more = self._block() if len(self.peek()) < LONGEST_LINE else None
        self._peeked = self.peek() + (more or b"")
        return bool(more)

    def blocks(self) -> Iterator[bytes]:
        """Blocks that end with a line's end, except perhaps the last."""
        block: bytes | None = self.peek()
        self._peeked = b""
        while block:
            yield block
            block = self._block()

    def _block(self) -> bytes | None:
        while not self._ended:
            data = self._more()
            self.taken += len(data)
            self._ended = not data
            whole = self._rest + data
            cut = whole.rfind(b"\n") + 1 if data else len(whole)
            if cut:
                self._rest = whole[cut:]
                return self._unmarked(whole[:cut])
            self._rest = whole
            if len(whole) > LONGEST_LINE:
                raise JacliError(f"a line is longer than {LONGEST_LINE >> 20} MiB", kind="limit")
        return None

    def _unmarked(self, block: bytes) -> bytes:
        """A block without the mark that some put at the beginning of all."""
        begun, self._begun = self._begun, True
        return block if begun else block.removeprefix(_BYTE_ORDER_MARK)

    def _more(self) -> bytes:
        """A block of a file; of a stream, what has come when it pauses."""
        if self.size is not None:
            return self.file.read(BLOCK)
        parts, total = [], 0
        while total < BLOCK:
            data = os.read(self.file.fileno(), BLOCK) if _is_descriptor(self.file) else self.file.read(BLOCK)
            parts.append(data)
            total += len(data)
            if not data or not _is_descriptor(self.file) or not select.select([self.file], [], [], _PATIENCE)[0]:
                break
        return b"".join(parts)

    def close(self) -> None:
        """Close a file; standard input is not ours."""
        if sys.stdin is None or self.file is not sys.stdin.buffer:
            self.file.close()

    def progress(self) -> float | None:
        """The part that has been read."""
        return min(1.0, self.taken / self.size) if self.size else None


def _is_descriptor(file: BinaryIO) -> bool:
    try:
        file.fileno()
    except (OSError, ValueError, AttributeError):
        return False
    return True
