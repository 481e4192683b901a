"""A block of derivatives: many outputs by many variables, without writing a reverse sweep on the tape for each output.

``adjoint`` writes the sweep of an output as nodes, and what rounding does to one derivative is a further sweep over
them: in a dense block nearly the same thousands of nodes for every entry. Here all rows are swept at once, in exact
numbers. And the effect of rounding is found for all entries at once from sweeps over the program's own nodes, since
the derivative of ``∂f/∂x`` by the bar of a node is that node's derivative by ``x`` (second-order adjoints: Griewank,
Walther 2008, doi:10.1137/1.9780898717761).

What cannot be settled so is left out, and ``adjoint`` must tell: a ball too wide, a number beyond doubles on the way,
a bound that doubles cannot tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from flint import ctx, fmpq

from jacli.errors import Span
from jacli.readings.adjoint import Link, dependents, links
from jacli.readings.balls import ACCURACY, PRECISIONS, Balls, is_accurate
from jacli.readings.exact import MOST_BITS, OPERATIONS, NoValueError, Number, UnsureError, ball, is_zero, shortened
from jacli.readings.paths import Path
from jacli.readings.precision import DOUBLE, Precision
from jacli.readings.rounding import CLEAR, NEGLIGIBLE, Effect, Rounding, clear, is_float

if TYPE_CHECKING:
    import numpy.typing as npt

    _Array = npt.NDArray[np.float64]

#: Doubles that the weights of one block may take.
_MOST_WEIGHTS = 1 << 22

#: A block pays where each of its nodes is part of at least so many entries.
_REPEATS = 128

#: Rows share a block while its nodes are at most this many times those of the longest row.
_SPREAD = 2

#: What typed numbers do to a zero is taken for nothing where it is no more than this beside what operations do.
_NOTHING = 1e-10

_LARGEST = DOUBLE.largest

#: Bits of numbers that floats are taken to round.
_LONG = 128

#: What is tried before entries are left to the tape: the bits of balls, and of rationals that become balls. Long
#: rationals are slow, but only they can tell that terms cancel exactly.
_TRIED = ((PRECISIONS[0], 512), (PRECISIONS[0], MOST_BITS), (PRECISIONS[1], MOST_BITS))

_neg: Callable[[Number], Number]
_add: Callable[[Number, Number], Number]
_mul: Callable[[Number, Number], Number]
_div: Callable[[Number, Number], Number]
_neg, _add, _mul, _div = (OPERATIONS[op] for op in ("neg", "add", "mul", "div"))  # type: ignore[assignment]


class Settled(NamedTuple):
    """A derivative, and what rounding does to it."""

    value: Number
    effect: Effect


def settle(rounding: Rounding, paths: Mapping[int, Path], wrt: Collection[int]) -> dict[tuple[int, int], Settled]:
    """The derivatives of outputs by variables that can be settled, by output and variable.

    Args:
        rounding: of the tape at the point.
        paths: the path of each output; every node has a value, and no variable of ``wrt`` touches a switching point.
        wrt: nodes of variables.
    """
    found: dict[tuple[int, int], Settled] = {}
    for group in _groups(paths, len(wrt)):
        within = {output: paths[output] for output in group if not rounding.leaves(paths[output].nodes)}
        found.update(_settled(rounding, _plan(rounding.balls, within, wrt)))
    return found


def _groups(paths: Mapping[int, Path], width: int) -> Iterator[list[int]]:
    """Outputs that are made of much the same nodes, where they are worth a block."""
    left = list(paths)
    while left:
        group: list[int] = []
        union: set[int] = set()
        longest = total = 0
        for output in left:
            nodes = paths[output].nodes
            both = union.union(nodes)
            longest = max(longest, len(nodes))
            if group and (len(both) > _SPREAD * longest or len(both) * width * (len(group) + 1) > _MOST_WEIGHTS):
                break
            group.append(output)
            union, total = both, total + len(nodes)
        if total * width >= _REPEATS * len(union):
            yield group
        left = left[len(group) :]


# ---- what a block is made of


@dataclass(frozen=True, slots=True)
class _Plan:
    """A block's outputs and columns, and the nodes between, in order, each with its links."""

    outputs: tuple[int, ...]
    columns: tuple[int, ...]
    nodes: tuple[int, ...]
    links: dict[int, list[tuple[int, Link]]]

    def factors(self) -> set[int]:
        """The nodes that bars are multiplied with or divided by."""
        return {
            node
            for each in self.links.values()
            for _, link in each
            for node in (link.factor, link.divisor)
            if node is not None
        }


