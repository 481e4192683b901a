"""A request made ready: a program, its variables bound to a point, shapes checked, the exact tape written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from jacli.errors import JacliError
from jacli.functions import ROWS, lookup
from jacli.functions.arrays import words
from jacli.language.parser import read
from jacli.language.points import Data, Item, Point, read_names, read_point
from jacli.language.shapes import infer
from jacli.language.syntax import Program
from jacli.readings.lowering import Lowered, TooLarge, lower, lower_constant
from jacli.readings.tape import Tape
from jacli.result import Named, entry_names

#: Longest program in single numbers that the exact readings take on, in operations.
MOST_OPERATIONS = 500_000

#: Most entries of one variable.
MOST_ENTRIES = 10_000_000


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How close a float must be: ``|float - exact| <= rtol*|exact| + atol``, besides what rounding explains."""

    rtol: float = 1e-9
    atol: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("rtol", self.rtol), ("atol", self.atol)):
            if not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise JacliError(f"{name} is a finite number not below 0, not {value!r}", kind="option")


@dataclass(frozen=True, slots=True)
class Variable:
    """A name with its value.

    ``doubles`` are the entries (row-major), each the double nearest to the exact value; ``nodes`` are the entries'
    nodes on the exact tape (empty where there is none).
    """

    name: str
    shape: tuple[int, ...]
    doubles: tuple[float, ...]
    nodes: tuple[int, ...]

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the entries, row-major."""
        return entry_names(self.name, self.shape)

    def named(self) -> Named:
        """The variable as results show it."""
        return Named(self.name, self.shape, self.entries, self.doubles)


@dataclass(frozen=True, slots=True)
class Problem:
    """What every command starts from.

    Attributes:
        program: the text, read.
        shapes: the shape of every node of the program.
        wrt: the variables to differentiate by, in column order.
        fixed: the others.
        lowered: the program in single numbers with every variable bound, or None when that would be too long.
        remarks: for standard error.
    """

    program: Program
    shapes: Sequence[tuple[int, ...]]
    wrt: tuple[Variable, ...]
    fixed: tuple[Variable, ...]
    lowered: Lowered | None
    remarks: tuple[str, ...]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All of them, those differentiated first."""
        return (*self.wrt, *self.fixed)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns: the entries of the variables differentiated."""
        return tuple(name for variable in self.wrt for name in variable.entries)

    @property
    def column_nodes(self) -> tuple[int, ...]:
        """The columns' nodes on the exact tape."""
        return tuple(node for variable in self.wrt for node in variable.nodes)

    @property
    def output_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The outputs' shapes, in order."""
        return tuple(self.shapes[node] for node in self.program.outputs)

    @property
    def output_size(self) -> int:
        """How many entries the outputs have together: the rows of the Jacobian."""
        return sum(map(math.prod, self.output_shapes))

    def notes(self) -> tuple[str, ...]:
        """How the functions used are defined, where that could be doubted."""
        used = {(node.op, len(node.args)) for node in self.program.nodes}
        rows = [(ROWS[op], count) for op, count in sorted(used) if op in ROWS and ROWS[op].kind == "elementwise"]
        return tuple(
            f"{row.name}: {row.meaning}; {row.definitions[count]}" for row, count in rows if count in row.definitions
        )


