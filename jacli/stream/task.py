"""What is to be computed at every point: the program, its columns, and the names of the results."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jacli.errors import JacliError
from jacli.language.parser import read
from jacli.language.points import read_names
from jacli.language.shapes import infer
from jacli.language.syntax import Program
from jacli.problem import Vector, read_vector
from jacli.readings.lowering import Lowered, TooLarge, lower
from jacli.result import entry_names

#: Longest program in single numbers, and most numbers in one point's result: each is kept for thousands of points.
MOST_OPERATIONS = 50_000
MOST_ENTRIES = 20_000

COMMANDS = ("jacobian", "vjp", "jvp", "grad", "hessian")

_COLUMN = re.compile(r"([^\W\d]\w*)(?:\[([0-9]{1,6}(?:,[0-9]{1,6})*)\])?")


@dataclass(frozen=True, slots=True)
class Variable:
    """A name, its shape, and its entries' places among the numbers of a point."""

    name: str
    shape: tuple[int, ...]
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The numbers of a point: the variables in order, and for each number the column of the file it comes from."""

    variables: tuple[Variable, ...]
    sources: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of a point's numbers."""
        return tuple(entry for v in self.variables for entry in entry_names(v.name, v.shape))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every variable's shape."""
        return {variable.name: variable.shape for variable in self.variables}