def _plan(balls: Balls, paths: Mapping[int, Path], wrt: Collection[int]) -> _Plan:
    uses: dict[int, tuple[int, ...]] = {}  # the same for all paths
    for path in paths.values():
        uses.update(path.uses)
    together = Path(tuple(sorted(uses)), uses, {}, ())
    depends = dependents(together, wrt)
    tape = balls.tape
    found: dict[int, list[tuple[int, Link]]] = {}
    wanted = depends.intersection(paths)
    for node in reversed(together.nodes):
        if node in wanted:  # and no condition
            tape.at(tape.spans[node])
            found[node] = list(links(balls, together, node, depends))
            wanted.update(arg for arg, _ in found[node])
    tape.at(None)
    return _Plan(tuple(paths), tuple(column for column in wrt if column in found), tuple(sorted(found)), found)


def _settled(rounding: Rounding, plan: _Plan) -> dict[tuple[int, int], Settled]:
    """The entries of one block that can be settled."""
    sweep = _swept(rounding, plan) if plan.columns else None
    rounding.notice()
    if sweep is None or rounding.leaves(rounding.tape.needed(plan.factors())):
        return {}
    found: dict[tuple[int, int], Settled] = {}
    width = max(1, _MOST_WEIGHTS // (len(plan.nodes) * len(plan.outputs)))
    for start in range(0, len(plan.columns), width):
        columns = plan.columns[start : start + width]
        effects = _Effects(rounding, plan, sweep, columns)
        for row, k in product(np.flatnonzero(~sweep.lost).tolist(), range(len(columns))):
            value, effect = sweep.bars[columns[k]][row], effects.of_entry(row, k)
            if effect is not None and is_accurate(value, ACCURACY):
                found[plan.outputs[row], columns[k]] = Settled(value, effect)
    return found


# ---- the sweep in numbers


def _swept(rounding: Rounding, plan: _Plan) -> _Sweep | None:
    """The reverse sweep of all rows, in numbers that settle all entries if any of those tried do."""
    sweep = None
    for precision, longest in _TRIED:
        values = _values(rounding.balls, plan.factors(), precision)
        if values is None:
            continue
        with ctx.workprec(precision):
            try:
                sweep = _Sweep(plan, values, longest, rounding.precision)
            except (NoValueError, UnsureError):
                continue
        if all(is_accurate(bar, ACCURACY) for column in plan.columns for bar in sweep.bars[column]):
            break
    return sweep


def _values(balls: Balls, nodes: Collection[int], precision: int) -> dict[int, Number] | None:
    """The nodes' values, None where some have none at this precision."""
    point = balls.point(precision)
    point.evaluate(nodes)
    found = {node: point.values[node] for node in nodes}
    return found if all(isinstance(value, Number) for value in found.values()) else None  # type: ignore[return-value]


class _Sweep:
    """The bars of every row as exact numbers, and the rounding of the operations that floats would make them with.

    Attributes:
        bars: of the columns, a number a row.
        doubles: of every node, its bars in doubles.
        factors: the values of what bars are multiplied with or divided by, in doubles.
        noise: by node, how far rounding moves its bar itself: the products and sums that it is made of.
        loudest: by node, the largest part of that, and the node whose derivative is to blame.
        shares: by node, how far rounding moves its bar divided by its divisor.
        lost: the rows with a number beyond the range of the type.
    """

    def __init__(self, plan: _Plan, values: Mapping[int, Number], longest: int, precision: Precision) -> None:
        rows = len(plan.outputs)
        self.longest = longest
        self.precision = precision
        self.values = {node: shortened(value, longest) for node, value in values.items()}
        self.factors = {node: clear(value) for node, value in values.items()}
        self.doubles: dict[int, _Array] = {}
        self.noise: dict[int, _Array] = {}
        self.loudest: dict[int, tuple[_Array, _Array]] = {}
        self.shares: dict[int, _Array] = {}
        self._sums: dict[int, _Array] = {}
        self.lost = np.zeros(rows, bool)
        self.bars: dict[int, list[Number]] = {}
        for row, output in enumerate(plan.outputs):
            self.bars[output] = [_ONE if k == row else _ZERO for k in range(rows)]
            self._sums[output] = np.eye(rows)[row]
        columns = set(plan.columns)
        with np.errstate(all="ignore"):
            for node in reversed(plan.nodes):
                self._pull(node, plan.links[node])
                if node not in columns:
                    self.bars.pop(node, None)

    def _pull(self, node: int, links: Sequence[tuple[int, Link]]) -> None:
        """Hand a node's bars on to its arguments."""
        shares = [shortened(bar, self.longest) for bar in self.bars.get(node, [_ZERO] * len(self.lost))]
        self.bars[node] = shares
        sizes = self.doubles[node] = np.array([clear(bar) for bar in shares])
        self._watch(shares, sizes)
        divisor = links[0][1].divisor if links else None  # the same for all links
        if divisor is not None:
            shares = [_div(bar, self.values[divisor]) for bar in shares]
            sizes = sizes / self.factors[divisor]
            self.shares[node] = self._rounded(shares, sizes)
        for arg, link in links:
            terms, parts = shares, sizes
            if link.factor is not None:
                terms = [_mul(share, self.values[link.factor]) for share in shares]
                parts = sizes * self.factors[link.factor]
                self._note(node, arg, self._rounded(terms, parts) * (abs(sizes) != 1))
            if link.negative:
                terms, parts = [_neg(term) for term in terms], -parts
            self._add(node, arg, terms, parts)

    def _add(self, node: int, arg: int, terms: list[Number], parts: _Array) -> None:
        """Add terms to the bars of an argument."""
        before = self.bars.get(arg)
        if before is None:
            self.bars[arg], self._sums[arg] = terms, parts
            return
        self.bars[arg] = sums = [_add(bar, term) for bar, term in zip(before, terms, strict=True)]
        size = self._sums[arg]
        self._sums[arg] = size + parts
        self._note(node, arg, self._error(sums, size + parts) * ((size != 0) & (parts != 0)))

    def _rounded(self, numbers: Sequence[Number], sizes: _Array) -> _Array:
        """How far rounding moves new numbers."""
        self._watch(numbers, sizes)
        return self._error(numbers, sizes)

    def _error(self, numbers: Sequence[Number], sizes: _Array) -> _Array:
        """How far rounding moves numbers of these sizes: not at all where floats hold them."""
        held = self.precision
        return np.array([0.0 if _is_held(number, held) else held.unit for number in numbers]) * abs(sizes)

    def _watch(self, numbers: Sequence[Number], sizes: _Array) -> None:
        """Note the rows where a number leaves the range of the type."""
        outside = (abs(sizes) > self.precision.largest) | (abs(sizes) < self.precision.normal)
        if outside.any():
            self.lost |= outside & np.array([not ball(number).contains(0) for number in numbers])

    def _note(self, node: int, arg: int, errors: _Array) -> None:
        """Note what rounding adds to the bars of an argument where the derivative of ``node`` is computed."""
        if arg not in self.noise:
            self.noise[arg], self.loudest[arg] = errors, (errors, np.full(len(errors), node))
            return
        loudest, places = self.loudest[arg]
        self.noise[arg] = self.noise[arg] + errors
        self.loudest[arg] = np.maximum(loudest, errors), np.where(errors > loudest, node, places)


def _is_held(number: Number, precision: Precision) -> bool:
    """Whether a float holds the number; of long ones that is not asked."""
    return type(number) is fmpq and number.height_bits() <= _LONG and is_float(number, precision)


_ZERO, _ONE = fmpq(0), fmpq(1)


# ---- what rounding does to the entries


class _Weight(NamedTuple):
    """The derivatives of entries by a node, in doubles, and how far they may be off, in units of rounding."""

    value: _Array
    doubt: _Array

    def times(self, factor: Any) -> _Weight:
        """Times a number, or numbers, rounded: the new doubt holds that of the product, and of a sum it is added to."""
        return _Weight(self.value * factor, (self.doubt + 3 * abs(self.value)) * abs(factor))

    def plus(self, other: _Weight) -> _Weight:
        return _Weight(self.value + other.value, self.doubt + other.doubt)


class _Loudest:
    """For each entry the largest part of its noise, and the node that it comes from."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.parts = np.zeros(shape)
        self.nodes = np.zeros(shape, np.intp)

    def hear(self, parts: _Array, node: Any) -> None:
        """Listen to one more node, or to a node a row."""
        self.nodes = np.where(parts > self.parts, node, self.nodes)
        self.parts = np.maximum(parts, self.parts)

    def at(self, row: int, column: int) -> int | None:
        """The node that one entry's comes from; None where there is no noise."""
        return int(self.nodes[row, column]) if self.parts[row, column] else None


class _Effects:
    """The effect of rounding on the entries of a block, in arrays of shape (rows, columns).

    Attributes:
        inputs: the effect of rounding typed numbers.
        unclear: how far ``inputs`` may be off, in units of rounding.
        operations: the effect of rounding every operation.
        loudest: the operation that moves an entry most.
        coordinates: the same among coordinates, which are to blame only where no operation is.
    """

    def __init__(self, rounding: Rounding, plan: _Plan, sweep: _Sweep, columns: Sequence[int]) -> None:
        shape = len(plan.outputs), len(columns)
        self.rounding, self.plan, self.sweep, self.columns = rounding, plan, sweep, columns
        self.inputs, self.unclear, self.operations = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.loudest, self.coordinates = _Loudest(shape), _Loudest(shape)
        self._weights: dict[int, _Weight] = {}
        with np.errstate(all="ignore"):
            tangents = self._tangents()
            for node in plan.nodes:
                self._seed(node, tangents)
                self._hear_sweep(node, tangents[node])
            self._spread()

    def of_entry(self, row: int, column: int) -> Effect | None:
        """The effect on one entry, None where doubles cannot tell."""
        inputs, operations = float(self.inputs[row, column]), float(self.operations[row, column])
        if not math.isfinite(operations):
            return None
        node = self.columns[column]
        doubt = float(self.unclear[row, column]) * DOUBLE.unit
        if doubt > max(CLEAR * inputs, NEGLIGIBLE * abs(self.sweep.doubles[node][row])):
            nothing = inputs == 0 or max(inputs, doubt) <= _NOTHING * operations
            if not (nothing and is_zero(self.sweep.bars[node][row])):
                return None
            inputs = 0.0  # as far as doubles can tell, and this forgives least
        return Effect(min(inputs, _LARGEST), min(operations, _LARGEST), *self._worst(row, column))

    def _worst(self, row: int, column: int) -> tuple[Span | None, str | None]:
        """The place to blame, and the characters there."""
        node = self.loudest.at(row, column)
        node = self.coordinates.at(row, column) if node is None else node
        tape = self.rounding.tape
        return (None, None) if node is None else (tape.spans[node], tape.source(node))

    def _tangents(self) -> dict[int, _Weight]:
        """The derivatives of every node by the columns."""
        unit = np.eye(len(self.columns))
        nothing = np.zeros(len(unit))
        found = {column: _Weight(unit[k], nothing) for k, column in enumerate(self.columns)}
        for node in self.plan.nodes:
            if node not in found:
                slopes = self.rounding.part(node).slopes
                found[node] = _sum([found[arg].times(slope) for arg, slope in slopes if arg in found], nothing)
        return found

    def _seed(self, node: int, tangents: Mapping[int, _Weight]) -> None:
        """The derivatives of entries by what the bars of a node are multiplied with or divided by."""
        factors, links, shares = self.sweep.factors, self.plan.links[node], self.sweep.doubles[node][:, None]
        if not links:
            return
        divisor = links[0][1].divisor
        if divisor is not None:
            shares = shares / factors[divisor]
        moved = []  # the derivatives by the shares
        for arg, link in links:
            tangent = tangents[arg].times(-1.0) if link.negative else tangents[arg]
            if link.factor is not None:
                self._weigh(link.factor, tangent.times(shares))
                tangent = tangent.times(factors[link.factor])
            moved.append(tangent)
        if divisor is not None:
            total = _sum(moved, moved[0].value * 0)
            self._weigh(divisor, total.times(-shares / factors[divisor]))
            self._hear(self.sweep.shares[node][:, None] * abs(total.value), node)

    def _hear_sweep(self, node: int, tangent: _Weight) -> None:
        """Count the rounding of a node's own bars."""
        noise = self.sweep.noise.get(node)
        if noise is not None:
            size = abs(tangent.value)
            loudest, places = self.sweep.loudest[node]
            self.operations += noise[:, None] * size
            self.loudest.hear(loudest[:, None] * size, places[:, None])

    def _hear(self, parts: _Array, node: int) -> None:
        self.operations += parts
        self.loudest.hear(parts, node)

    def _weigh(self, node: int, weight: _Weight) -> None:
        before = self._weights.get(node)
        self._weights[node] = weight if before is None else before.plus(weight)

    def _spread(self) -> None:
        """Hand the weights on from every node to its arguments, and count what rounding does to each."""
        ops = self.rounding.tape.ops
        for node in reversed(self.rounding.tape.needed(self._weights)):
            weight = self._weights.pop(node, None)
            if weight is None:
                continue
            error, typed, nearby, slopes = self.rounding.part(node)
            for arg, slope in slopes:
                self._weigh(arg, weight.times(slope))
            if error or nearby:
                size = abs(weight.value)
                self.operations += (error + nearby) * size
                (self.coordinates if ops[node].op == "variable" else self.loudest).hear(error * size, node)
            if typed:
                self.inputs += typed * abs(weight.value)
                self.unclear += typed * weight.doubt


def _sum(weights: Sequence[_Weight], nothing: _Array) -> _Weight:
    total = _Weight(nothing, nothing)
    for weight in weights:
        total = total.plus(weight)
    return total