@dataclass(frozen=True, slots=True)
class Bound:
    """A program with its variables bound and every shape known, before anything is written out in single numbers.

    ``chosen`` are the variables to differentiate by, in column order.
    """

    program: Program
    values: Mapping[str, Data | Program]
    variable_shapes: Mapping[str, tuple[int, ...]]
    shapes: Sequence[tuple[int, ...]]
    chosen: tuple[str, ...]

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of the Jacobian."""
        rows = sum(math.prod(self.shapes[node]) for node in self.program.outputs)
        return rows, sum(math.prod(self.variable_shapes[name]) for name in self.chosen)

    def remarks(self) -> tuple[str, ...]:
        """What is worth saying on standard error."""
        used = self.program.variables
        return tuple(
            f"{name} is given a value but not used: its derivatives are 0" for name in self.chosen if name not in used
        )

    def problem(self) -> Problem:
        """The problem, its exact tape written."""
        lowered = _lowered(self.program, self.variable_shapes, self.shapes, self.values)
        variables = {
            name: _variable(name, self.variable_shapes[name], value, lowered) for name, value in self.values.items()
        }
        return Problem(
            self.program,
            self.shapes,
            tuple(variables[name] for name in self.chosen),
            tuple(variable for name, variable in variables.items() if name not in self.chosen),
            lowered,
            self.remarks(),
        )


def prepare(text: str, at: Any, *, vars: Any = None, wrt: Any = None, point: Point | None = None) -> Problem:
    """Read a text and bind its variables: ``bound``, and the exact tape. Arguments and errors as for ``bound``."""
    return bound(text, at, vars=vars, wrt=wrt, point=point).problem()


def bound(text: str, at: Any, *, vars: Any = None, wrt: Any = None, point: Point | None = None) -> Bound:
    """Read a text and bind its variables.

    Args:
        text: the program.
        at: the point, as an option takes it or as Python objects (see ``read_point``).
        vars: names, in the order in which a point without names binds them.
        wrt: names to differentiate by; all where None.
        point: ``at`` when it has been read already.

    Raises:
        JacliError: when anything does not fit.
    """
    if not isinstance(text, str):
        raise JacliError("the expression must be text", kind="request")
    point = read_point(at) if point is None else point
    order = read_names(vars, "--vars") if vars is not None else None
    program = read(text, {*point.names, *(order or ())})
    values = bind(program, point, order)
    shapes = {name: shape_of(value) for name, value in values.items()}
    return Bound(program, values, shapes, infer(program, shapes), _chosen(values, wrt))


def _chosen(variables: Mapping[str, object], wrt: Any) -> tuple[str, ...]:
    if wrt is None:
        return tuple(variables)
    names = read_names(wrt, "--wrt")
    for name in names:
        if name not in variables:
            known = ", ".join(variables) or "none"
            raise JacliError(f"--wrt names {name}, which has no value", None, f"the variables are {known}", kind="name")
    return names


# ---- binding


def bind(program: Program, point: Point, order: tuple[str, ...] | None) -> dict[str, Data | Program]:
    """Each variable's value, in column order. Raises JacliError when names or counts do not fit."""
    if point.names:
        return _bind_by_name(program, point, order)
    names = order if order is not None else tuple(program.variables)
    if order is not None:
        _check_all_named(program, order, "--vars")
    if len(names) == 1 and len(point.items) > 1 and _only_indexed(program, names[0]):
        return {names[0]: _vector(point.items)}
    if len(names) != len(point.items):
        raise _wrong_count(program, names, point)
    return {name: item.value for name, item in zip(names, point.items, strict=True)}


def _bind_by_name(program: Program, point: Point, order: tuple[str, ...] | None) -> dict[str, Data | Program]:
    values = {item.name: item.value for item in point.items if item.name is not None}
    _check_all_named(program, tuple(values), "the point")
    for name in order or ():
        if name not in values:
            raise JacliError(f"{name} is in --vars but has no value in the point", kind="point")
    names = (*(order or ()), *(name for name in values if name not in (order or ())))
    return {name: values[name] for name in names}


def _check_all_named(program: Program, names: Sequence[str], where: str) -> None:
    known = set(names)
    missing = [name for name in program.variables if name not in known]
    if not missing:
        return
    node = program.nodes[program.variables[missing[0]]]
    hint = f"add {missing[0]}=…" if where == "the point" else f"add {missing[0]} to {where}"
    hint = f"{_meant(missing[0])}; otherwise {hint}" if _meant(missing[0]) else hint
    lacking = _listed(missing)
    verb = "has" if len(missing) == 1 else "have"
    raise JacliError(f"{lacking} {verb} no value in {where}", node.span, hint, text=program.text, kind="point")


def _listed(names: Sequence[str]) -> str:
    """``a, b and c``; long lists are shortened with their number."""
    if len(names) > 12:
        return f"{', '.join(names[:8])}, … ({len(names)} names)"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _meant(name: str) -> str | None:
    """What else a variable without a value may have been meant for."""
    if name == "e":
        return "Euler's number is written E or exp(…)"
    return f"the function is called: {name}(…)" if lookup(name) else None


def _wrong_count(program: Program, names: Sequence[str], point: Point) -> JacliError:
    given = len(point.items)
    lacking = given - len(names)
    variables = f"{len(names)} variable{'s' * (len(names) != 1)}" + (f" ({_listed(names)})" if names else "")
    hints = []
    hints += [meant for name in names[:100] if (meant := _meant(name)) and given < len(names)][:1]
    constants = [op for op in ("E", "pi") if any(node.op == op for node in program.nodes)]
    if given > len(names) and constants:
        hints.append("; ".join(_CONSTANT_HINTS[op] for op in constants))
    elif given == 2 * len(names) and all(isinstance(i.value, Data) and i.value.shape == () for i in point.items):
        hints.append(f"decimals take a point: {_with_points(point)}")
    hints += [f"{name} is one name, and {'*'.join(name)} a product" for name in names if 1 < len(name) == lacking + 1][
        :1
    ]
    if len(names) > 1 == given and shape_of(point.items[0].value) == (len(names),):
        hints.append("the values of several variables need no brackets")
    if len(names) == 1 and given > 1:
        hints.append(f"for an array type {names[0]}=[…]")
    if len(names) > 1 or given < len(names):
        hints.append("name them: " + ", ".join(f"{name}=…" for name in names[:4]) + (", …" if len(names) > 4 else ""))
    values = f"{given} value{'s' * (given != 1)}"
    return JacliError(
        f"the expression has {variables} but the point has {values}", None, "; ".join(hints) or None, kind="point"
    )


