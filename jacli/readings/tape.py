"""A program of single numbers: what the exact readings walk.

Arrays are gone (``lowering`` wrote out their entries), functions with a definition are replaced by it, and equal
operations share one node, so a common subexpression is evaluated once. Every node comes after its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from jacli.errors import Span
from jacli.language.syntax import Node

#: Operations of a tape and how many arguments they take (None: any number).
PRIMITIVES: dict[str, int | None] = {
    "number": 0, "variable": 0, "pi": 0, "E": 0, "true": 0, "false": 0,
    "neg": 1, "add": 2, "sub": 2, "mul": 2, "div": 2, "pow": 2,
    "exp": 1, "log": 1, "sqrt": 1,
    "sin": 1, "cos": 1, "tan": 1, "asin": 1, "acos": 1, "atan": 1, "atan2": 2,
    "sinh": 1, "cosh": 1, "tanh": 1, "asinh": 1, "acosh": 1, "atanh": 1,
    "abs": 1, "sign": 1, "floor": 1, "ceil": 1, "max": 2, "min": 2,
    "erf": 1, "erfc": 1, "gamma": 1, "lgamma": 1, "digamma": 1, "polygamma": 1, "besseli": 1,
    "lt": 2, "le": 2, "gt": 2, "ge": 2, "eq": 2, "ne": 2, "and": None, "or": None, "not": 1,
    "select": None,
}  # fmt: skip


class Op(NamedTuple):
    """One operation on single numbers.

    ``value`` is a number's exact value (int or Fraction), a variable's entry name, or the tuple of constant
    integers of ``polygamma`` and ``besseli``. ``select`` has arguments (condition, value, condition, value, …) and
    perhaps a last value; without it, it has no value where no condition holds.
    """

    op: str
    args: tuple[int, ...]
    value: Any = None


class Factored(NamedTuple):
    """A function (det, inv, solve) that libraries compute by factoring a matrix: its entries, and its results."""

    name: str
    matrix: tuple[int, ...]
    results: tuple[int, ...]


def needed(nodes: Sequence[Node | Op], roots: Iterable[int]) -> list[int]:
    """The positions of what ``roots`` depend on, themselves included, in order: on a tape, or in a program."""
    seen = set(roots)
    stack = list(seen)
    while stack:
        for arg in nodes[stack.pop()].args:
            if arg not in seen:
                seen.add(arg)
                stack.append(arg)
    return sorted(seen)


@dataclass(slots=True)
class Tape:
    """Operations, the place in the text each came from, and what the variables are bound to.

    ``bound`` maps a variable's node to the node of its exact value (a constant expression on the same tape).
    ``defined`` holds the constants that nobody typed, a definition or a formula of the table having brought them
    in: sizes of numbers, and ``pi`` and ``E``. ``factored`` tells which entries came out of factoring a matrix.
    """

    text: str = ""
    ops: list[Op] = field(default_factory=list)
    spans: list[Span | None] = field(default_factory=list)
    bound: dict[int, int] = field(default_factory=dict)
    defined: set[int | Fraction | str] = field(default_factory=set)
    factored: list[Factored] = field(default_factory=list)
    _index: dict[Op, int] = field(default_factory=dict)
    _here: Span | None = None

    def add(self, op: str, *args: int, value: Any = None) -> int:
        """The node of an operation, an old one if the same was there before."""
        key = Op(op, args, value)
        found = self._index.get(key)
        if found is None:
            found = self._index[key] = len(self.ops)
            self.ops.append(key)
            self.spans.append(self._here)
        return found

    def copy(self) -> Tape:
        """The same operations, free to grow and to be bound otherwise."""
        return Tape(
            self.text,
            list(self.ops),
            list(self.spans),
            dict(self.bound),
            set(self.defined),
            list(self.factored),
            dict(self._index),
        )

    def number(self, value: int | Fraction) -> int:
        """The node of an exact number."""
        whole = value.numerator if value.denominator == 1 else value
        return self.add("number", value=whole)

    def constant(self, node: int) -> int | Fraction | str | None:
        """The size of a number, ``pi`` or ``E``; None for what is no constant."""
        op = self.ops[node]
        if op.op == "number":
            return abs(op.value)  # type: ignore[no-any-return]
        return op.op if op.op in ("pi", "E") else None

    def define(self, start: int) -> None:
        """Note that the operations added since there were ``start`` of them come from the table, and are not typed."""
        found = (self.constant(node) for node in range(start, len(self.ops)))
        self.defined.update(constant for constant in found if constant is not None)

    def at(self, span: Span | None) -> None:
        """Operations added from now on come from this place."""
        self._here = span

    def source(self, node: int) -> str | None:
        """The characters that a node came from, or None for one that no text stands for."""
        span = self.spans[node]
        return None if span is None else self.text[span.start : span.stop]

    def varies(self, node: int) -> bool:
        """Whether a node is made of any variable."""
        return any(self.ops[each].op == "variable" for each in self.needed((node,)))

    def needed(self, roots: Any) -> list[int]:
        """The nodes that ``roots`` depend on, themselves included, in order (bound values are not followed)."""
        return needed(self.ops, roots)
