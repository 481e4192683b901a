"""Which entries of an array are made of which entries of its arguments, operation by operation.

A program of arrays is a network: every entry of every node has wires to the entries that it is made of. They are known
from shapes, constant indices and the zeros of constants alone, and so hold at every point. Marks travel along them:
from a switching point to the outputs that it decides about, or back to the variables that decide about it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jacli.functions import ROWS
from jacli.language.counting import gathered
from jacli.language.points import Data
from jacli.language.shapes import infer
from jacli.language.syntax import Node, Program
from jacli.readings.tape import needed
from jacli.sparse.family import Ints, Mask

#: Wires of one matrix product that are drawn one by one; beyond, every row is wired to every column.
MOST_WIRES = 12_000_000

#: Operations that only move entries: each entry of the result is one of an argument's.
_MOVES = frozenset("index gather family reshape transpose concat stack array".split())

_REDUCTIONS = frozenset("sum mean prod norm logsumexp var std max min dot det".split())

#: Their results are known before the point is.
_COUNTING = frozenset(("counter", "len"))


@dataclass(frozen=True, slots=True, eq=False)
class Hop:
    """A bundle of wires between two arrays, both flat.

    Attributes:
        sources: for each wire, the entry that is used.
        targets: the entry that is made of it; None where wire k leads to entry k, and every entry has one.
        size: how many entries are made.
    """

    sources: Ints
    targets: Ints | None
    size: int


#: The bundles between an argument and a node, one behind another; no bundle: entry by entry. None: no wires at all.
Hops = Sequence[Hop] | None


@dataclass(frozen=True, eq=False)
class Wiring:
    """The wires of a program.

    Attributes:
        program: the program.
        shapes: the shape of every node.
        order: the nodes that the outputs need, each after its arguments.
        zeros: for each node, the entries (flat) that are zero whatever the point is; None where there are none.
        hops: for each node of ``order``, the wires to each of its arguments. Arguments without a variable have none.
        relied: the names of variables held fixed whose zeros were made use of.
    """

    program: Program
    shapes: Sequence[tuple[int, ...]]
    order: Sequence[int]
    zeros: Mapping[int, Mask]
    hops: Mapping[int, Sequence[Hops]]
    relied: tuple[str, ...]

    def size(self, node: int) -> int:
        """How many entries a node has."""
        return math.prod(self.shapes[node])

    def at_outputs(self, mask: Mask) -> dict[int, Mask]:
        """Marks on output entries, flat, by node; an output that stands there twice has both."""
        found: dict[int, Mask] = {}
        start = 0
        for node in self.program.outputs:
            stop = start + self.size(node)
            found[node] = mask[start:stop] | found.get(node, np.False_)
            start = stop
        return found

    def of_outputs(self, marks: Mapping[int, Mask]) -> Mask:
        """The marks of the outputs, one behind another."""
        return np.concatenate([marks[node] for node in self.program.outputs])

    def pushed(self, marks: Mapping[int, Mask]) -> dict[int, Mask]:
        """For every node, the entries that are made of a marked one (marked entries included)."""
        found: dict[int, Mask] = {}
        for node in self.order:
            mask = marks[node].copy() if node in marks else np.zeros(self.size(node), bool)
            for arg, hops in zip(self.program.nodes[node].args, self.hops[node], strict=True):
                if hops is not None and found[arg].any():
                    mask |= _ahead(found[arg], hops)
            found[node] = mask
        return found

    def decided(self, switching: Mapping[int, Mask], moved: Mapping[int, Mask]) -> dict[int, Mask]:
        """For every node, the entries that are made of a switching point which ``moved`` entries have a part in."""
        moving = self.pushed(moved)
        return self.pushed({node: mask & moving[node] for node, mask in switching.items()})

    def deciding(self, switching: Mapping[int, Mask], used: Mapping[int, Mask]) -> dict[int, Mask]:
        """For every node, the entries behind a switching point that ``used`` entries are made of."""
        behind = self.pulled(used)
        return self.pulled({node: mask & behind[node] for node, mask in switching.items()})

    def pulled(self, marks: Mapping[int, Mask]) -> dict[int, Mask]:
        """For every node, the entries that a marked one is made of (marked entries included)."""
        found = {node: marks[node].copy() if node in marks else np.zeros(self.size(node), bool) for node in self.order}
        for node in reversed(self.order):
            if not found[node].any():
                continue
            for arg, hops in zip(self.program.nodes[node].args, self.hops[node], strict=True):
                if hops is not None:
                    found[arg] |= _back(found[node], hops, self.size(arg))
        return found


def _ahead(mask: Mask, hops: Sequence[Hop]) -> Mask:
    for hop in hops:
        if hop.targets is None:
            mask = mask[hop.sources]
        else:
            reached = np.zeros(hop.size, bool)
            reached[hop.targets[mask[hop.sources]]] = True
            mask = reached
    return mask


def _back(mask: Mask, hops: Sequence[Hop], size: int) -> Mask:
    """Marks on a node's entries as marks on its argument's, of which there are ``size``."""
    for place, hop in reversed(list(enumerate(hops))):
        used = np.zeros(hops[place - 1].size if place else size, bool)
        used[hop.sources[mask if hop.targets is None else mask[hop.targets]]] = True
        mask = used
    return mask


# ---- drawing the wires


def wiring(
    program: Program, shapes: Sequence[tuple[int, ...]], free: Sequence[str], held: Mapping[str, Data | Program]
) -> Wiring:
    """The wires of a program.

    Args:
        program: the program.
        shapes: the shape of every node.
        free: the variables that are differentiated by.
        held: the values of the others: their zeros are zeros.
    """
    return _Drawing(program, shapes, frozenset(free), held).wiring()


def without_value(
    program: Program, shapes: Sequence[tuple[int, ...]], variables: Sequence[str], valueless: Mapping[int, Mask]
) -> Mask:
    """The output entries that are made of one without a value, held fixed or not: they have no slope whatever moves."""
    if not valueless:
        return np.zeros(sum(math.prod(shapes[node]) for node in program.outputs), bool)
    everything = wiring(program, shapes, variables, {})
    return everything.of_outputs(everything.pushed(valueless))


class _Drawing:
    """Draws the wires of one program, node by node."""

    def __init__(
        self,
        program: Program,
        shapes: Sequence[tuple[int, ...]],
        free: frozenset[str],
        held: Mapping[str, Data | Program],
    ) -> None:
        self.nodes = program.nodes
        self.shapes = shapes
        self.free = free
        self.held = held
        self.program = program
        self.zeros: dict[int, Mask] = {}
        self.varies: set[int] = set()
        self.owners: dict[int, frozenset[str]] = {}
        self.relied: dict[str, None] = {}

    def wiring(self) -> Wiring:
        order = needed(self.program.nodes, self.program.outputs)
        hops: dict[int, Sequence[Hops]] = {}
        for index in order:
            node = self.nodes[index]
            if node.value in self.free if node.op == "variable" else not self.varies.isdisjoint(node.args):
                self.varies.add(index)
            self.owners[index] = frozenset().union(*(self.owners.get(arg, frozenset()) for arg in node.args))
            drawn = self._drawn(index)
            self._note_zeros(index, drawn)
            hops[index] = [one if arg in self.varies else None for arg, one in zip(node.args, drawn, strict=True)]
        return Wiring(self.program, self.shapes, order, self.zeros, hops, tuple(self.relied))

    def _size(self, index: int) -> int:
        return math.prod(self.shapes[index])

    def _drawn(self, index: int) -> Sequence[Hops]:
        """The wires from a node to its arguments."""
        node = self.nodes[index]
        if node.op in _COUNTING:
            return [None] * len(node.args)
        if node.op in _MOVES:
            return self._moved(index)
        if node.op in ("mul", "outer"):
            return self._multiplied(index)
        if node.op in _REDUCTIONS and not (node.op in ("max", "min") and len(node.args) > 1):
            return [[_lines(self.shapes[arg], *(node.value or ()))] for arg in node.args]
        rule = _RULES.get(node.op)
        if rule is not None:
            return rule(self, index)
        if node.op in ROWS and ROWS[node.op].kind == "array" and node.args:
            return [_all_to_all(self._size(arg), self._size(index)) for arg in node.args]
        return [self._entry_by_entry(arg, self.shapes[index]) for arg in node.args]

    def _entry_by_entry(self, arg: int, shape: tuple[int, ...]) -> Hops:
        """The wires of an argument that is broadcast to ``shape``."""
        if self.shapes[arg] == shape:
            return []
        return [Hop(_broadcast(self.shapes[arg], shape), None, math.prod(shape))]

    # ---- moves

    def _moved(self, index: int) -> Sequence[Hops]:
        args = self.nodes[index].args
        starts = np.cumsum([0, *(self._size(arg) for arg in args)])
        numbered = [
            np.arange(start, start + self._size(arg)).reshape(self.shapes[arg])
            for arg, start in zip(args, starts, strict=False)
        ]
        places = np.asarray(self._rearranged(self.nodes[index], numbered), np.int64).reshape(-1)
        if self.nodes[index].op in ("gather", "family"):  # what follows the array counts, and has no entries
            return [[Hop(places, None, len(places))], *[None] * (len(args) - 1)]
        if len(args) == 1:
            return [[Hop(places, None, len(places))]]
        owners = np.searchsorted(starts, places, side="right") - 1
        found = [np.flatnonzero(owners == k) for k in range(len(args))]
        return [[Hop(places[mine] - start, mine, len(places))] for mine, start in zip(found, starts[:-1], strict=True)]

    def _rearranged(self, node: Node, arrays: Sequence[Any]) -> Any:
        """What a move does to arrays, numpy's own rules being the meaning of all of them."""
        if node.op == "index":
            return arrays[0][node.value]
        if node.op == "gather":
            return arrays[0][gathered(self.nodes, node, self.shapes.__getitem__)]
        if node.op == "family":
            return np.broadcast_to(arrays[0], np.broadcast_shapes(*(self.shapes[arg] for arg in node.args[1:])))
        if node.op == "array":
            return np.stack(arrays)
        entries = ROWS[node.op].entries
        if entries is None:
            raise AssertionError(f"{node.op} moves no entries")
        return entries(*arrays, *(node.value or ()))

    # ---- products

    def _multiplied(self, index: int) -> Sequence[Hops]:
        """A factor has no effect where the other one is zero."""
        args = self.nodes[index].args
        shapes: tuple[tuple[int, ...], tuple[int, ...]]
        if self.nodes[index].op == "outer":
            shapes = (self._size(args[0]), 1), (1, self._size(args[1]))
        else:
            shapes = self.shapes[args[0]], self.shapes[args[1]]
        places = [_broadcast(shape, self.shapes[index]) for shape in shapes]
        found: list[Hops] = []
        for position, (arg, other) in enumerate((args, args[::-1])):
            zero = self.zeros.get(other)
            if zero is None or arg not in self.varies:
                same = shapes[position] == self.shapes[index] == self.shapes[arg]
                found.append([] if same else [Hop(places[position], None, self._size(index))])
                continue
            kept = np.flatnonzero(~zero[places[1 - position]])
            self._rely(other)
            found.append([Hop(places[position][kept], kept, self._size(index))])
        return found

    def matmul(self, index: int) -> Sequence[Hops]:
        """An entry of a product is made of the pairs of which neither is zero."""
        a, b = self.nodes[index].args
        left, right = _stacked(self.shapes[a], self.shapes[b])
        _, rows, inner = left.shape
        columns = right.shape[2]
        if not inner:
            return [None, None]
        if a not in self.zeros and b not in self.zeros:
            return self._matmul_by_lines(index, left, right)
        sides = []
        for arg, places in ((a, left), (b, right)):
            flat = places.reshape(-1)
            zero = self.zeros.get(arg)
            kept = np.arange(len(flat)) if zero is None else np.flatnonzero(~zero[flat])
            sides.append((kept, flat[kept]))
        (at_left, from_left), (at_right, from_right) = sides
        stack_row, k = np.divmod(at_left, inner)  # stack * rows + row
        stack_k, column = np.divmod(at_right, columns)  # stack * inner + k
        keys = stack_row // rows * inner + k
        met = np.bincount(keys, minlength=len(left) * inner) @ np.bincount(stack_k, minlength=len(left) * inner)
        if met > MOST_WIRES:
            return self._matmul_by_lines(index, left, right)
        one, other = _pairs(keys, stack_k)
        targets = stack_row[one] * columns + column[other]
        for arg, partner in ((a, b), (b, a)):
            if arg in self.varies:
                self._rely(partner)
        size = self._size(index)
        return [[Hop(from_left[one], targets, size)], [Hop(from_right[other], targets, size)]]

    def _matmul_by_lines(self, index: int, left: Any, right: Any) -> Sequence[Hops]:
        """Every entry made of a whole row and a whole column."""
        stacks, rows, _ = left.shape
        columns = right.shape[2]
        row = np.arange(stacks * rows).reshape(stacks, rows, 1)
        column = np.arange(stacks * columns).reshape(stacks, 1, columns)
        size = self._size(index)
        full = stacks, rows, columns

        def two(places: Any, lines: Any) -> list[Hop]:
            count = int(lines.max()) + 1
            gathered_in = np.broadcast_to(lines, places.shape).reshape(-1)
            spread = np.broadcast_to(lines, full).reshape(-1)
            return [Hop(places.reshape(-1), gathered_in, count), Hop(spread, None, size)]

        return [two(left, row), two(right, column)]

    def _rely(self, node: int) -> None:
        """Note whose zeros a pattern depends on."""
        if node in self.zeros:
            self.relied.update(dict.fromkeys(sorted(self.owners[node])))

    # ---- others

    def softmax(self, index: int) -> Sequence[Hops]:
        (arg,) = self.nodes[index].args
        lines = _lines(self.shapes[arg], *(self.nodes[index].value or ()))
        assert lines.targets is not None
        return [[lines, Hop(lines.targets, None, self._size(arg))]]

    def cumsum(self, index: int) -> Sequence[Hops]:
        """Prefixes by doubling: after k hops an entry is made of the 2**k entries before it."""
        (arg,) = self.nodes[index].args
        shape = self.shapes[arg]
        axis = (self.nodes[index].value or (0,))[0] % len(shape)
        places = np.moveaxis(np.arange(self._size(arg)).reshape(shape), axis, 0)
        hops = []
        step = 1
        while step < shape[axis]:
            sources = np.concatenate([places.reshape(-1), places[:-step].reshape(-1)])
            targets = np.concatenate([places.reshape(-1), places[step:].reshape(-1)])
            hops.append(Hop(sources, targets, self._size(arg)))
            step *= 2
        return [hops]

    def trace(self, index: int) -> Sequence[Hops]:
        (arg,) = self.nodes[index].args
        size = self.shapes[arg][0]
        return [[Hop(np.arange(size) * (size + 1), np.zeros(size, np.int64), 1)]]

    def solve(self, index: int) -> Sequence[Hops]:
        a, b = self.nodes[index].args
        columns = _lines(self.shapes[b], 0)
        assert columns.targets is not None
        spread = Hop(columns.targets, None, self._size(b))
        return [_all_to_all(self._size(a), self._size(index)), [columns, spread]]

    # ---- zeros

    def _note_zeros(self, index: int, drawn: Sequence[Hops]) -> None:
        found = self._zeros(index, drawn)
        if found is not None and found.any():
            self.zeros[index] = found

    def _zeros(self, index: int, drawn: Sequence[Hops]) -> Mask | None:
        """The entries that are zero whatever the point is, as far as the operations tell."""
        node = self.nodes[index]
        if node.op == "number":
            return np.array([node.value == 0])
        if node.op == "variable" and node.value in self.held:
            self.owners[index] = frozenset((node.value,))
            return _zeros_of(self.held[node.value])
        if node.op == "zeros":
            return np.ones(self._size(index), bool)
        if node.op == "eye":
            return ~np.eye(self.shapes[index][0], dtype=bool).reshape(-1)
        given = [self.zeros.get(arg) for arg in node.args]
        if all(zero is None for zero in given):
            return None
        if node.op in _MOVES:
            return self._moved_zeros(index, drawn)
        if node.op == "matmul":
            return self._zeros_of_product(index)
        masks = [np.zeros(self._size(a), bool) if z is None else z for a, z in zip(node.args, given, strict=True)]
        combine = _ZEROS.get(node.op)
        if combine is None:
            return None
        spread = [
            mask[_broadcast(self.shapes[a], self.shapes[index])] for a, mask in zip(node.args, masks, strict=True)
        ]
        result: Mask = combine(*spread)
        return result

    def _moved_zeros(self, index: int, drawn: Sequence[Hops]) -> Mask:
        mask = np.zeros(self._size(index), bool)
        for arg, hops in zip(self.nodes[index].args, drawn, strict=True):
            if hops is not None and arg in self.zeros:
                mask |= _ahead(self.zeros[arg], hops)
        return mask

    def _zeros_of_product(self, index: int) -> Mask | None:
        """No pair of entries meets that are both not zero."""
        factors = self.nodes[index].args
        if any(arg not in self.zeros for arg in factors):
            return None
        a, b = ((~self.zeros[arg]).astype(np.float64).reshape(self.shapes[arg]) for arg in factors)
        return np.asarray(a @ b == 0).reshape(-1)