_CONSTANT_HINTS = {
    "E": "E is Euler's number here; as a variable it is named: E=… or --vars",
    "pi": "pi is π here; as a variable it is named: pi=… or --vars",
}


def _with_points(point: Point) -> str:
    numbers = [str(item.value.numbers[0]) for item in point.items if isinstance(item.value, Data)]
    return ",".join(f"{a}.{b}" for a, b in zip(numbers[0::2], numbers[1::2], strict=True))


def _only_indexed(program: Program, name: str) -> bool:
    """Whether every use of a variable is ``name[…]`` or its length, so that plain values are its entries."""
    node = program.variables.get(name)
    uses = [other for other in program.nodes if node in other.args]
    indexed = bool(uses) and all(use.op in ("index", "gather", "len") for use in uses)
    return node is not None and node not in program.outputs and indexed


def _vector(items: Sequence[Item]) -> Data | Program:
    values = [item.value for item in items]
    if all(isinstance(value, Data) and value.shape == () for value in values):
        return Data(
            (len(values),), tuple(number for value in values if isinstance(value, Data) for number in value.numbers)
        )
    return read_point({"x": [_text_of(value) for value in values]}).items[0].value


def _text_of(value: Data | Program) -> Any:
    return value.text if isinstance(value, Program) else value


# ---- values


def shape_of(value: Data | Program) -> tuple[int, ...]:
    """The shape of a constant. Raises JacliError when it is too large."""
    shape = value.shape if isinstance(value, Data) else infer(value, {})[value.outputs[0]]
    if math.prod(shape) > MOST_ENTRIES:
        message = f"{words(shape)} is too large for one variable: at most {MOST_ENTRIES:,} entries"
        raise JacliError(message, kind="limit")
    return shape


def _lowered(
    program: Program,
    shapes: Mapping[str, tuple[int, ...]],
    node_shapes: Sequence[tuple[int, ...]],
    values: Mapping[str, Data | Program],
) -> Lowered | None:
    """The exact tape with every variable bound to its exact value."""
    from jacli.verify import refuse_absurd

    if sum(math.prod(shape) for shape in shapes.values()) > MOST_OPERATIONS:
        return None
    try:
        lowered = lower(program, shapes, MOST_OPERATIONS, node_shapes)
    except TooLarge:
        return None
    nodes = dict(lowered.variables)
    for name, value in values.items():
        if name not in nodes:  # a value that the program does not use still has its column
            nodes[name] = tuple(lowered.tape.add("variable", value=entry) for entry in entry_names(name, shapes[name]))
        exact = constant_nodes(lowered.tape, value)
        lowered.tape.bound.update(zip(nodes[name], exact, strict=True))
    refuse_absurd(lowered.tape, [node for nodes in lowered.outputs for node in nodes])
    return Lowered(lowered.tape, lowered.outputs, nodes, lowered.named)


def constant_nodes(tape: Tape, value: Data | Program) -> tuple[int, ...]:
    """The entries of a constant as nodes of ``tape``, exact: a float is the double it is."""
    if isinstance(value, Data):
        return tuple(tape.number(Fraction(number)) for number in value.numbers)
    return lower_constant(value, tape)[1]


def _variable(name: str, shape: tuple[int, ...], value: Data | Program, lowered: Lowered | None) -> Variable:
    try:
        if lowered is None:
            return Variable(name, shape, tuple(doubles(value)), ())
        nodes = lowered.variables[name]
        return Variable(name, shape, tuple(doubles(value)), nodes)
    except JacliError as error:
        error.message = f"the value of {name}: {error.message}"
        raise


def doubles(value: Data | Program) -> list[float]:
    """The nearest double to each entry of a constant. Raises JacliError where one is not finite and real."""
    if isinstance(value, Data):
        return [_nearest(number) for number in value.numbers]
    from jacli.verify import double

    tape = Tape(value.text)
    nodes = lower_constant(value, tape, spans=True)[1]
    try:
        known = {node: double(tape, node) for node in sorted(set(nodes))}
    except JacliError as error:
        raise error.located_in(value.text) from None
    return [known[node] for node in nodes]


