"""Families from programs of arrays: slices, families in braces, and functions applied entry by entry.

An output that is computed entry by entry from slices, gathered entries and single numbers is one family: each of
those leaves is a slot, and its index array says which entry each row takes. ``concat`` puts families one behind
another, ``sum`` and ``mean`` let all rows add to one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from jacli.functions import ROWS
from jacli.language.counting import counts, gathered
from jacli.language.points import Data
from jacli.language.syntax import Node, Program
from jacli.problem import Bound, doubles
from jacli.readings.lowering import lower_constant
from jacli.readings.tape import Tape
from jacli.sparse import written
from jacli.sparse.coloured import Coloured
from jacli.sparse.equations import NotScalar
from jacli.sparse.family import Family, Floats, Ints, Numbers, rebuilt
from jacli.sparse.point import Space, Values, space
from jacli.sparse.system import System

#: Entries of a variable, in some order.
_LEAVES = frozenset(("variable", "index", "gather", "reshape", "transpose"))

_OPERATORS = frozenset(("neg", "add", "sub", "mul", "div", "pow", "select", "pi", "E", "true", "false", "number"))


def system(bound: Bound) -> System:
    """A program of arrays as families; as a whole where it has none, or where wholes know of more zeros."""
    variables = space(_values(bound), tuple(bound.values), bound.chosen)
    found = _entry_by_entry(bound, variables)
    if found is not None:
        return System(**_described(bound, variables, found))
    whole = Coloured(**_described(bound, variables, ()), bound=bound)
    if whole.wiring.relied:  # single numbers know nothing of the zeros of what is held fixed
        return whole
    found = written.families(bound, variables)
    return whole if found is None else System(**_described(bound, variables, found))


def _described(bound: Bound, variables: Space, families: Sequence[Family]) -> dict[str, Any]:
    """What every system has."""
    shapes = tuple(bound.shapes[node] for node in bound.program.outputs)
    return {
        "text": bound.program.text,
        "families": tuple(families),
        "space": variables,
        "output_names": bound.program.output_names(),
        "output_shapes": shapes if any(shapes) else None,
        "distinct": _distinct(families, bound.size[0]),
        "remarks": bound.remarks(),
    }


def _entry_by_entry(bound: Bound, variables: Space) -> list[Family] | None:
    """The families of outputs that are computed entry by entry; None when one is not."""
    finder = _Finder(bound, variables)
    found: list[Family] = []
    start = 0
    try:
        for node in bound.program.outputs:
            size = math.prod(bound.shapes[node])
            found += finder.families(node, np.arange(start, start + size).reshape(bound.shapes[node]), Fraction(1))
            start += size
    except NotScalar:
        return None
    return found


def _values(bound: Bound) -> Values:
    """The values of a bound program as one row of doubles."""
    values = list(bound.values.values())
    shapes = tuple(bound.variable_shapes[name] for name in bound.values)
    flat = [_doubles(value) for value in values]

    def exact(tape: Tape, k: int, place: int) -> int:
        value = values[k]
        if isinstance(value, Data):
            return tape.number(Fraction(value.numbers[place]))
        return lower_constant(value, tape)[1][place]

    joined = np.concatenate(flat) if flat else np.zeros(0)
    return Values(tuple(bound.values), shapes if any(shapes) else None, joined, exact)


def _doubles(value: Data | Program) -> Floats:
    """The entries of a value; floats as they are, others rounded."""
    if isinstance(value, Data) and all(type(number) is float for number in value.numbers):
        return np.array(value.numbers, np.float64)
    return np.array(doubles(value), np.float64)


def _distinct(families: Sequence[Family], rows: int) -> bool:
    """Whether no entry of the Jacobian gets two contributions."""
    if sum(map(len, families)) > rows:
        return False
    for family in families:
        columns = list(family.columns.values())
        if any((columns[i] == columns[j]).any() for i in range(len(columns)) for j in range(i)):
            return False
    return True


@dataclass(frozen=True, slots=True)
class _Finder:
    """Looks for families in the nodes of a bound program."""

    bound: Bound
    variables: Space

    def families(self, node: int, rows: Ints, factor: Fraction) -> Iterator[Family]:
        """The families of one node, which is ``factor`` times added to the output entries ``rows``, in its shape.

        Raises:
            NotScalar: the node is not computed entry by entry.
        """
        op, args, value, _ = self.bound.program.nodes[node]
        if op == "concat":
            start = 0
            for arg in args:
                stop = start + self.bound.shapes[arg][0]
                yield from self.families(arg, rows[start:stop], factor)
                start = stop
        elif op in ("array", "stack"):
            for arg, part in zip(args, rows, strict=True):
                yield from self.families(arg, part, factor)
        elif op in ("sum", "mean") and not value:
            inner = self.bound.shapes[args[0]]
            share = factor if op == "sum" else factor / math.prod(inner)
            yield from self.families(args[0], np.broadcast_to(rows, inner), share)
        elif op == "reshape":
            yield from self.families(args[0], rows.reshape(self.bound.shapes[args[0]]), factor)
        elif not self.bound.shapes[node] and op in ("add", "sub", "neg") and self._reduces(node):
            for position, arg in enumerate(args):
                minus = op == "neg" or (op == "sub" and position == 1)
                yield from self.families(arg, rows, -factor if minus else factor)
        else:
            yield self._family(node, rows, factor)

    def _reduces(self, node: int) -> bool:
        """Whether a number is made of sums: then each sum's rows add to it."""
        nodes = self.bound.program.nodes
        return nodes[node].op in ("sum", "mean") or (
            nodes[node].op in ("add", "sub", "neg") and any(self._reduces(arg) for arg in nodes[node].args)
        )

    def _family(self, node: int, rows: Ints, factor: Fraction) -> Family:
        """One node, entry by entry."""
        shape = rows.shape
        program = self.bound.program
        leaves: dict[str, Ints] = {}
        numbers: dict[str, Ints] = {}
        root = program.nodes[node].args[0] if program.nodes[node].op == "family" else node
        formula = rebuilt(program.nodes, root, lambda index: self._leaf(index, shape, leaves, numbers), program.text)
        formula = _times(formula, factor, program.source(node))
        columns = {slot: leaves[slot] for slot in formula.variables if slot in leaves}
        constants = {slot: _whole_numbers(numbers[slot]) for slot in formula.variables if slot in numbers}
        return Family(formula, rows.reshape(-1), columns, constants, self._source(formula, columns, constants))

    def _leaf(
        self, index: int, shape: tuple[int, ...], leaves: dict[str, Ints], numbers: dict[str, Ints]
    ) -> str | None:
        """The slot that a node becomes, or None for an operation entry by entry."""
        program, shapes = self.bound.program, self.bound.shapes
        node = program.nodes[index]
        if node.op == "family":
            return None
        if node.op in _LEAVES:
            places = self._places(node)
            slot = self._slot_of(places, leaves, shape, program.source(index))
            leaves.setdefault(slot, np.broadcast_to(places, shape).reshape(-1))
            return slot
        if node.op in ("counter", "len"):
            slot = f"#{index}"
            counted = counts(program.nodes, index, shapes.__getitem__)
            numbers[slot] = np.broadcast_to(np.asarray(counted, np.int64), shape).reshape(-1)
            return slot
        row = ROWS.get(node.op)
        if node.op not in _OPERATORS and (row is None or row.kind == "array" or _reduces_one(node)):
            raise NotScalar
        return None

    def _slot_of(self, places: Ints, leaves: dict[str, Ints], shape: tuple[int, ...], source: str) -> str:
        """The slot for these entries: an old one where they are the same."""
        flat = np.broadcast_to(places, shape).reshape(-1)
        for slot, known in leaves.items():
            if np.array_equal(known, flat):
                return slot
        return source if source not in leaves else f"{source}'{len(leaves)}"

    def _places(self, node: Node) -> Ints:
        """The flat entries that a leaf stands for, in its shape."""
        if node.op == "variable":
            position = self.variables.position[node.value]
            start, shape = int(self.variables.starts[position]), self.variables.shape(position)
            return np.arange(start, start + math.prod(shape)).reshape(shape)
        array = self.bound.program.nodes[node.args[0]]
        if array.op not in _LEAVES:
            raise NotScalar
        inner = self._places(array)
        if node.op == "transpose":
            return inner.T
        if node.op == "reshape":
            return inner.reshape(node.value)
        if node.op == "index":
            found: Ints = np.asarray(inner[node.value])
            return found
        return np.asarray(inner[gathered(self.bound.program.nodes, node, self.bound.shapes.__getitem__)])

    def _source(self, formula: Program, columns: dict[str, Ints], constants: dict[str, Numbers]) -> Any:
        """One row as a program: the formula with the names and numbers of that row."""

        def source(row: int) -> Program:
            def leaf(index: int) -> str | int | Fraction | None:
                node = formula.nodes[index]
                if node.op != "variable":
                    return None
                slot = node.value
                return self.variables.name(int(columns[slot][row])) if slot in columns else constants[slot].exact(row)

            return rebuilt(formula.nodes, formula.outputs[0], leaf, formula.text)

        return source


def _reduces_one(node: Node) -> bool:
    return node.op in ("max", "min") and len(node.args) == 1


def _whole_numbers(values: Ints) -> Numbers:
    return Numbers(values.astype(np.float64), lambda row: int(values[row]))


def _times(formula: Program, factor: Fraction, source: str) -> Program:
    """The formula times a factor; its text is its own source."""
    nodes, root = list(formula.nodes), formula.outputs[0]
    if factor != 1:
        span = nodes[root].span
        nodes.append(Node("number", (), factor.numerator if factor.denominator == 1 else factor, span))
        nodes.append(Node("mul", (len(nodes) - 1, root), None, span))
        root = len(nodes) - 1
    return Program(source, tuple(nodes), (root,), {}, formula.variables)
