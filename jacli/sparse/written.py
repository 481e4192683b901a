"""Families from a program of arrays that had to be written out in single numbers: rows of equal form."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from jacli.errors import Span
from jacli.language.syntax import Node, Program
from jacli.problem import MOST_OPERATIONS, Bound
from jacli.readings.lowering import TooLarge, lower
from jacli.readings.tape import Tape
from jacli.sparse.family import Family, rebuilt
from jacli.sparse.point import Space

#: Most operations that are looked at, an operation counted again for every row that uses it.
MOST_VISITED = 5_000_000

#: Most operations of all different forms together: each form is evaluated on its own, and beyond this products with a
#: colour of rows at once are quicker.
MOST_DIFFERENT = 3_000

#: A row's operations in the order in which they are met, its variables as nothing but their order.
Form = tuple[tuple[str, tuple[int, ...], Any], ...]


def families(bound: Bound, variables: Space) -> list[Family] | None:
    """One family a form; None where the program is too long to write out."""
    try:
        lowered = lower(bound.program, bound.variable_shapes, MOST_OPERATIONS, bound.shapes)
    except TooLarge:
        return None
    entry = {
        node: int(variables.starts[variables.position[name]]) + k
        for name, nodes in lowered.variables.items()
        for k, node in enumerate(nodes)
    }
    found: dict[tuple[Form, int], tuple[list[int], list[list[int]]]] = {}
    visited, different, row = 0, 0, 0
    for output, nodes in zip(bound.program.outputs, lowered.outputs, strict=True):
        for node in nodes:
            form, leaves = _form(lowered.tape, node)
            visited += len(form)
            different += len(form) if (form, output) not in found else 0
            if visited > MOST_VISITED or different > MOST_DIFFERENT:
                return None
            rows, columns = found.setdefault((form, output), ([], []))
            rows.append(row)
            columns.append([entry[leaf] for leaf in leaves])
            row += 1
    return [
        _family(form, bound.program.source(output), rows, columns, variables)
        for (form, output), (rows, columns) in found.items()
    ]


def _form(tape: Tape, root: int) -> tuple[Form, list[int]]:
    """What a row computes, and its variables in the order in which they are met."""
    place: dict[int, int] = {}
    form: list[tuple[str, tuple[int, ...], Any]] = []
    leaves: list[int] = []
    stack = [root]
    while stack:
        node = stack[-1]
        op, args, value = tape.ops[node]
        missing = [arg for arg in args if arg not in place] if node not in place else []
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        if node not in place:
            place[node] = len(form)
            form.append((op, tuple(place[arg] for arg in args), None if op == "variable" else value))
            if op == "variable":
                leaves.append(node)
    return tuple(form), leaves


def _family(form: Form, text: str, rows: Sequence[int], columns: Sequence[Sequence[int]], variables: Space) -> Family:
    nodes: list[Node] = []
    slots: dict[str, int] = {}
    for op, args, value in form:
        slot = variables.name(columns[0][len(slots)]) if op == "variable" else None
        if slot is not None:
            slots[slot] = len(nodes)
        nodes.append(Node(op, args, value if slot is None else slot, Span(0, len(text))))
    formula = Program(text, tuple(nodes), (len(nodes) - 1,), {}, slots)
    places = np.array(columns, np.int64).reshape(len(rows), len(slots))

    def source(row: int) -> Program:
        names = {slot: variables.name(int(places[row, k])) for k, slot in enumerate(slots)}

        def leaf(index: int) -> str | int | Fraction | None:
            return names[nodes[index].value] if nodes[index].op == "variable" else None

        return rebuilt(nodes, len(nodes) - 1, leaf, text)

    return Family(
        formula, np.array(rows, np.int64), {slot: places[:, k].copy() for k, slot in enumerate(slots)}, {}, source
    )
