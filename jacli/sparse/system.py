"""A large problem made ready: its families, its variables at the point, its outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jacli.errors import JacliError
from jacli.language.points import read_names
from jacli.language.shapes import infer
from jacli.language.syntax import natural_key
from jacli.result import entry_names
from jacli.sparse.equations import Equations, NotScalar, families
from jacli.sparse.family import Family, Ints
from jacli.sparse.point import Space, Values, as_vector, read_values, space, unknown
from jacli.sparse.scan import Scan, scan


@dataclass(frozen=True, eq=False)
class System:
    """What every command on a large problem starts from.

    Attributes:
        text: as typed.
        families: every output entry is the sum of its instances.
        space: the variables at the point.
        output_names, output_shapes: one an output.
        distinct: no two instances add to the same entry of the Jacobian.
        remarks: for standard error.
    """

    text: str
    families: tuple[Family, ...]
    space: Space
    output_names: tuple[str, ...]
    output_shapes: tuple[tuple[int, ...], ...] | None
    distinct: bool = True
    remarks: tuple[str, ...] = ()

    @cached_property
    def row_names(self) -> tuple[str, ...]:
        """Names of the output entries."""
        if self.output_shapes is None:
            return self.output_names
        pairs = zip(self.output_names, self.output_shapes, strict=True)
        return tuple(entry for name, shape in pairs for entry in entry_names(name, shape))

    @property
    def rows(self) -> int:
        """How many output entries there are."""
        if self.output_shapes is None:
            return len(self.output_names)
        return sum(map(math.prod, self.output_shapes))

    @property
    def products(self) -> str:
        """The products with the Jacobian that gave its entries, in words; families need none."""
        return ""

    @property
    def columns(self) -> int:
        """How many entries the variables differentiated have together."""
        return self.space.columns


def from_text(text: str, at: Any, *, vars: Any = None, wrt: Any = None) -> System | None:
    """A system of the equations of a long text; None when they are too few, or no equations of numbers.

    Raises:
        JacliError: where the text, the point or the names do not fit.
    """
    found = scan(text)
    if found is None:
        return None
    values = read_values(at) if at is not None else None
    order = read_names(vars, "--vars") if vars is not None else None
    equations = Equations(found, {*(values.names or () if values else ()), *(order or ())})
    try:
        used = _names(equations)
        if values is None:
            values = _of_any_value(order or _in_natural_order(used), equations)
        names, values = _bound(used, values, order, equations)
        variables = space(values, names, read_names(wrt, "--wrt") if wrt is not None else None)
        columns = _columns(equations, variables)
        found_families = tuple(families(equations, columns))
    except NotScalar:
        return None
    unused = [name for name in variables.names if name not in used][:3]
    remarks = tuple(f"{name} is given a value but not used: its derivatives are 0" for name in unused)
    return System(text, found_families, variables, _output_names(found, used), None, True, remarks)


def _names(equations: Equations) -> dict[str, int]:
    """The variables used, each with a word (its own or of an entry) that stands for it."""
    words = equations.scan.words
    return {words[word].partition("[")[0]: word for word in reversed(equations.variables.tolist())}


def _of_any_value(names: Sequence[str], equations: Equations) -> Values:
    """Variables without values, their shapes large enough for every entry that is named."""
    entries: dict[str, list[tuple[int, ...]]] = {name: [] for name in names}
    for word in equations.variables.tolist():
        name, bracket, inside = equations.scan.words[word].partition("[")
        if bracket and name in entries:
            entries[name].append(tuple(int(k) for k in inside[:-1].split(",")))
    shapes = tuple(tuple(max(sizes) + 1 for sizes in zip(*entries[name], strict=False)) for name in names)
    return unknown(tuple(names), shapes)


def _output_names(found: Scan, used: dict[str, int]) -> tuple[str, ...]:
    taken = used.keys() | {statement.name for statement in found.definitions}
    return tuple(f"f{k}" if f"f{k}" not in taken else f"output{k}" for k in range(len(found)))


def _bound(
    used: dict[str, int], values: Values, order: tuple[str, ...] | None, equations: Equations
) -> tuple[tuple[str, ...], Values]:
    """The variables' names in column order, with their values."""
    names = values.names or order
    if names is None:
        names = _in_natural_order(used)
        if len(names) == 1 and len(values) > 1 and "[" in equations.scan.words[used[names[0]]]:
            return names, as_vector(values, names[0])
    known = set(names)
    missing = [name for name in used if name not in known]
    if missing:
        raise _no_value(missing, used, equations)
    if len(names) != len(values):
        raise JacliError(
            f"the expression has {len(names)} variables but the point has {len(values)} values",
            None,
            "name them: " + ", ".join(f"{name}=…" for name in names[:4]) + ", …",
            kind="point",
        )
    return names, values


def _in_natural_order(names: Iterable[str]) -> tuple[str, ...]:
    """Names sorted by ``natural_key``; those of one stem, as x0 to x99999, by their number alone."""
    stems = {name.rstrip("0123456789") for name in names}
    stem = len(next(iter(stems), ""))
    if len(stems) == 1 and all(len(name) > stem and (name[stem] != "0" or len(name) == stem + 1) for name in names):
        return tuple(sorted(names, key=lambda name: int(name[stem:])))
    return tuple(sorted(names, key=natural_key))


def _no_value(missing: Sequence[str], used: dict[str, int], equations: Equations) -> JacliError:
    found = equations.scan
    word = int(np.flatnonzero(found.ids == used[missing[0]])[0])
    equation = int(np.searchsorted(found.first, word, side="right")) - 1
    others = f" (and {len(missing) - 1:,} more)" if len(missing) > 1 else ""
    program = equations.program(equation)
    error = JacliError(
        f"{missing[0]}{others} has no value in the point", program.nodes[program.variables[missing[0]]].span,
        f"add {missing[0]}=…", kind="point",
    )  # fmt: skip
    return equations.moved(error, equation)


def _columns(equations: Equations, variables: Space) -> Ints:
    """For each word, the flat entry it stands for; -1 for what is no variable.

    Raises:
        JacliError: an entry that its array does not have, located in the text.
        NotScalar: a name alone stands for an array.
    """
    words = equations.scan.words
    column = np.full(len(words), -1, np.int64)
    for word in equations.variables.tolist():
        column[word] = _column(words[word], variables)
        if column[word] < 0:
            raise _refused(equations, word, variables)
    return column


def _column(word: str, variables: Space) -> int:
    name, bracket, inside = word.partition("[")
    position = variables.position[name]
    shape = variables.shape(position)
    if not bracket:
        if shape:
            raise NotScalar
        return int(variables.starts[position])
    index = tuple(int(k) for k in inside[:-1].split(","))
    if len(index) < len(shape):
        raise NotScalar
    if len(index) > len(shape) or any(k >= size for k, size in zip(index, shape, strict=True)):
        return -1
    return int(variables.starts[position] + np.ravel_multi_index(index, shape))


def _refused(equations: Equations, word: int, variables: Space) -> JacliError:
    """The ordinary message for an entry that is not there."""
    found = equations.scan
    equation = int(np.searchsorted(found.first, int(np.flatnonzero(found.ids == word)[0]), side="right")) - 1
    program = equations.program(equation)
    try:
        infer(program, {name: variables.shape(variables.position[name]) for name in program.variables})
    except JacliError as error:
        return equations.moved(error, equation)
    raise NotScalar
