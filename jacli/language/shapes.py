"""Shapes of every node, before any number is computed."""

from __future__ import annotations

import math
from collections.abc import Mapping

from jacli.errors import JacliError
from jacli.functions import ROWS
from jacli.functions.arrays import broadcast, matmul_shape, some, words
from jacli.functions.row import Shape
from jacli.language.syntax import Node, Program

#: What families are made of.
COUNTED = frozenset(("counter", "gather", "family"))

#: Entries of all arrays of a program together, whatever their values: 2 GB of doubles.
MOST_HELD = 250_000_000

_PLAIN = frozenset(("number", "pi", "E", "true", "false"))


def infer(program: Program, variables: Mapping[str, Shape]) -> list[Shape]:
    """The shape of every node of ``program``.

    Raises:
        JacliError: where shapes do not fit, naming them and the place, or where the arrays are too large to be held.
    """
    if not any(variables.values()) and not any(node.op == "counter" or _makes_arrays(node) for node in program.nodes):
        return [()] * len(program.nodes)
    shapes: list[Shape] = []
    held = 0
    for node in program.nodes:
        try:
            if node.op in COUNTED:
                shapes.append(_counted(program, len(shapes), shapes))
            else:
                shapes.append(_shape(node, [shapes[arg] for arg in node.args], variables))
        except ValueError as error:
            raise JacliError(str(error), node.span, text=program.text, kind="shape") from None
        held += math.prod(shapes[-1])
        if held > MOST_HELD:
            raise _too_large(program, node, shapes[-1])
    return shapes


def _too_large(program: Program, node: Node, shape: Shape) -> JacliError:
    most = f"the arrays of a program may have {MOST_HELD:,} entries together"
    return JacliError(f"{words(shape)} is too large: {most}", node.span, text=program.text, kind="limit")


def _makes_arrays(node: Node) -> bool:
    row = ROWS.get(node.op)
    return node.op in ("array", "index", "matmul") or (row is not None and row.kind == "array")


def _shape(node: Node, shapes: list[Shape], variables: Mapping[str, Shape]) -> Shape:
    if node.op in _PLAIN:
        return ()
    if node.op == "variable":
        return variables[node.value]
    if node.op == "matmul":
        return matmul_shape(*shapes)
    if node.op == "index":
        return index_shape(shapes[0], node.value)
    if node.op == "array":
        return _array_shape(shapes)
    if node.op in ("max", "min") and len(shapes) == 1:
        return some(shapes[0])[:0]
    row = ROWS.get(node.op)
    if row is not None and row.shape is not None:
        result: Shape = row.shape(*shapes, *node.value)
        return result
    return broadcast(*shapes)


def _counted(program: Program, index: int, shapes: list[Shape]) -> Shape:
    """Counters have an axis each; what is made of them broadcasts."""
    from jacli.language.counting import counter_shape, gathered

    node = program.nodes[index]
    if node.op == "counter":
        return counter_shape(program.nodes, node, shapes.__getitem__)
    if node.op == "gather":
        found = gathered(program.nodes, node, shapes.__getitem__)
        return broadcast(*(getattr(place, "shape", ()) for place in found))
    _check_body(program, node.args[0], shapes)
    return broadcast(*(shapes[arg] for arg in node.args[1:]))


def _check_body(program: Program, body: int, shapes: list[Shape]) -> None:
    """Inside a family all is of single numbers: arrays have an index, or a function around them that reduces them."""
    stack = [body]
    while stack:
        index = stack.pop()
        node = program.nodes[index]
        arrays = node.op in ("variable", "family") or _makes_arrays(node)
        if arrays and any(_counts(program, arg) for arg in node.args):
            raise ValueError("inside { } numbers are combined one by one; functions of arrays go around the braces")
        if arrays and shapes[index]:
            raise ValueError(f"inside {{ }} an array needs an index, as in {program.source(index)}[i]")
        if node.op != "gather" and not arrays:
            stack.extend(node.args)


def _counts(program: Program, root: int) -> bool:
    """Whether a counter plays a part in a node."""
    stack = [root]
    while stack:
        node = program.nodes[stack.pop()]
        if node.op == "counter":
            return True
        stack.extend(node.args)
    return False


def _array_shape(shapes: list[Shape]) -> Shape:
    if len(set(shapes)) > 1:
        raise ValueError("the entries of an array need one shape, not " + " and ".join(sorted(map(words, set(shapes)))))
    return (len(shapes), *shapes[0])


def index_shape(shape: Shape, items: tuple[int | slice, ...]) -> Shape:
    """The shape of ``a[items]``. Raises ValueError when an index is out of range, or there are too many."""
    if len(items) > len(shape):
        if not shape:
            raise ValueError("a single number has no entries; give the name an array, as in --at 'x=[1,2]'")
        raise ValueError(f"{len(items)} indices for {words(shape)}")
    result = []
    for size, item in zip(shape, items, strict=False):
        if isinstance(item, slice):
            result.append(len(range(size)[item]))
        elif not -size <= item < size:
            raise ValueError(f"there is no entry {item} in {words(shape)}: they count from 0 to {size - 1}")
    return (*result, *shape[len(items) :])