def _nearest(number: int | Fraction | float) -> float:
    try:
        return float(number)
    except OverflowError:
        raise JacliError("a value is beyond the range of doubles (about 1.8e308)", kind="point") from None


# ---- weights and tangents


@dataclass(frozen=True, slots=True)
class Vector:
    """Weights or a tangent, flattened: the doubles and, for the exact readings, the values as given."""

    doubles: tuple[float, ...]
    values: tuple[Data | Program, ...]

    def nodes(self, tape: Tape) -> tuple[int, ...]:
        """The entries as exact constants on a tape."""
        return tuple(node for value in self.values for node in constant_nodes(tape, value))


def read_vector(given: Any, shapes: Sequence[tuple[int, ...]], names: Sequence[str], what: str) -> Vector:
    """Numbers for a list of shaped things: weights for the outputs, a tangent for the variables.

    Accepted are one number an entry (flat), one array of a single thing's shape, or one value a thing, each in its
    shape.

    Raises:
        JacliError: naming both counts and shapes when they differ.
    """
    point = read_point(given, what)
    if point.names:
        return _by_name(point, shapes, names, what)
    values = [item.value for item in point.items]
    found = [shape_of(value) for value in values]
    wanted = list(shapes)
    size = sum(map(math.prod, wanted))
    if (
        len(wanted) == 1
        and len(wanted[0]) > 1
        and all(found)
        and (len(values), *found[0]) == wanted[0]
        and len(set(found)) == 1
    ):
        found = wanted  # a bare list of rows is the matrix
    fits = found == wanted or (all(shape == () for shape in found) and len(found) == size) or found == [(size,)]
    if not fits:
        raise _misfit(found, wanted, size, what)
    return Vector(tuple(number for value in values for number in doubles(value)), tuple(values))


def _by_name(point: Point, shapes: Sequence[tuple[int, ...]], names: Sequence[str], what: str) -> Vector:
    values = {item.name: item.value for item in point.items}
    for name in values:
        if name not in names:
            raise JacliError(
                f"the {what} name{'s' * (what != 'weights')} {name}, which is not among {_listed(list(names))}",
                kind="name",
            )
    ordered: list[Data | Program] = []
    for name, shape in zip(names, shapes, strict=True):
        if name not in values:
            raise JacliError(f"{name} is missing in the {what}", None, f"add {name}=…", kind="point")
        if shape_of(values[name]) != shape:
            raise JacliError(
                f"{name} is {words(shape)}, but {words(shape_of(values[name]))} is given in the {what}", kind="shape"
            )
        ordered.append(values[name])
    return Vector(tuple(number for value in ordered for number in doubles(value)), tuple(ordered))


def _misfit(found: Sequence[tuple[int, ...]], wanted: Sequence[tuple[int, ...]], size: int, what: str) -> JacliError:
    things = "output" if what != "tangent" else "variable"
    given = sum(map(math.prod, found))
    if len(wanted) == 1:
        shape = wanted[0]
        holder = f"the {things} has {size} entr{'y' if size == 1 else 'ies'}" + (
            f" (shape {_shape(shape)})" if shape else ""
        )
    else:
        holder = f"the {len(wanted)} {things}s have {size} entries (shapes{_shapes(wanted)})"
    shapes = found if any(found) else [(len(found),)] if len(found) > 1 else []
    offered = f"{given} number{'s' * (given != 1)}" + (f" (shape{_shapes(shapes)})" if any(shapes) else "")
    verb = "was" if given == 1 else "were"
    return JacliError(
        f"{holder} but {offered} {verb} given as {what}",
        None,
        f"one number for each {things} entry"
        + (f", flat or in the shape {_shape(wanted[0])}" if len(wanted) == 1 and len(wanted[0]) > 1 else ""),
        kind="shape",
    )


def _shape(shape: Iterable[int]) -> str:
    return "x".join(map(str, shape))


def _shapes(shapes: Sequence[tuple[int, ...]]) -> str:
    """Several shapes in words; a long list is cut."""
    known = ", ".join(_shape(shape) or "number" for shape in shapes[:6])
    return f" {known}, …" if len(shapes) > 6 else f" {known}"


# ---- names and refusals that results share


def row_names(problem: Problem) -> tuple[str, ...]:
    """Names of the rows: the outputs' entries."""
    names = problem.program.output_names()
    return tuple(
        entry for name, shape in zip(names, problem.output_shapes, strict=True) for entry in entry_names(name, shape)
    )


def too_long() -> JacliError:
    """The refusal of a program whose single numbers are too many to prove anything about."""
    return JacliError("written out in single numbers, the program is too long to be checked", kind="limit")