_RULES: dict[str, Callable[[_Drawing, int], Sequence[Hops]]] = {
    "matmul": _Drawing.matmul,
    "softmax": _Drawing.softmax,
    "cumsum": _Drawing.cumsum,
    "trace": _Drawing.trace,
    "solve": _Drawing.solve,
}

#: When a number made of others is zero, from which of these are.
_ZEROS: dict[str, Callable[..., Mask]] = {
    "add": np.logical_and,
    "sub": np.logical_and,
    "mul": np.logical_or,
    "div": lambda a, b: a,
    "neg": lambda a: a,
}


def _zeros_of(value: Data | Program) -> Mask | None:
    """The entries of a value that are exactly zero."""
    if isinstance(value, Data):
        return np.array([number == 0 for number in value.numbers], bool)
    drawn = wiring(value, infer(value, {}), (), {})
    return drawn.zeros.get(value.outputs[0])


def _broadcast(shape: tuple[int, ...], wanted: tuple[int, ...]) -> Ints:
    """For each entry of an array of shape ``wanted``, the entry of one of ``shape`` that it is made of."""
    return np.broadcast_to(np.arange(math.prod(shape)).reshape(shape), wanted).reshape(-1)


def _lines(shape: tuple[int, ...], axis: int | None = None) -> Hop:
    """Every entry to the line along ``axis`` in which it lies; to the only one where None."""
    size = math.prod(shape)
    if axis is None:
        return Hop(np.arange(size), np.zeros(size, np.int64), 1)
    axis %= len(shape)
    rest = shape[:axis] + shape[axis + 1 :]
    lines = np.expand_dims(np.arange(math.prod(rest)).reshape(rest), axis)
    return Hop(np.arange(size), np.broadcast_to(lines, shape).reshape(-1), math.prod(rest))


def _all_to_all(size: int, result: int) -> list[Hop]:
    return [_lines((size,)), Hop(np.zeros(result, np.int64), None, result)]


def _stacked(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[Any, Any]:
    """The factors' entries as stacks of matrices: shapes (stacks, rows, inner) and (stacks, inner, columns)."""
    left, right = (np.arange(math.prod(shape)).reshape(shape) for shape in (a, b))
    left = left[None, :] if left.ndim == 1 else left
    right = right[:, None] if right.ndim == 1 else right
    stack = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    return tuple(
        np.broadcast_to(m, (*stack, *m.shape[-2:])).reshape(math.prod(stack), *m.shape[-2:]) for m in (left, right)
    )  # type: ignore[return-value]


def _pairs(ours: Ints, theirs: Ints) -> tuple[Ints, Ints]:
    """All pairs of places whose keys are equal."""
    order = np.argsort(theirs, kind="stable")
    ordered = theirs[order]
    first, last = np.searchsorted(ordered, ours, side="left"), np.searchsorted(ordered, ours, side="right")
    count = last - first
    one = np.repeat(np.arange(len(ours)), count)
    within = np.arange(len(one)) - np.repeat(np.cumsum(count) - count, count)
    return one, order[first[one] + within]
