"""Points as JSON lines: an array or an object a line. A nested array is an array variable."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from jacli.errors import JacliError
from jacli.result import entry_names
from jacli.stream.delimited import counted, number
from jacli.stream.source import Bad, Feed, Rows

_ALL_BUT_MARKS = bytes(set(range(256)) - set(b"[]{}\n"))


class Documents:
    """Lines of JSON."""

    typed = True
    unit = "line"

    def __init__(self, feed: Feed, name: str) -> None:
        self._feed = feed
        self._shapes: dict[str, tuple[int, ...]] | None = None
        first = None
        for raw in feed.peek().splitlines():
            first = _loaded(raw)
            if isinstance(first, list | dict):
                break
        else:
            raise JacliError(
                f"there are no points in {name}", None, 'a line is as {"x": 1, "y": 2} or [1, 2]', kind="file"
            )
        if isinstance(first, dict):
            self._shapes = {key: _shape(value) for key, value in first.items()}
            self.columns: tuple[str, ...] | None = tuple(
                entry for key, shape in self._shapes.items() for entry in entry_names(key, shape)
            )
            self.width = len(self.columns)
        else:
            self.columns = None
            self.width = len(first)

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
        for block in self._feed.blocks():
            count = block.count(b"\n") + (not block.endswith(b"\n"))
            numbers = self._at_once(block, count, chosen)
            if numbers is None:
                yield self._line_by_line(block, line, list(chosen))
            else:
                yield Rows(np.arange(line, line + count), numbers)
            line += count

    def _at_once(self, block: bytes, count: int, chosen: Sequence[int]) -> Any:
        """The numbers of a block of lines that are all alike, with nothing nested in them, else None."""
        import numpy as np
        import orjson

        text = block.removesuffix(b"\n")
        around = b"{}\n" if self.columns else b"[]\n"
        if text.translate(None, _ALL_BUT_MARKS) != (around * count)[:-1]:
            return None  # something is nested, or a document does not begin and end with its line
        try:
            documents = orjson.loads(b"[" + text.replace(b"\n", b",") + b"]")
            cells = [*chain.from_iterable(map(self._picked(chosen), documents))]
            if not set(map(type, cells)) <= {float, int}:
                return None
            numbers = np.fromiter(cells, np.float64, len(cells))
        except (ValueError, LookupError, OverflowError):
            return None
        alike = self.columns or {*map(len, documents)} == {self.width}
        return numbers.reshape(count, -1) if alike and len(documents) == count and np.isfinite(numbers).all() else None

    def _picked(self, chosen: Sequence[int]) -> Callable[[Any], Iterable[Any]]:
        """What takes the chosen values from a document."""
        keys = [self.columns[column] for column in chosen] if self.columns else chosen
        return itemgetter(*keys) if len(keys) > 1 else lambda document: [document[key] for key in keys]

    def _line_by_line(self, block: bytes, first: int, chosen: list[int]) -> Rows:
        import numpy as np

        names = self._needed(chosen)
        lines, numbers, bad = [], [], []
        for line, raw in enumerate(block.split(b"\n"), first):
            if not raw.strip():
                continue
            try:
                numbers.append(self._point(raw, names, chosen))
                lines.append(line)
            except JacliError as error:
                bad.append(Bad(line, raw.decode("utf-8", "backslashreplace").removesuffix("\r"), error.message))
        array = np.array(numbers, np.float64).reshape(-1, len(chosen))
        return Rows(np.array(lines, np.int64), array, tuple(bad))

    def _needed(self, chosen: Sequence[int]) -> list[str]:
        """The keys whose entries are wanted, in the file's order."""
        if self.columns is None:
            return []
        wanted = {self.columns[column].split("[")[0] for column in chosen}
        return [key for key in self._shapes or () if key in wanted]

    def _point(self, raw: bytes, names: Sequence[str], chosen: Sequence[int]) -> list[float]:
        document = _loaded(raw)
        if self._shapes is None:
            if not isinstance(document, list):
                raise JacliError("not a JSON array, as the first line is")
            if len(document) != self.width:
                raise counted(len(document), self.width)
            return [_double(document[column]) for column in chosen]
        if not isinstance(document, dict):
            raise JacliError("not a JSON object, as the first line is")
        return self._from_object(document, names, chosen)

    def _from_object(self, document: dict[str, Any], names: Sequence[str], chosen: Sequence[int]) -> list[float]:
        found: dict[str, float] = {}
        assert self._shapes is not None
        assert self.columns is not None
        for name in names:
            if name not in document:
                raise JacliError(f"{name} is missing")
            if _shape(document[name]) != self._shapes[name]:
                raise JacliError(f"{name} has another shape than in the first line")
            found |= zip(entry_names(name, self._shapes[name]), _flat(document[name]), strict=True)
        return [found[self.columns[column]] for column in chosen]


def _loaded(raw: bytes) -> Any:
    import orjson

    try:
        return orjson.loads(raw)
    except ValueError:
        return _too_large(raw)


def _too_large(raw: bytes) -> Any:
    """JSON with a number that no double holds, which is infinite here. Raises JacliError where it is no JSON at all."""
    import json

    numbers: list[float] = []

    def read(text: str) -> float:
        numbers.append(float(text))
        return numbers[-1]

    def refuse(text: str) -> float:
        raise ValueError(text)

    try:
        document = json.loads(raw, parse_float=read, parse_int=read, parse_constant=refuse)
    except (ValueError, RecursionError):
        document = None
    if not any(map(math.isinf, numbers)) or document is None:
        raise JacliError("not valid JSON")
    return document


def _shape(value: Any) -> tuple[int, ...]:
    return (len(value), *_shape(value[0])) if isinstance(value, list) and value else ()


def _flat(value: Any) -> list[float]:
    return [entry for part in value for entry in _flat(part)] if isinstance(value, list) else [_double(value)]


def _double(value: Any) -> float:
    if isinstance(value, str):
        return number(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise JacliError(f"{'null' if value is None else value} is not a number")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if math.isinf(result):
        raise JacliError("a value is beyond the range of doubles (about 1.8e308)")
    return result
