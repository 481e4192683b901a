"""Points, weights and tangents: names and constant values, from text, files or Python objects.

Nothing is computed here. A value is ``Data`` (numbers as they stand) or a ``Program`` without variables
(``pi/4``, ``ones(3)``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational, Real
from pathlib import Path
from typing import Any

from jacli.errors import JacliError, Span
from jacli.language.parser import exact, read
from jacli.language.syntax import Program
from jacli.language.tokens import MOST_DIGITS, tokenize

#: Greatest size of a file that is read for one point, in bytes.
MOST_BYTES = 1 << 30

_NUMBER = re.compile(r"([-+−]?)((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)")
_NAMED = re.compile(r"\s*([^\W\d]\w*)\s*=(?!=)")
_ASSIGNED = re.compile(rf"(?:[^\W\d]\w*=)?{_NUMBER.pattern}")
_JOINED = re.compile(r"([^\W\d]\w*)\s*(?:==|:=|:|->|=>|→|↦)\s*([^=].*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Data:
    """Numbers as they stand: ints and Fractions exactly as typed, floats as the doubles they are."""

    shape: tuple[int, ...]
    numbers: Sequence[int | Fraction | float]


@dataclass(frozen=True, slots=True)
class Item:
    """One value of a point; ``span`` is its place in the point's text."""

    name: str | None
    value: Data | Program
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """The items of a point as typed: all with names, or none."""

    items: tuple[Item, ...]
    text: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names given, in the order typed; none for a point without names."""
        return tuple(item.name for item in self.items if item.name is not None)


def read_point(at: Any, what: str = "point") -> Point:
    """Read a point, weights or a tangent.

    Args:
        at: text as an option takes it (``2,4``, ``x=2,y=1/3``, a JSON object or list, ``@FILE``), or a number, a
            sequence, a numpy array, or a mapping from names to these.
        what: what messages call it.

    Raises:
        JacliError: when it cannot be read.
    """
    if isinstance(at, str):
        return _from_file(at.strip()[1:], what) if at.strip().startswith("@") else _from_text(at, what)
    if isinstance(at, Mapping):
        return Point(tuple(Item(_checked_name(str(name)), _from_object(value, what)) for name, value in at.items()))
    value = _from_object(at, what)
    if isinstance(value, Data) and len(value.shape) == 1:
        return Point(tuple(Item(None, Data((), (number,))) for number in value.numbers))
    if isinstance(at, Sequence):
        return Point(tuple(Item(None, _from_object(part, what)) for part in at))
    return Point((Item(None, value),))


def read_constant(text: str, what: str = "point") -> Data | Program:
    """One value as text, a number or an expression of constants, and never a file. Raises JacliError."""
    return _value(text.strip(), 0, what)


# ---- text


def _from_text(text: str, what: str, *, typed: bool = True) -> Point:
    """A point as typed, or as a file holds it, which cannot name other files."""
    if any(0xDC80 <= ord(char) <= 0xDCFF for char in text):
        raise JacliError(f"the {what} is not valid UTF-8", None, "save or type it as UTF-8", kind="point")
    if text.lstrip()[:1] == "{":
        return _from_json(text, what)
    blanked = re.sub(r"#[^\n]*", lambda comment: " " * len(comment.group()), text)
    try:
        items = tuple(_item(blanked, start, stop, what, typed) for start, stop in _parts(blanked))
    except JacliError as error:
        raise error.located_in(text) from None
    if not items:
        verb = "are" if what == "weights" else "is"
        raise JacliError(
            f"the {what} {verb} empty", None, "type numbers separated by commas, or name=value", kind="point"
        )
    _check_all_or_none_named(items, text, what)
    return Point(items, text)


def _parts(text: str) -> list[tuple[int, int]]:
    """The ranges between commas, semicolons and line ends outside brackets."""
    parts, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if depth <= 0 and char in ",;\n":
            parts.append((start, place, char))
            start = place + 1
    parts.append((start, len(text), "\n"))
    return [(a, b) for a, b, separator in parts if text[a:b].strip() or separator == "," or _before_comma(text, a)]


def _before_comma(text: str, start: int) -> bool:
    """A blank part that follows a comma is a missing value, not an empty line."""
    return start > 0 and text[start - 1] == ","


def _item(text: str, start: int, stop: int, what: str, typed: bool) -> Item:
    named = _NAMED.match(text, start, stop)
    name = named.group(1) if named else None
    begin = named.end() if named else start
    raw = text[begin:stop]
    body = raw.strip()
    begin += len(raw) - len(raw.lstrip())
    span = Span(begin, begin + len(body))
    if not body:
        raise JacliError(
            f"a value is missing in the {what}", Span(start, max(stop, start + 1)), "type a number", kind="point"
        )
    if body.startswith("@") and not typed:
        raise JacliError("a file cannot name another file", span, f"type it in the {what} itself", kind="file")
    if body.startswith("@"):
        return Item(name, _array_file(body[1:], what), span)
    try:
        if name is None and "=" in body:
            raise _not_named(body, span)
        return Item(name, _value(body, begin, what, text), span)
    except JacliError as error:
        raise _habit(name, body, span) or error from None


def _not_named(body: str, span: Span) -> JacliError:
    left = body.partition("=")[0].strip()
    array = re.match(r"([^\W\d]\w*)\s*\[", left)
    hint = f"an array has one value: {array.group(1)}=[…]" if array else "type name=value"
    return JacliError(f"{left or 'nothing'} is not a variable name", span, hint, kind="point")


def _habit(name: str | None, body: str, span: Span) -> JacliError | None:
    """Another way to write values down, and how to type them here; None where it is something else."""
    lead = f"{name}=" if name else ""
    joined, parts = _JOINED.fullmatch(body), body.split()
    if joined and name is None:
        message, hint = "a name and its value are joined by =", f"type {joined.group(1)}={joined.group(2)}"
    elif body.startswith("(") and body.find(")") == len(body) - 1 and len(_parts(body[1:-1])) > 1:
        message, hint = "( ) group one value", f"type {lead}[{body[1:-1]}]" if name else f"type {body[1:-1]}"
    elif len(parts) > 1 and all(map(_ASSIGNED.fullmatch, parts)):
        message, hint = "values are separated by commas", f"type {lead}{','.join(parts)}"
    else:
        return None
    return JacliError(message, span, hint, kind="point")


def _value(body: str, offset: int, what: str, text: str = "") -> Data | Program:
    """One value, which stands in ``text`` at ``offset``."""
    try:
        number = _literal(body)
        if number is not None:
            return Data((), (number,))
        program = read(body)
    except JacliError as error:
        raise _moved(_placed(error, body, text[:offset]), offset) from None
    for name, node in program.variables.items():
        raise _not_constant(name, program.nodes[node].span, offset, what)
    if len(program.outputs) > 1 or program.names:
        raise JacliError(f"one value is needed in the {what}", Span(offset, offset + len(body)), kind="point")
    literal = _plain_array(program)
    return literal if literal is not None else program


def _placed(error: JacliError, body: str, before: str) -> JacliError:
    """The error of ``body`` with the column where it stands, behind ``before``: it is read again, behind blanks."""
    try:
        read(re.sub(r"[^\n]", " ", before) + body)
    except JacliError as again:
        error.message = again.message
    return error


def _not_constant(name: str, span: Span, offset: int, what: str) -> JacliError:
    lowered = name.lower()
    if lowered in ("inf", "infinity", "nan", "oo"):
        message, hint = f"{name} is not a finite number", f"the {what} must be finite real numbers"
    elif name == "e":
        message, hint = "e has no value here", "Euler's number is written E"
    else:
        message, hint = f"{name} has no value here", f"the {what} is made of constants: numbers, pi, E, sqrt(2)"
    return _moved(JacliError(message, span, hint, kind="point"), offset)


def _moved(error: JacliError, offset: int) -> JacliError:
    """An error in a part, counted in the whole text."""
    span = error.span and Span(error.span.start + offset, error.span.stop + offset)
    return JacliError(error.message, span, error.hint, kind=error.kind)


def _literal(body: str) -> int | Fraction | None:
    """A plain decimal, quickly; anything else is left to the parser and its messages."""
    match = _NUMBER.fullmatch(body)
    if match is None or len(body) > MOST_DIGITS:
        return None
    tokenize(match.group(2))  # its limits
    value = exact(match.group(2))
    return value if match.group(1) in ("", "+") else -value


def _plain_array(program: Program) -> Data | None:
    """A bracketed array of plain numbers as data: long arrays should not be expressions."""
    shapes: list[tuple[int, ...]] = []
    numbers: list[list[int | Fraction]] = []
    for op, args, value, _ in program.nodes:
        if op == "number":
            shapes.append(())
            numbers.append([value])
        elif op == "neg" and not shapes[args[0]] and len(numbers[args[0]]) == 1:
            shapes.append(())
            numbers.append([-numbers[args[0]][0]])
        elif op == "array" and len({shapes[arg] for arg in args}) == 1:
            shapes.append((len(args), *shapes[args[0]]))
            numbers.append([number for arg in args for number in numbers[arg]])
        else:
            return None
    root = program.outputs[0]
    return Data(shapes[root], tuple(numbers[root]))


def _check_all_or_none_named(items: Iterable[Item], text: str, what: str) -> None:
    items = tuple(items)
    named = [item for item in items if item.name is not None]
    if named and len(named) < len(items):
        bare = next(item for item in items if item.name is None)
        assert bare.span is not None
        hint = "name every value, or none"
        previous = named[0].name
        if len(named) == 1:
            hint += f"; for an array type {previous}=[…]"
        raise JacliError(f"this value of the {what} has no name", bare.span, hint, text=text, kind="point")
    seen: set[str] = set()
    for item in named:
        assert item.name is not None
        if item.name in seen:
            raise JacliError(f"{item.name} is given twice", item.span, text=text, kind="point")
        seen.add(item.name)


def _checked_name(name: str) -> str:
    if not _NAMED.fullmatch(name + "="):
        raise JacliError(f"{name} is not a variable name", None, "names are letters, digits and _", kind="name")
    return name


def read_names(text: str | Iterable[str], what: str) -> tuple[str, ...]:
    """Names separated by commas, for ``--vars`` and ``--wrt``. Raises JacliError at one that is no name."""
    if not isinstance(text, Iterable):
        raise JacliError(f"{what} takes names, not {text!r}", kind="name")
    parts = [part.strip() for part in text.split(",")] if isinstance(text, str) else [str(part) for part in text]
    if not parts:
        raise JacliError(f"no name is given in {what}", kind="name")
    for part in parts:
        if not re.fullmatch(r"[^\W\d]\w*", part):
            shown = part or "nothing"
            raise JacliError(
                f"{shown} is not a variable name (in {what})",
                None,
                "names are letters, digits and _, separated by commas",
                kind="name",
            )
    repeated = next((part for part in parts if parts.count(part) > 1), None) if len(parts) < 1000 else None
    if repeated or len(set(parts)) < len(parts):
        raise JacliError(f"{repeated or 'a name'} is given twice in {what}", kind="name")
    return tuple(parts)


# ---- JSON, files


def _from_json(text: str, what: str) -> Point:
    import json

    try:
        document = json.loads(
            text, parse_int=_Number, parse_float=_Number, parse_constant=_not_finite, object_pairs_hook=_once_each
        )
    except RecursionError:
        raise JacliError(f"the {what} is nested too deeply", kind="limit") from None
    except ValueError as error:
        place = getattr(error, "pos", None)
        span = None if place is None else Span(place, min(place + 1, len(text)))
        raise JacliError(
            f"the {what} is not valid JSON", span, 'as in {"x": 2, "a": [[1, 2], [3, 4]]}', text=text
        ) from None
    if isinstance(document, dict):
        return Point(tuple(Item(_checked_name(name), _from_object(value, what)) for name, value in document.items()))
    if isinstance(document, list):
        return Point(tuple(Item(None, _from_object(value, what)) for value in document))
    return Point((Item(None, _from_object(document, what)),))


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's items. Raises JacliError when a name is there twice."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise JacliError(f"{name} is given twice", kind="point")
        found[name] = value
    return found


class _Number(str):
    """A JSON number, still as typed."""


def _not_finite(word: str) -> Any:
    raise JacliError(f"{word} is not a finite number", kind="point")


def _from_object(value: Any, what: str) -> Data | Program:
    """A number, a text, nested sequences of them, or a numpy array."""
    if isinstance(value, Data):
        return value
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return _from_array(value, what)
    if isinstance(value, str) and not isinstance(value, _Number):
        return _value(value.strip(), 0, what)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return _from_sequence(value, what)
    return Data((), (_from_number(value, what),))


def _clipped(value: str) -> str:
    return value if len(value) <= 40 else f"{value[:20]}… ({len(value)} characters)"


def _from_number(value: Any, what: str) -> int | Fraction | float:
    if isinstance(value, _Number):
        number = _literal(str(value))
        if number is None:
            raise JacliError(f"{_clipped(value)} is not a number that can be read", kind="point")
        return number
    if isinstance(value, bool) or not (isinstance(value, Real) or hasattr(value, "as_integer_ratio")):
        raise JacliError(f"{value!r} is not a number", None, f"the {what} is made of finite real numbers", kind="point")
    if isinstance(value, Rational):
        return int(value.numerator) if value.denominator == 1 else Fraction(value)
    if not math.isfinite(value):
        raise JacliError(f"{value} is not a finite number", kind="point")
    return float(value) if isinstance(value, float) else Fraction(*value.as_integer_ratio())


def _from_sequence(values: Sequence[Any], what: str) -> Data | Program:
    parts = [_from_object(value, what) for value in values]
    if not parts:
        raise JacliError("an array needs at least one entry", kind="point")
    data = [part for part in parts if isinstance(part, Data)]
    if len(data) < len(parts):
        return _value("[" + ", ".join(_retyped(part) for part in parts) + "]", 0, what)
    if len({part.shape for part in data}) > 1:
        raise JacliError("the rows of an array need one length", kind="shape")
    return Data((len(data), *data[0].shape), tuple(number for part in data for number in part.numbers))


def _retyped(value: Data | Program) -> str:
    """A value as text again, so that a list may mix numbers and expressions."""
    if isinstance(value, Program):
        return f"({value.text})" if not value.text.lstrip().startswith("[") else value.text
    if value.shape == ():
        number = Fraction(value.numbers[0])
        return f"({number.numerator}/{number.denominator})"
    size = math.prod(value.shape[1:])
    rows = [Data(value.shape[1:], value.numbers[i * size : (i + 1) * size]) for i in range(value.shape[0])]
    return "[" + ", ".join(map(_retyped, rows)) + "]"


def _from_array(array: Any, what: str) -> Data:
    import numpy as np

    array = np.asarray(array)
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise JacliError(f"the {what} holds {array.dtype} values; it must hold real numbers", kind="point")
    if not np.isfinite(array).all():
        raise JacliError(f"the {what} holds a value that is not finite", kind="point")
    return Data(tuple(array.shape), array.reshape(-1).tolist())


def _found(path: str, what: str) -> Path:
    """A regular file that is there, and not too large. Raises JacliError."""
    file = Path(path.strip())
    try:
        if not path.strip():
            raise JacliError(f"@ needs a file name in the {what}", kind="file")
        if not file.is_file():
            there = "is a directory" if file.is_dir() else "is no regular file"
            raise JacliError(f"{path} {there}" if file.exists() else f"there is no file {path}", kind="file")
        if file.stat().st_size > MOST_BYTES:
            raise JacliError(f"{path} is larger than {MOST_BYTES >> 20} MiB", kind="limit")
    except (OSError, ValueError) as error:
        raise JacliError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}", kind="file") from None
    return file


def read_text_file(path: str, what: str) -> str:
    """A UTF-8 text file. Raises JacliError, naming the file."""
    try:
        return _found(path, what).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise JacliError(f"{path} is not valid UTF-8 text", kind="file") from None
    except OSError as error:
        raise JacliError(f"{path} cannot be read: {error.strerror}", kind="file") from None


def _load_npy(path: str, what: str) -> Data:
    import numpy as np

    try:
        # mapped, so that a header that promises more than the file holds is found out before memory is asked for
        array = np.load(_found(path, what), allow_pickle=False, mmap_mode="r")
    except (ValueError, OSError, EOFError):
        raise JacliError(f"{path} is not an array in .npy format (pickles are never loaded)", kind="file") from None
    if not hasattr(array, "dtype"):
        raise JacliError(f"{path} holds several arrays; one is needed", kind="file")
    return _from_array(array, f"array in {path}")


def _load_csv(path: str, what: str) -> tuple[tuple[str, ...] | None, list[list[Data | Program]]]:
    """Header names, if the first row has no number, and the rows."""
    import csv

    text = read_text_file(path, what)
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    dialect = "\t" if lines and "\t" in lines[0] else ";" if lines and ";" in lines[0] else ","
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=dialect)]
    header = tuple(rows.pop(0)) if rows and all(re.fullmatch(r"[^\W\d]\w*", cell) for cell in rows[0]) else None
    try:
        return header, [[_value(cell, 0, what) for cell in row] for row in rows]
    except JacliError as error:
        raise JacliError(f"{path}: {error.message}", None, error.hint, kind="file") from None


def _array_file(path: str, what: str) -> Data | Program:
    """The file of one array."""
    suffix = Path(path.strip()).suffix.lower()
    if suffix == ".npy":
        return _load_npy(path, what)
    if suffix in (".csv", ".tsv"):
        _, rows = _load_csv(path, what)
        if len(rows) == 1 and len(rows[0]) == 1:
            return rows[0][0]
        return _from_sequence(rows if len(rows) > 1 else rows[0], what) if rows else _from_sequence([], what)
    text = read_text_file(path, what)
    if suffix == ".json":
        point = _from_json(text, what)
        if point.names:
            raise JacliError(f"{path} holds an object; one array is needed", kind="file")
        return (
            point.items[0].value
            if not text.lstrip().startswith("[")
            else _from_sequence([i.value for i in point.items], what)
        )
    return _value(text.strip(), 0, what)


def _from_file(path: str, what: str) -> Point:
    """The file of a whole point."""
    suffix = Path(path.strip()).suffix.lower()
    if suffix == ".npy":
        return read_point(_Loaded(_load_npy(path, what)).spread(), what)
    if suffix in (".csv", ".tsv"):
        header, rows = _load_csv(path, what)
        if header is None and all(len(row) == 1 for row in rows):
            rows = [[row[0] for row in rows]]
        if header is None and what != "point" and len(rows) > 1:  # weights in the outputs' shape
            return Point((Item(None, _from_sequence(rows, what)),))
        if len(rows) != 1 or (header is not None and len(header) != len(rows[0])):
            raise JacliError(
                f"{path} has {len(rows)} rows of values; a point has one",
                None,
                "for one array type name=@FILE",
                kind="file",
            )
        names: Sequence[str | None] = header or [None] * len(rows[0])
        return Point(tuple(Item(name, value) for name, value in zip(names, rows[0], strict=True)))
    text = read_text_file(path, what)
    try:
        return _from_json(text, what) if suffix == ".json" else _from_text(text, what, typed=False)
    except JacliError as error:
        error.message = f"{path}: {error.message}"
        raise


@dataclass(frozen=True, slots=True)
class _Loaded:
    data: Data

    def spread(self) -> list[Data]:
        """A vector's entries as separate values; any other array as one."""
        if len(self.data.shape) == 1:
            return [Data((), (number,)) for number in self.data.numbers]
        return [self.data]