@dataclass(frozen=True, slots=True)
class Task:
    """One command, ready for any number of points.

    Attributes:
        command: one of ``COMMANDS``.
        program: the text, read.
        shapes: the shape of every node of the program.
        layout: the numbers of a point.
        wrt: the variables to differentiate by, in column order.
        lowered: the program in single numbers, its variables not bound.
        weights, tangent: the same at every point.
        rtol, atol: how close the readings must be to agree.
    """

    command: str
    program: Program
    shapes: Sequence[tuple[int, ...]]
    layout: Layout
    wrt: tuple[Variable, ...]
    lowered: Lowered
    weights: Vector | None
    tangent: Vector | None
    rtol: float
    atol: float

    @property
    def columns(self) -> tuple[str, ...]:
        """The entries differentiated by."""
        return tuple(entry for v in self.wrt for entry in entry_names(v.name, v.shape))

    @property
    def output_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Every output's shape."""
        return tuple(self.shapes[node] for node in self.program.outputs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs' entries."""
        named = zip(self.program.output_names(), self.output_shapes, strict=True)
        return tuple(entry for name, shape in named for entry in entry_names(name, shape))

    @property
    def output_nodes(self) -> tuple[int, ...]:
        """The nodes of the outputs' entries, on the tape."""
        return tuple(node for nodes in self.lowered.outputs for node in nodes)

    @property
    def column_nodes(self) -> tuple[int, ...]:
        """The nodes of the entries differentiated by, on the tape."""
        return tuple(node for v in self.wrt for node in self.lowered.variables[v.name])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one point's derivative."""
        rows, columns = len(self.outputs), len(self.columns)
        return {"jacobian": (rows, columns), "hessian": (columns, columns), "jvp": (rows,)}.get(
            self.command, (columns,)
        )

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of a derivative's entries, row by row."""
        if self.command == "jacobian":
            return tuple(f"d{row}/d{column}" for row in self.outputs for column in self.columns)
        if self.command == "hessian":
            return tuple(f"d2{self.outputs[0]}/d{a}d{b}" for a in self.columns for b in self.columns)
        if self.command == "grad":
            return tuple(f"d{self.outputs[0]}/d{column}" for column in self.columns)
        return tuple(f"{self.command}:{name}" for name in (self.outputs if self.command == "jvp" else self.columns))


def prepare(
    command: str,
    text: str,
    columns: Sequence[str] | None,
    width: int,
    *,
    vars: Any = None,
    wrt: Any = None,
    weights: Any = None,
    tangent: Any = None,
    rtol: float = 1e-9,
    atol: float = 0.0,
) -> Task:
    """Read a text and match its variables with the columns of a file.

    Args:
        command: one of ``COMMANDS``.
        text: the program.
        columns: the columns' names, or None where the file has none.
        width: how many columns there are.
        vars: names that bind columns without names, in order.
        wrt: names to differentiate by; all where None.
        weights: one number an output entry, the same at every point.
        tangent: one number a variable entry, the same at every point.
        rtol: relative difference that still agrees.
        atol: absolute difference that still agrees.

    Raises:
        JacliError: when anything does not fit.
    """
    order = read_names(vars, "--vars") if vars is not None else None
    named = [_parsed(column)[0] for column in columns or ()]
    program = read(text, {*named, *(order or ())})
    layout = bind(program, columns, width, order)
    shapes = infer(program, layout.shapes)
    lowered = _lowered(program, layout)
    by_name = {variable.name: variable for variable in layout.variables}
    chosen = _chosen(by_name, wrt)
    row = (
        None
        if weights is None
        else read_vector(weights, _output_shapes(program, shapes), program.output_names(), "weights")
    )
    column = None
    if tangent is not None:
        column = read_vector(tangent, [by_name[name].shape for name in chosen], list(chosen), "tangent")
    task = Task(
        command, program, shapes, layout, tuple(by_name[name] for name in chosen), lowered, row, column, rtol, atol
    )
    _check(task)
    return task


def _output_shapes(program: Program, shapes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    return [shapes[node] for node in program.outputs]


def _lowered(program: Program, layout: Layout) -> Lowered:
    try:
        lowered = lower(program, layout.shapes, MOST_OPERATIONS)
    except TooLarge:
        raise JacliError(
            f"written out in single numbers, the program has more than {MOST_OPERATIONS} operations",
            None,
            "for one point, with --at, there is more room",
            kind="limit",
        ) from None
    nodes = dict(lowered.variables)
    for variable in layout.variables:
        if variable.name not in nodes:  # a column that was asked for, though the program does not use it
            names = entry_names(variable.name, variable.shape)
            nodes[variable.name] = tuple(lowered.tape.add("variable", value=name) for name in names)
    return Lowered(lowered.tape, lowered.outputs, nodes, lowered.named)


def _check(task: Task) -> None:
    if task.command in ("grad", "hessian") and (len(task.outputs) != 1 or len(task.program.outputs) != 1):
        what = "Hessian" if task.command == "hessian" else "gradient"
        raise JacliError(
            f"a {what} is of one number, but this program has {len(task.outputs)} output entries",
            None,
            "use jacobian, or make one number of them: sum(…)",
            kind="shape",
        )
    if math.prod(task.shape) > MOST_ENTRIES:
        raise JacliError(
            f"each point's result would have {math.prod(task.shape)} entries; at most {MOST_ENTRIES} are computed",
            None,
            "vjp and jvp are smaller",
            kind="limit",
        )


# ---- columns


def _parsed(column: str) -> tuple[str, tuple[int, ...]]:
    """A column's variable and its place in it: ``a[0,1]`` is (a, (0, 1))."""
    match = _COLUMN.fullmatch(column.replace(" ", ""))
    if match is None:
        return column, ()
    return match.group(1), tuple(map(int, match.group(2).split(","))) if match.group(2) else ()


def is_column(text: str) -> bool:
    """Whether a cell of a first line is a name, so that the line is a header."""
    return _COLUMN.fullmatch(text.replace(" ", "")) is not None and text.lower() not in ("nan", "inf", "infinity")


def bind(program: Program, columns: Sequence[str] | None, width: int, order: Sequence[str] | None) -> Layout:
    """Match variables with columns, by name where there are names. Raises JacliError when they do not fit."""
    if columns is None:
        return _by_position(program, width, order)
    places = _places(columns)
    names = [name for name in (order or places) if name in program.variables or order]
    _refuse_twins(columns, {*names, *program.variables})
    missing = [name for name in program.variables if name not in places] + [n for n in names if n not in places]
    if missing:
        lacking = list(dict.fromkeys(missing))
        have = "has" if len(lacking) == 1 else "have"
        raise JacliError(
            f"{' and '.join(lacking)} {have} no column among {', '.join(columns)}"[:300],
            None,
            "columns with names bind by name; without names they bind in order, which --vars sets",
            kind="point",
        )
    variables: list[Variable] = []
    sources: list[int] = []
    for name in (*names, *(name for name in program.variables if name not in names)):
        shape = _shape(name, sorted(places[name]))
        variables.append(Variable(name, shape, tuple(range(len(sources), len(sources) + math.prod(shape)))))
        sources += [places[name][index] for index in sorted(places[name])]
    return Layout(tuple(variables), tuple(sources))


def _refuse_twins(columns: Sequence[str], needed: Collection[str]) -> None:
    """Raise JacliError where it is not clear which column is meant."""
    seen: set[tuple[str, tuple[int, ...]]] = set()
    for entry, column in zip(columns, map(_parsed, columns), strict=True):
        if column in seen and column[0] in needed:
            raise JacliError(f"two columns are named {entry}", kind="point")
        seen.add(column)


def _places(columns: Sequence[str]) -> dict[str, dict[tuple[int, ...], int]]:
    places: dict[str, dict[tuple[int, ...], int]] = {}
    for column, text in enumerate(columns):
        name, index = _parsed(text)
        places.setdefault(name, {})[index] = column
    return places


def _shape(name: str, indices: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of which ``indices`` are all entries."""
    shape = tuple(size + 1 for size in indices[-1])
    if list(indices) != [_unravelled(k, shape) for k in range(math.prod(shape))]:
        raise JacliError(
            f"the columns of {name} do not make up a whole array", None, f"{name}[0], {name}[1], …", kind="shape"
        )
    return shape


def _unravelled(position: int, shape: Sequence[int]) -> tuple[int, ...]:
    index: tuple[int, ...] = ()
    for size in reversed(shape):
        position, rest = divmod(position, size)
        index = (rest, *index)
    return index


def _by_position(program: Program, width: int, order: Sequence[str] | None) -> Layout:
    names = tuple(order if order is not None else program.variables)
    lacking = [name for name in program.variables if name not in names]
    if lacking:
        raise JacliError(f"{lacking[0]} has no value in --vars", None, f"add {lacking[0]} to --vars", kind="point")
    if len(names) == 1 and (width > 1 or _only_indexed(program, names[0])):
        return Layout((Variable(names[0], (width,), tuple(range(width))),), tuple(range(width)))
    if len(names) != width:
        listed = f" ({', '.join(names[:8])}{', …' * (len(names) > 8)})" if names else ""
        raise JacliError(
            f"the expression has {len(names)} variable{'s' * (len(names) != 1)}{listed}"
            f" but the points have {width} value{'s' * (width != 1)}",
            None,
            "--vars names every column, in order" if len(names) < width else "every variable needs a column",
            kind="point",
        )
    return Layout(tuple(Variable(name, (), (i,)) for i, name in enumerate(names)), tuple(range(width)))


def _only_indexed(program: Program, name: str) -> bool:
    """Whether every use of a variable is ``name[…]``."""
    node = program.variables.get(name)
    uses = [other for other in program.nodes if node in other.args]
    return node not in program.outputs and bool(uses) and all(use.op == "index" for use in uses)


def _chosen(variables: Mapping[str, Variable], wrt: Any) -> tuple[str, ...]:
    if wrt is None:
        return tuple(variables)
    names = read_names(wrt, "--wrt")
    for name in names:
        if name not in variables:
            raise JacliError(
                f"--wrt names {name}, which has no value",
                None,
                f"the variables are {', '.join(variables)}",
                kind="name",
            )
    return names
