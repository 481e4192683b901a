"""The point of a large problem: a hundred thousand numbers read at once, exact values when one is asked for."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from jacli.errors import JacliError
from jacli.language.points import Data, Item, Point, read_point, read_text_file
from jacli.problem import doubles, shape_of
from jacli.readings.lowering import lower_constant
from jacli.readings.tape import Tape
from jacli.result import entry_names
from jacli.sparse.family import Floats, Ints

#: Text that could be nothing but plain numbers, quotients of them, and what separates them.
_PLAIN = re.compile(r"[-+0-9.eE/,;\s()]*")
_NAMED = re.compile(r"\s*([^\W\d]\w*)\s*=\s*")
_QUOTIENT = re.compile(r"\(?([-+]?[0-9]+)/([0-9]+)\)?")


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """Values in a row, with names or none.

    Attributes:
        names: one a value, or None.
        shapes: one a value, or None where all are single numbers.
        doubles: every entry, shape (entries,).
        exact: the node on a tape of one entry of one value, exactly as given: ``exact(tape, value, entry)``.
    """

    names: tuple[str, ...] | None
    shapes: tuple[tuple[int, ...], ...] | None
    doubles: Floats
    exact: Callable[[Tape, int, int], int]

    def __len__(self) -> int:
        return len(self.doubles) if self.shapes is None else len(self.shapes)


def read_values(given: Any, what: str = "point") -> Values:
    """Read a point, weights or a tangent, as ``points.read_point`` does, but fast where all is plain.

    Raises:
        JacliError: as ``read_point``.
    """
    found = None
    if isinstance(given, str):
        found = _quick(_contents(given, what))
    elif isinstance(given, Mapping):
        if all(type(value) in (int, float) for value in given.values()) and all(map(_is_name, given)):
            found = _of_numbers(tuple(map(str, given)), list(given.values()))
    elif hasattr(given, "dtype") and getattr(given, "ndim", 0) == 1 and given.dtype.kind in "fiu":
        found = _of_numbers(None, np.asarray(given))
    return found if found is not None else _of_point(read_point(given, what))


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name.isidentifier()


def _contents(text: str, what: str) -> str:
    """The text itself, or that of the plain file which it names."""
    if text.lstrip().startswith("@") and Path(text.strip()).suffix.lower() not in (".npy", ".csv", ".tsv", ".json"):
        return read_text_file(text.strip()[1:], what)
    return text


def _of_numbers(names: tuple[str, ...] | None, numbers: Any) -> Values | None:
    array = np.asarray(numbers, np.float64)
    if not np.isfinite(array).all():
        return None
    return Values(names, None, array, lambda tape, k, _: tape.number(Fraction(array[k].item())))


def _quick(text: str) -> Values | None:
    """Plain decimals and quotients between commas or on lines; None for anything else."""
    parts = re.sub(r",?\s*\n\s*", ",", text.strip()).replace(";", ",").split(",")
    names = None
    if "=" in text:
        cut = [_NAMED.match(part) for part in parts]
        found = [match for match in cut if match is not None]
        if len(found) < len(parts):
            return None
        names = tuple(match.group(1) for match in found)
        parts = [part[match.end() :] for part, match in zip(parts, found, strict=True)]
        if len(set(names)) < len(names):
            return None
    parts = [part.strip() for part in parts]
    known: dict[str, float] = {}
    for part in set(parts):
        number = _double(part) if _PLAIN.fullmatch(part) else None
        if number is None:
            return None
        known[part] = number
    array = np.array([known[part] for part in parts])

    def exact(tape: Tape, k: int, _: int) -> int:
        whole = _QUOTIENT.fullmatch(parts[k])
        return tape.number(Fraction(int(whole[1]), int(whole[2])) if whole else Fraction(parts[k]))

    return Values(names, None, array, exact)


def _double(part: str) -> float | None:
    """The nearest double to a plain number or a quotient of whole numbers."""
    quotient = _QUOTIENT.fullmatch(part)
    try:
        if quotient and (part[0] == "(") == (part[-1] == ")"):
            number = int(quotient[1]) / int(quotient[2])
        else:
            number = float(part)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return number if math.isfinite(number) and len(part) < 400 else None


def _of_point(point: Point) -> Values:
    values = [item.value for item in point.items]
    shapes = tuple(shape_of(value) for value in values)
    flat = np.concatenate([_doubles(item) for item in point.items] or [np.zeros(0)])

    def exact(tape: Tape, k: int, place: int) -> int:
        value = values[k]
        if isinstance(value, Data):
            return tape.number(Fraction(value.numbers[place]))
        return lower_constant(value, tape)[1][place]

    scalars = all(shape == () for shape in shapes)
    return Values(point.names or None, None if scalars else shapes, flat, exact)


def as_vector(values: Values, name: str) -> Values:
    """Single numbers as the entries of one vector."""
    return Values((name,), ((len(values),),), values.doubles, lambda tape, _, place: values.exact(tape, place, 0))


def _doubles(item: Item) -> Floats:
    if isinstance(item.value, Data) and all(type(number) is float for number in item.value.numbers):
        return np.array(item.value.numbers)
    try:
        return np.array(doubles(item.value))
    except JacliError as error:
        error.message = f"the value of {item.name}: {error.message}" if item.name else error.message
        raise


def unknown(names: tuple[str, ...], shapes: tuple[tuple[int, ...], ...]) -> Values:
    """Variables of these shapes that have no values."""
    flat = np.full(sum(map(math.prod, shapes)), np.nan)
    return Values(names, shapes if any(shapes) else None, flat, _no_value)


def _no_value(tape: Tape, _: int, __: int) -> int:
    raise AssertionError(f"there is no point to compute {len(tape.ops)} operations at")


@dataclass(frozen=True, eq=False)
class Space:
    """Variables at their values: what every column of a Jacobian stands for.

    Attributes:
        names: the variables in column order; the first ``free`` of them are differentiated by.
        shapes: one a variable, or None where all are single numbers.
        doubles: every entry of every variable, shape (entries,).
        columns: how many of the entries are columns.
        order: for each variable, which of ``values`` it is.
        values: the values as given.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...] | None
    doubles: Floats
    columns: int
    order: Sequence[int]
    values: Values

    @cached_property
    def starts(self) -> Ints:
        """The first entry of each variable, and the number of all entries."""
        sizes = [1] * len(self.names) if self.shapes is None else [math.prod(shape) for shape in self.shapes]
        return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)

    @cached_property
    def position(self) -> dict[str, int]:
        """Which variable a name is."""
        return {name: k for k, name in enumerate(self.names)}

    def shape(self, variable: int) -> tuple[int, ...]:
        """The shape of the k-th variable."""
        return () if self.shapes is None else self.shapes[variable]

    @cached_property
    def entries(self) -> tuple[str, ...]:
        """Names of all entries."""
        if self.shapes is None:
            return self.names
        return tuple(
            entry for name, shape in zip(self.names, self.shapes, strict=True) for entry in entry_names(name, shape)
        )

    def name(self, entry: int) -> str:
        """The name of a flat entry: ``x`` or ``a[1,2]``."""
        variable = int(np.searchsorted(self.starts, entry, side="right")) - 1
        shape = self.shape(variable)
        if not shape:
            return self.names[variable]
        index = np.unravel_index(entry - int(self.starts[variable]), shape)
        return f"{self.names[variable]}[{','.join(str(int(k)) for k in index)}]"

    def entry(self, name: str) -> int:
        """The flat entry called ``x`` or ``a[1,2]``."""
        stem, bracket, inside = name.partition("[")
        variable = self.position[stem]
        if not bracket:
            return int(self.starts[variable])
        index = tuple(map(int, inside[:-1].split(",")))
        return int(self.starts[variable] + np.ravel_multi_index(index, self.shape(variable)))

    def bind(self, tape: Tape, variable: int, entry: int) -> None:
        """Give a variable's node of ``tape`` the exact value of a flat entry."""
        owner = int(np.searchsorted(self.starts, entry, side="right")) - 1
        tape.bound[variable] = self.values.exact(tape, self.order[owner], entry - int(self.starts[owner]))


def space(values: Values, names: Sequence[str], wrt: Sequence[str] | None) -> Space:
    """Variables named ``names`` in the order of ``values``, those of ``wrt`` moved to the front.

    Raises:
        JacliError: ``wrt`` names what has no value.
    """
    position = {name: k for k, name in enumerate(names)}
    for name in wrt or ():
        if name not in position:
            known = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
            raise JacliError(f"--wrt names {name}, which has no value", None, f"the variables are {known}", kind="name")
    if wrt is None:
        order: Sequence[int] = range(len(names))
    else:
        chosen = set(wrt)
        order = [position[name] for name in wrt] + [k for k, name in enumerate(names) if name not in chosen]
    shapes = values.shapes
    sizes = [1] * len(names) if shapes is None else [math.prod(shape) for shape in shapes]
    flat = values.doubles
    if wrt is not None:
        starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        flat = np.concatenate([flat[starts[k] : starts[k + 1]] for k in order]) if order else flat
    return Space(
        tuple(names[k] for k in order),
        None if shapes is None else tuple(shapes[k] for k in order),
        flat,
        sum(sizes[k] for k in (order if wrt is None else order[: len(wrt)])),
        order,
        values,
    )
