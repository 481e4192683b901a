"""The program: what a text means, as a list of operations in which every node comes after its arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from jacli.errors import Span


class Node(NamedTuple):
    """One operation.

    ``op`` is ``number`` (value: an int or a Fraction, exact), ``variable`` (value: its name), ``pi``, ``E``,
    ``true``, ``false``; an operator ``add sub mul div neg pow matmul``; ``index`` (value: a tuple of ints and
    slices); ``counter`` (arguments: first value and the one after the last; value: its name, its axis and how many
    axes there are), ``gather`` (arguments: an array and an expression of counters for each dimension), ``family``
    (arguments: the body and the counters); ``array`` (a bracketed list); ``select`` (arguments: condition, value,
    condition, value, …, and perhaps a last value for "otherwise"); or the name of a row of the table of functions
    (value: its constant integers).
    """

    op: str
    args: tuple[int, ...]
    value: Any
    span: Span


@dataclass(frozen=True, slots=True)
class Program:
    """A text that was read.

    Attributes:
        text: as typed.
        nodes: every node after its arguments; equal names share one ``variable`` node.
        outputs: the nodes to differentiate, in the order typed.
        names: statements' names, each to its node, in the order typed.
        variables: the free names in natural order, each to its node.
    """

    text: str
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    names: Mapping[str, int]
    variables: Mapping[str, int]

    def source(self, node: int) -> str:
        """The characters that a node was read from."""
        span = self.nodes[node].span
        return self.text[span.start : span.stop]

    def output_names(self) -> tuple[str, ...]:
        """A statement's name where an output is just that, else f0, f1…, by position."""
        taken = set(self.variables) | set(self.names)
        named = {node: name for name, node in self.names.items() if name == self.source_name(node)}
        numbered = (f"f{i}" if f"f{i}" not in taken else f"output{i}" for i in range(len(self.outputs)))
        return tuple(named.get(node, name) for node, name in zip(self.outputs, numbered, strict=True))

    def source_name(self, node: int) -> str | None:
        """The statement name that was given to this node, or None."""
        return next((name for name, target in self.names.items() if target == node), None)


def natural_key(name: str) -> tuple[object, ...]:
    """Natural order: x2 before x10, letters without regard to case, then capitals first."""
    parts = re.split(r"([0-9]+)", name)
    folded = tuple((0, int(p), "") if p.isdigit() else (1, 0, p.casefold()) for p in parts if p)
    return (folded, name)
