"""Points as JSON lines: an array or an object a line. A nested array is an array variable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from jacli.errors import JacliError
from jacli.result import entry_names
from jacli.stream.lines import LineSource, counted
from jacli.stream.source import Feed

_ALL_BUT_MARKS = bytes(set(range(256)) - set(b"[]{}\n"))

#: Arrays in arrays.
_DEEPEST = 32

#: Characters of what is no number that a message shows.
_SHOWN = 40


class Documents(LineSource):
    """Lines of JSON."""

    def __init__(self, feed: Feed, name: str) -> None:
        super().__init__(feed)
        first = _first(feed.peek(), name)
        self._shapes: dict[str, tuple[int, ...]] | None = None
        if isinstance(first, dict):
            self._shapes = {key: _shape_if_any(value) for key, value in first.items()}
            self.columns = tuple(entry for key, shape in self._shapes.items() for entry in entry_names(key, shape))
            self.width = len(self.columns)
        else:
            self.width = len(first)

    def _at_once(self, block: bytes, count: int, chosen: Sequence[int]) -> Any:
        """As everywhere: here the lines are all alike, with nothing nested in them."""
        import numpy as np
        import orjson

        text = block.removesuffix(b"\n")
        around = b"{}\n" if self.columns else b"[]\n"
        if text.translate(None, _ALL_BUT_MARKS) != (around * count)[:-1]:
            return None  # something is nested, or a document does not begin and end with its line
        try:
            documents = orjson.loads(b"[" + text.replace(b"\n", b",") + b"]")
            if self.columns and not _named_once(text, documents):
                return None
            cells = [*chain.from_iterable(map(self._picked(chosen), documents))]
            if not set(map(type, cells)) <= {float, int}:
                return None
            numbers = np.fromiter(cells, np.float64, len(cells))
        except (ValueError, LookupError, OverflowError):
            return None
        alike = self.columns or {*map(len, documents)} == {self.width}
        return numbers.reshape(count, -1) if alike and len(documents) == count else None

    def _picked(self, chosen: Sequence[int]) -> Callable[[Any], Iterable[Any]]:
        """What takes the chosen values from a document."""
        keys = [self.columns[column] for column in chosen] if self.columns else chosen
        return itemgetter(*keys) if len(keys) > 1 else lambda document: [document[key] for key in keys]

    def _holds_point(self, text: str) -> bool:
        return bool(text.strip())

    def _cells(self, text: str, chosen: Sequence[int]) -> Sequence[str]:
        document = _loaded(text)
        if self._shapes is not None:
            if not isinstance(document, dict):
                raise JacliError("not a JSON object, as the first line is")
            return self._of_object(document, chosen)
        if not isinstance(document, list):
            raise JacliError("not a JSON array, as the first line is")
        if len(document) != self.width:
            raise counted(len(document), self.width)
        return [_cell(document[column]) for column in chosen]

    def _of_object(self, document: Mapping[str, Any], chosen: Sequence[int]) -> Sequence[str]:
        found: dict[str, str] = {}
        for name, shape in self._needed(chosen):
            if name not in document:
                raise JacliError(f"{name} is missing")
            if _shape(document[name]) != shape:
                raise JacliError(f"{name} has another shape than in the first line")
            found |= zip(entry_names(name, shape), _flat(document[name]), strict=True)
        assert self.columns is not None
        return [found[self.columns[column]] for column in chosen]

    def _needed(self, chosen: Sequence[int]) -> Iterable[tuple[str, tuple[int, ...]]]:
        """The keys whose entries are wanted, in the file's order, with their shapes."""
        assert self.columns is not None
        assert self._shapes is not None
        wanted = {self.columns[column].split("[")[0] for column in chosen}
        return ((key, shape) for key, shape in self._shapes.items() if key in wanted)


def _first(block: bytes, name: str) -> Any:
    """The first document that could be a point. Raises JacliError where there is none."""
    for line, raw in enumerate(block.split(b"\n"), 1):
        if raw.strip():
            try:
                document = _loaded(raw.decode("utf-8", "backslashreplace"))
            except JacliError as error:
                raise JacliError(f"line {line} of {name}: {error.message}", kind="file") from None
            if isinstance(document, list | dict):
                return document
    raise JacliError(f"there are no points in {name}", None, 'a line is as {"x": 1, "y": 2} or [1, 2]', kind="file")


def _named_once(text: bytes, objects: Sequence[Any]) -> bool:
    """Whether no object names anything twice, as far as that is seen at once: each name has a colon after it."""
    apart = any(mark in text for mark in (b" :", b"\t:", b"\r:"))
    return not apart and text.count(b'":') == sum(map(len, objects))


def _loaded(text: str) -> Any:
    """JSON whose numbers are still as they were typed. Raises JacliError where it is none."""
    import json

    try:
        return json.loads(text, parse_float=str, parse_int=str, parse_constant=_refuse, object_pairs_hook=_once_each)
    except (ValueError, RecursionError):
        raise JacliError("not valid JSON") from None


def _refuse(word: str) -> Any:
    raise ValueError(word)


def _once_each(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object's items. Raises JacliError when a name is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise JacliError(f"{next(name for name in names if names.count(name) > 1)} is given twice")
    return found


def _shape(value: Any, depth: int = 0) -> tuple[int, ...]:
    """The shape of nested lists. Raises JacliError where they are no array."""
    if not isinstance(value, list):
        return ()
    if not value:
        raise JacliError("an array needs at least one entry")
    if depth == _DEEPEST:
        raise JacliError("an array is nested too deeply")
    shapes = {_shape(part, depth + 1) for part in value}
    if len(shapes) > 1:
        raise JacliError("the rows of an array need one length")
    return (len(value), *shapes.pop())


def _shape_if_any(value: Any) -> tuple[int, ...]:
    """The shape of what may be no array, and is then judged where its line is read, if anyone needs it."""
    try:
        return _shape(value)
    except JacliError:
        return ()


def _flat(value: Any) -> list[str]:
    return [entry for part in value for entry in _flat(part)] if isinstance(value, list) else [_cell(value)]


def _cell(value: Any) -> str:
    """A number, or a constant between quotes, as it was typed."""
    if isinstance(value, str):
        return value
    import json

    raise JacliError(f"{json.dumps(value)[:_SHOWN]} is not a number")
