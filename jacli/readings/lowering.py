"""A program of arrays to a tape of single numbers.

Arrays are numpy object arrays of scalars, and numpy's own broadcasting, indexing, products and reductions write
out the entries; a scalar's arithmetic adds to the tape. A function with a definition is replaced by it, read in
jacli's own language.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from jacli.functions import ROWS
from jacli.language.parser import read
from jacli.language.shapes import COUNTED
from jacli.language.syntax import Node, Program
from jacli.readings.tape import PRIMITIVES, Factored, Tape
from jacli.result import entry_names

#: Functions of a matrix that libraries compute by factoring it.
FACTORING = frozenset(("det", "inv", "solve"))
#: Functions of arrays that calculate nothing; others are given scalars, which divide exactly and can be called with.
_MOVES = frozenset("transpose stack concat reshape len".split())
_LEAVES = frozenset(("number", "pi", "E", "true", "false"))


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A node of a tape that can be calculated with: ``+ - * / **`` and ``call`` add operations to the tape."""

    tape: Tape
    node: int

    def of(self, op: str, *args: int, value: Any = None) -> Scalar:
        """An operation on nodes, added to the tape."""
        return Scalar(self.tape, self.tape.add(op, *args, value=value))

    def wrap(self, other: Any) -> int:
        """The node of a scalar, or of a plain number."""
        return other.node if isinstance(other, Scalar) else self.tape.number(other)

    def call(self, name: str, *others: Any) -> Scalar:
        """A function of the table, this scalar being its first argument."""
        return Scalar(self.tape, call(self.tape, name, (self.node, *map(self.wrap, others)), ()))

    def binary(self, op: str, other: Any, *, swapped: bool = False) -> Any:
        """An operator with a number or a scalar on the other side; arrays apply it entry by entry themselves."""
        if hasattr(other, "shape"):
            return NotImplemented
        pair = (self.wrap(other), self.node) if swapped else (self.node, self.wrap(other))
        return self.of(op, *pair)

    def __add__(self, other: Any) -> Any:
        return self.binary("add", other)

    def __radd__(self, other: Any) -> Any:
        return self if _is(other, 0) else self.binary("add", other, swapped=True)

    def __sub__(self, other: Any) -> Any:
        return self.binary("sub", other)

    def __rsub__(self, other: Any) -> Any:
        return self.binary("sub", other, swapped=True)

    def __mul__(self, other: Any) -> Any:
        return self if _is(other, 1) else self.binary("mul", other)

    def __rmul__(self, other: Any) -> Any:
        return self if _is(other, 1) else self.binary("mul", other, swapped=True)

    def __truediv__(self, other: Any) -> Any:
        return self.binary("div", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.binary("div", other, swapped=True)

    def __pow__(self, other: Any) -> Any:
        return self.binary("pow", other)

    def __neg__(self) -> Scalar:
        return self.of("neg", self.node)


def _is(other: Any, number: int) -> bool:
    return isinstance(other, int | float | Fraction) and other == number


@dataclass(frozen=True, slots=True)
class Lowered:
    """A tape with the nodes of a program's outputs and variables.

    ``outputs`` has one tuple of nodes (row-major entries) an output; ``variables`` one a variable; ``named`` one
    a statement's name.
    """

    tape: Tape
    outputs: tuple[tuple[int, ...], ...]
    variables: Mapping[str, tuple[int, ...]]
    named: Mapping[str, tuple[int, ...]]


def length(program: Program, shapes: Sequence[tuple[int, ...]]) -> int:
    """About how many operations a program has in single numbers, from the shapes of its nodes."""
    return sum(_length(node, shapes[i], [shapes[arg] for arg in node.args]) for i, node in enumerate(program.nodes))


def _length(node: Node, shape: tuple[int, ...], args: Sequence[tuple[int, ...]]) -> int:
    size = math.prod(shape)
    if node.op == "matmul":
        return 2 * size * args[0][-1]
    if node.op in ("det", "inv", "solve"):
        rows = args[0][-1]
        return 2 * rows**4 if rows > 4 else 200
    return max(size, *map(math.prod, args)) if args else size


def lower(
    program: Program, shapes: Mapping[str, tuple[int, ...]], most: int, node_shapes: Sequence[tuple[int, ...]] = ()
) -> Lowered:
    """Write ``program`` out in single numbers.

    Args:
        program: what to lower.
        shapes: every variable's shape.
        most: the greatest number of operations to write.
        node_shapes: every node's shape, where known: a program that would be too long is then not begun.

    Raises:
        TooLarge: the tape would be longer than ``most``.
    """
    import numpy as np

    if node_shapes and length(program, node_shapes) > most:
        raise TooLarge
    tape = Tape(program.text)
    variables: dict[str, tuple[int, ...]] = {}
    values: dict[int, Any] = {}
    for name, node in program.variables.items():
        names = entry_names(name, shapes[name])
        tape.at(program.nodes[node].span)
        variables[name] = tuple(tape.add("variable", value=entry) for entry in names)
        scalars = [Scalar(tape, entry) for entry in variables[name]]
        values[node] = _filled(np, scalars, shapes[name]) if shapes[name] else scalars[0]
    run(program, tape, values, most)
    return Lowered(
        tape,
        tuple(nodes_of(tape, values[node]) for node in program.outputs),
        variables,
        {name: nodes_of(tape, values[node]) for name, node in program.names.items()},
    )


def lower_constant(
    program: Program, tape: Tape, most: int = 10**6, *, spans: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Add a constant expression to ``tape``: its shape and its entries' nodes.

    ``spans`` says that the tape is of this very text, so that its nodes have their places.
    """
    values: dict[int, Any] = {}
    run(program, tape, values, most, spans=spans)
    value = values[program.outputs[0]]
    return getattr(value, "shape", ()), nodes_of(tape, value)


class TooLarge(Exception):
    """Written out in single numbers, the program would be too long."""


def run(program: Program, tape: Tape, values: dict[int, Any], most: int, *, spans: bool = True) -> None:
    """Compute into ``values`` every node of ``program`` that is not there yet."""
    for index, node in enumerate(program.nodes):
        if index in values:
            continue
        tape.at(node.span if spans else None)
        if node.op in COUNTED:
            values[index] = _counted(tape, program.nodes, node, values)
        else:
            values[index] = _value(tape, node, [values[arg] for arg in node.args])
        if len(tape.ops) > most:
            raise TooLarge
    tape.at(None)


def _counted(tape: Tape, nodes: Sequence[Node], node: Node, values: Mapping[int, Any]) -> Any:
    """Counters, what they gather, and the family as a whole."""
    import numpy as np

    from jacli.language.counting import bounds, gathered

    def shape(index: int) -> tuple[int, ...]:
        return tuple(getattr(values[index], "shape", ()))

    if node.op == "counter":
        _, axis, rank = node.value
        numbers = [Scalar(tape, tape.number(k)) for k in range(*bounds(nodes, node, shape))]
        return _filled(np, numbers, (1,) * axis + (len(numbers),) + (1,) * (rank - axis - 1))
    if node.op == "gather":
        return values[node.args[0]][gathered(nodes, node, shape)]
    return np.broadcast_to(values[node.args[0]], np.broadcast_shapes(*(shape(arg) for arg in node.args[1:])))


def _filled(np: Any, scalars: Sequence[Any], shape: tuple[int, ...]) -> Any:
    array = np.empty(len(scalars), dtype=object)
    array[:] = scalars
    return array.reshape(shape)


def nodes_of(tape: Tape, value: Any) -> tuple[int, ...]:
    """The entries as nodes; equal plain numbers are looked up once, arrays of zeros and ones being long."""
    items = value.reshape(-1).tolist() if hasattr(value, "reshape") else [value]
    numbers = {item: tape.number(item) for item in {item for item in items if not isinstance(item, Scalar)}}
    return tuple(item.node if isinstance(item, Scalar) else numbers[item] for item in items)


def _value(tape: Tape, node: Node, args: list[Any]) -> Any:
    op = node.op
    if op in _LEAVES:
        return Scalar(tape, _typed(tape, tape.number(node.value) if op == "number" else tape.add(op)))
    if op == "matmul":
        return args[0] @ args[1]
    if op == "index":
        return args[0][node.value]
    if op == "array":
        return _stack(args)
    row = ROWS.get(op)
    if row is not None and row.kind == "array" and row.entries is not None:
        given = args if op in _MOVES else [_elementwise(lambda entry: entry, tape, [arg]) for arg in args]
        result = row.entries(*map(_as_array, given), *node.value)
        if op in FACTORING:
            tape.factored.append(Factored(op, nodes_of(tape, args[0]), nodes_of(tape, result)))
        return result
    if op in ("max", "min") and len(args) == 1:
        return _folded(tape, op, args[0])
    return _elementwise(lambda *nodes: call(tape, op, nodes, node.value or ()), tape, args)


def _typed(tape: Tape, node: int) -> int:
    """A constant that stands in the text."""
    tape.defined.discard(tape.constant(node) or 0)
    return node


def _as_array(value: Any) -> Any:
    import numpy as np

    return value if hasattr(value, "shape") else np.array(value, dtype=object)


def _stack(args: list[Any]) -> Any:
    import numpy as np

    if any(hasattr(arg, "shape") for arg in args):
        return np.stack(args)
    return _filled(np, args, (len(args),))


def _folded(tape: Tape, op: str, array: Any) -> Any:
    nodes = nodes_of(tape, array)
    result = nodes[0]
    for node in nodes[1:]:
        result = tape.add(op, result, node)
    return Scalar(tape, result)


def _elementwise(function: Callable[..., int], tape: Tape, args: list[Any]) -> Any:
    """Apply a function of nodes entry by entry, with broadcasting."""
    if not any(hasattr(arg, "shape") for arg in args):
        return Scalar(tape, function(*(Scalar(tape, 0).wrap(arg) for arg in args)))
    import numpy as np

    wrap = Scalar(tape, 0).wrap
    return np.frompyfunc(lambda *items: Scalar(tape, function(*map(wrap, items))), len(args), 1)(*args)


def call(tape: Tape, name: str, nodes: tuple[int, ...], integers: tuple[int, ...]) -> int:
    """A function of single numbers: a primitive, its definition, or the entries a polynomial is made of."""
    row = ROWS.get(name)
    definition = row.definitions.get(len(nodes)) if row is not None else None
    if definition is not None and row is not None:
        return expand(tape, definition, row.parameters, nodes)
    if row is not None and row.kind == "elementwise" and row.entries is not None:
        start = len(tape.ops)
        result = Scalar(tape, 0).wrap(row.entries(Scalar(tape, nodes[0]), *integers))
        tape.define(start)
        return result
    if name not in PRIMITIVES:
        raise AssertionError(f"{name} has neither a definition nor a primitive form")
    return tape.add(name, *nodes, value=integers or None)


@cache
def _template(definition: str, parameters: tuple[str, ...]) -> Program:
    return read(definition, parameters, internal=True)


def expand(tape: Tape, definition: str, parameters: tuple[str, ...], nodes: tuple[int, ...]) -> int:
    """Write a formula of the table onto a tape, its parameters replaced by nodes; returns the result's node."""
    template = _template(definition, parameters)
    values: list[int] = []
    start = len(tape.ops)
    given = dict(zip(parameters, nodes, strict=False))
    for node in template.nodes:
        if node.op == "variable":
            values.append(given[node.value])
        elif node.op == "number":
            values.append(tape.number(node.value))
        else:
            values.append(call(tape, node.op, tuple(values[arg] for arg in node.args), node.value or ()))
    tape.define(start)
    return values[template.outputs[0]]
