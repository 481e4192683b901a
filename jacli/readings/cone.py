"""One entry of a program of arrays on a tape of its own: only what that entry is made of is written out.

A program that is too long to be written out whole may still be read entry by entry: behind one entry of a sparse
product there are a few numbers. This shares nothing with the patterns and colours that it is there to check.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jacli.functions import ROWS
from jacli.language.counting import counts, gathered
from jacli.language.syntax import Node, Program
from jacli.readings.lowering import FACTORING, Scalar, TooLarge, call, nodes_of, run
from jacli.readings.tape import Factored, Tape
from jacli.recursion import deep

_MOVES = frozenset("index gather family reshape transpose concat stack array".split())
_LINES = frozenset("sum mean prod norm logsumexp var std".split())
_WHOLE = frozenset("det inv cross zeros ones eye".split())

#: The entries that a tape's variable or number stands for, ``leaf(tape, name, entry)``.
Leaf = Callable[[Tape, str, int], int]


@dataclass(eq=False)
class Cone:
    """Writes out single entries of a program.

    Attributes:
        program: the program.
        shapes: the shape of every node.
        leaf: the node on a tape of an entry (flat) of a variable; the number 0 for what is held at zero.
        most: the greatest number of operations to write for one entry.
    """

    program: Program
    shapes: Sequence[tuple[int, ...]]
    leaf: Leaf
    most: int
    _codes: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    _behind: dict[int, int] = field(default_factory=dict)

    def entries(self, wanted: Sequence[tuple[int, int]], tape: Tape) -> list[int]:
        """Some entries, each a node and a place (flat) in it, as nodes of ``tape``.

        Raises:
            TooLarge: the tape would have more than ``most`` operations.
        """
        writing = _Writing(self, tape)
        with deep(4 * len(self.program.nodes) + 1_000):
            found = [writing.entry(node, place) for node, place in wanted]
        tape.at(None)
        return found

    def behind(self, index: int) -> int:
        """How many nodes a node is made of: of two factors, the simpler one is looked at first, for it may be zero."""
        if index not in self._behind:
            seen, stack = {index}, [index]
            while stack:
                new = set(self.program.nodes[stack.pop()].args) - seen
                seen |= new
                stack += new
            self._behind[index] = len(seen)
        return self._behind[index]

    def sources(self, index: int) -> tuple[Any, Any]:
        """For each entry of a move, which argument it comes from and its place there; arrays of its size."""
        if index not in self._codes:
            node = self.program.nodes[index]
            sizes = [math.prod(self.shapes[arg]) for arg in node.args]
            starts = np.cumsum([0, *sizes])
            numbered = [
                np.arange(start, start + size).reshape(self.shapes[arg])
                for arg, start, size in zip(node.args, starts, sizes, strict=False)
            ]
            codes = np.asarray(self._rearranged(node, numbered), np.int64).reshape(-1)
            owners = np.searchsorted(starts, codes, side="right") - 1
            self._codes[index] = owners, codes - starts[owners]
        return self._codes[index]

    def _rearranged(self, node: Node, arrays: Sequence[Any]) -> Any:
        if node.op == "index":
            return arrays[0][node.value]
        if node.op == "gather":
            return arrays[0][gathered(self.program.nodes, node, self.shapes.__getitem__)]
        if node.op == "family":
            return np.broadcast_to(arrays[0], np.broadcast_shapes(*(self.shapes[arg] for arg in node.args[1:])))
        if node.op == "array":
            return np.stack(arrays)
        entries = ROWS[node.op].entries
        assert entries is not None
        return entries(*arrays, *(node.value or ()))


@dataclass(eq=False)
class _Writing:
    """One tape that is being written."""

    cone: Cone
    tape: Tape
    known: dict[tuple[int, int], int] = field(default_factory=dict)

    def entry(self, index: int, place: int) -> int:
        """The tape's node for one entry."""
        if (index, place) not in self.known:
            self.known[index, place] = self._written(index, place)
            if len(self.tape.ops) > self.cone.most:
                raise TooLarge
        return self.known[index, place]

    def _written(self, index: int, place: int) -> int:
        node = self.cone.program.nodes[index]
        if node.op == "variable":
            return self.cone.leaf(self.tape, node.value, place)
        if node.op in ("counter", "len"):
            return self.tape.number(self._counted(index, place))
        if node.op in _MOVES:
            owners, places = self.cone.sources(index)
            return self.entry(node.args[owners[place]], int(places[place]))
        if not node.args and node.op not in _WHOLE:
            return self._constant(node)
        rule = _RULES.get(node.op)
        if rule is None or (node.op in ("max", "min") and len(node.args) > 1):
            return self._entry_by_entry(index, place)
        return self._node(rule(self, index, place))

    def _node(self, value: Any) -> int:
        return Scalar(self.tape, 0).wrap(value.item() if hasattr(value, "item") else value)

    def _counted(self, index: int, place: int) -> int:
        found = counts(self.cone.program.nodes, index, self.cone.shapes.__getitem__)
        return int(np.asarray(found).reshape(-1)[place])

    def _constant(self, node: Node) -> int:
        values: dict[int, Any] = {}
        run(Program(self.cone.program.text, (node,), (0,), {}, {}), self.tape, values, self.cone.most)
        return self._node(values[0])

    def _entry_by_entry(self, index: int, place: int) -> int:
        node, shape = self.cone.program.nodes[index], self.cone.shapes[index]
        where = np.unravel_index(place, shape) if shape else ()
        args = [self.entry(arg, _place(where, self.cone.shapes[arg])) for arg in node.args]
        self.tape.at(node.span)
        return call(self.tape, node.op, tuple(args), node.value or ())

    # ---- arrays

    def array(self, index: int, places: Any) -> Any:
        """Some entries of a node as a numpy object array of scalars, in the shape of ``places``."""
        if places.size > self.cone.most:
            raise TooLarge
        found = np.empty(places.size, dtype=object)
        found[:] = [Scalar(self.tape, self.entry(index, place)) for place in places.reshape(-1).tolist()]
        return found.reshape(places.shape)

    def _places(self, index: int) -> Any:
        shape = self.cone.shapes[index]
        return np.arange(math.prod(shape)).reshape(shape)

    def _line(self, index: int, place: int) -> tuple[int, Any]:
        """The argument of a reduction, and its places that make one entry."""
        node = self.cone.program.nodes[index]
        (arg,) = node.args
        places = self._places(arg)
        if not node.value:
            return arg, places.reshape(-1)
        lines = np.moveaxis(places, node.value[0], -1)
        return arg, lines.reshape(-1, lines.shape[-1])[place]

    def _row(self, index: int) -> Callable[..., Any]:
        self.tape.at(self.cone.program.nodes[index].span)
        entries = ROWS[self.cone.program.nodes[index].op].entries
        assert entries is not None
        return entries

    def reduced(self, index: int, place: int) -> Any:
        """A sum, a mean, a length, …: one line of entries."""
        arg, places = self._line(index, place)
        line = self.array(arg, places)
        return self._row(index)(line)

    def extreme(self, index: int, place: int) -> Any:
        """The largest or smallest entry, two by two."""
        arg, places = self._line(index, place)
        first, *others = self.array(arg, places)
        self.tape.at(self.cone.program.nodes[index].span)
        for other in others:
            first = first.of(self.cone.program.nodes[index].op, first.node, other.node)
        return first

    def summed(self, index: int, place: int) -> Any:
        """A running sum: the entries up to this one."""
        node = self.cone.program.nodes[index]
        (arg,) = node.args
        axis = (node.value or (0,))[0]
        where: list[Any] = list(np.unravel_index(place, self.cone.shapes[arg]))
        where[axis] = slice(0, int(where[axis]) + 1)
        return self._row(index)(self.array(arg, self._places(arg)[tuple(where)]))[-1]

    def softened(self, index: int, place: int) -> Any:
        """A softmax: the entry's own line."""
        node = self.cone.program.nodes[index]
        (arg,) = node.args
        places = self._places(arg)
        if node.value:
            where: list[Any] = list(np.unravel_index(place, places.shape))
            position = int(where[node.value[0]])
            where[node.value[0]] = slice(None)
            places = places[tuple(where)]
        else:
            places, position = places.reshape(-1), place
        line = self.array(arg, places)
        return self._row(index)(line)[position]

    def product(self, index: int, place: int) -> Any:
        """A row times a column, products with the number 0 left out."""
        a, b = self.cone.program.nodes[index].args
        left, right = self._places(a), self._places(b)
        left = left[None, :] if left.ndim == 1 else left
        right = right[:, None] if right.ndim == 1 else right
        stack = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        left, right = (np.broadcast_to(m, (*stack, *m.shape[-2:])) for m in (left, right))
        where: tuple[Any, ...] = np.unravel_index(place, (*stack, left.shape[-2], right.shape[-1]))
        return self._dotted(index, left[where[:-1]], right[(*where[:-2], slice(None), where[-1])])

    def dotted(self, index: int, _: int) -> Any:
        """The same of two vectors."""
        a, b = self.cone.program.nodes[index].args
        return self._dotted(index, self._places(a), self._places(b))

    def _dotted(self, index: int, left: Any, right: Any) -> Any:
        a, b = self.cone.program.nodes[index].args
        if left.size > self.cone.most:
            raise TooLarge
        total: Any = 0
        simple = self.cone.behind(a) <= self.cone.behind(b)
        for i, j in zip(left.tolist(), right.tolist(), strict=True):
            first, other = ((a, i), (b, j)) if simple else ((b, j), (a, i))
            if self._is_zero(self.entry(*first)) or self._is_zero(self.entry(*other)):
                continue
            self.tape.at(self.cone.program.nodes[index].span)
            total = total + Scalar(self.tape, self.entry(a, i)) * Scalar(self.tape, self.entry(b, j))
        return total

    def _is_zero(self, node: int) -> bool:
        op = self.tape.ops[node]
        return op.op == "number" and op.value == 0

    def outer(self, index: int, place: int) -> Any:
        a, b = self.cone.program.nodes[index].args
        i, j = divmod(place, math.prod(self.cone.shapes[b]))
        return Scalar(self.tape, self.entry(a, i)) * Scalar(self.tape, self.entry(b, j))

    def traced(self, index: int, _: int) -> Any:
        (arg,) = self.cone.program.nodes[index].args
        return self.array(arg, np.diagonal(self._places(arg))).sum()

    def whole(self, index: int, place: int) -> Any:
        """All entries of the arguments."""
        node = self.cone.program.nodes[index]
        if node.op in ("det", "inv") and self.cone.shapes[node.args[0]][0] ** 4 > self.cone.most:
            raise TooLarge
        args = [self.array(arg, self._places(arg)) for arg in node.args]
        result = self._row(index)(*args, *(node.value or ()))
        self._note_factored(node.op, args, result)
        return result.reshape(-1)[place] if hasattr(result, "reshape") else result

    def solved(self, index: int, place: int) -> Any:
        """One entry of a solution: the matrix, and one right side."""
        a, b = self.cone.program.nodes[index].args
        if self.cone.shapes[a][0] ** 4 > self.cone.most:
            raise TooLarge
        columns = self.cone.shapes[b][1] if len(self.cone.shapes[b]) > 1 else 1
        row, column = divmod(place, columns)
        right = self._places(b).reshape(-1, columns)[:, column]
        matrix, side = self.array(a, self._places(a)), self.array(b, right)
        result = self._row(index)(matrix, side)
        self._note_factored("solve", [matrix], result)
        return result[row]

    def _note_factored(self, op: str, args: Sequence[Any], result: Any) -> None:
        """What libraries compute by factoring a matrix loses digits in another way than what is written out."""
        if op in FACTORING:
            self.tape.factored.append(Factored(op, nodes_of(self.tape, args[0]), nodes_of(self.tape, result)))


_RULES: Mapping[str, Callable[[_Writing, int, int], Any]] = {
    **dict.fromkeys(_LINES, _Writing.reduced),
    **dict.fromkeys(_WHOLE, _Writing.whole),
    "max": _Writing.extreme,
    "min": _Writing.extreme,
    "cumsum": _Writing.summed,
    "softmax": _Writing.softened,
    "matmul": _Writing.product,
    "dot": _Writing.dotted,
    "outer": _Writing.outer,
    "trace": _Writing.traced,
    "solve": _Writing.solved,
}


def _place(where: Sequence[Any], shape: tuple[int, ...]) -> int:
    """The flat place of an index in an array that is broadcast to where it counts."""
    flat = 0
    for size, k in zip(shape, where[len(where) - len(shape) :], strict=True):
        flat = flat * size + (0 if size == 1 else int(k))
    return flat
