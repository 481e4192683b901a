"""One formula, many rows: what every large problem is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from jacli.language.syntax import Node, Program

Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A constant that differs from row to row: its doubles, shape (rows,), and each one's exact value."""

    doubles: Floats
    exact: Callable[[int], int | Fraction]

    def take(self, chosen: Ints | Mask) -> Numbers:
        """Those of some of the rows."""
        places = np.arange(len(self.doubles))[chosen]
        return Numbers(self.doubles[chosen], lambda k: self.exact(int(places[k])))


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """One formula and its rows.

    Attributes:
        formula: a program of single numbers with one output; its variables are *slots*.
        rows: the output entry that each instance adds to, shape (rows,).
        columns: for each slot that stands for a variable, the flat entry that each instance takes, shape (rows,).
        numbers: for each slot that stands for a constant, its value in each instance.
        source: an instance as a program of the problem's own names, and where it begins in the text.
    """

    formula: Program
    rows: Ints
    columns: Mapping[str, Ints]
    numbers: Mapping[str, Numbers]
    source: Callable[[int], Program]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: Ints | Mask) -> Family:
        """The same formula with some of the rows."""
        places = np.arange(len(self))[chosen]
        return Family(
            self.formula,
            self.rows[chosen],
            {slot: columns[chosen] for slot, columns in self.columns.items()},
            {slot: numbers.take(chosen) for slot, numbers in self.numbers.items()},
            lambda k: self.source(int(places[k])),
        )


def rebuilt(nodes: Sequence[Node], root: int, leaf: Callable[[int], str | int | Fraction | None], text: str) -> Program:
    """A program of its own for one node.

    Args:
        nodes: a program's nodes.
        root: the node to compute.
        leaf: what a node becomes: a variable of this name, this number, or (None) itself with its arguments.
        text: what the spans count in.
    """
    made: dict[int, int] = {}
    result: list[Node] = []
    variables: dict[str, int] = {}
    stack = [root]
    while stack:
        index = stack[-1]
        if index in made:
            stack.pop()
            continue
        node, replaced = nodes[index], leaf(index)
        if isinstance(replaced, str) and replaced in variables:
            made[index] = variables[replaced]
            continue
        missing = [arg for arg in node.args if arg not in made] if replaced is None else []
        if missing:
            stack.extend(reversed(missing))
            continue
        made[index] = len(result)
        if isinstance(replaced, str):
            variables[replaced] = len(result)
            result.append(Node("variable", (), replaced, node.span))
        elif replaced is not None:
            result.append(Node("number", (), replaced, node.span))
        else:
            result.append(node._replace(args=tuple(made[arg] for arg in node.args)))
    return Program(text, tuple(result), (made[root],), {}, variables)
