"""Verdicts for a program differentiated as a whole.

Every entry is computed a second time by ``jacli.mirror``, which shares no rule with autograd, and a third time in the
mirror's second gait, which shows where digits are lost. What reaches a switching point, what differs, and a seeded
sample are proved, each from the single numbers behind its own output entry, as far as these are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from jacli import verify
from jacli.language.points import Data
from jacli.language.shapes import infer
from jacli.mirror import Mirror, NoRule
from jacli.mirror import sure as agreeing
from jacli.readings import floats
from jacli.readings.cone import Cone
from jacli.readings.lowering import TooLarge
from jacli.readings.tape import Tape
from jacli.sparse.check import KINDS, MOST_PROOFS, Verdicts, sample, unchecked
from jacli.sparse.coloured import Coloured, Products, by_node
from jacli.sparse.derive import Entries
from jacli.sparse.family import Floats, Ints, Mask
from jacli.sparse.wires import without_value

_AGREE, _UNCHECKED = KINDS.index("agree"), KINDS.index("unchecked")

#: Most operations behind one entry that is proved.
MOST_BEHIND_ONE = 20_000

#: Most output entries that are added up in a product's entry that is proved.
MOST_ADDED = 200

#: Most operations behind all that is proved, unless every entry is.
MOST_BEHIND = 500_000

#: What a proof costs that could not be decided, in operations.
UNDECIDED = 10_000

#: Rows of random numbers along which all columns are compared, and their seed.
PROBES, SEED = 2, 20

#: The proofs about some entries by their places; those missing have too much behind them.
Proofs = Mapping[int, verify.Proof]


class Comparer:
    """The checks of one program."""

    def __init__(self, products: Products, tolerance: Any, mode: str) -> None:
        self.products = products
        self.system: Coloured = products.system
        self.tolerance = tolerance
        self.mode = mode
        self._left = MOST_BEHIND

    @cached_property
    def mirror(self) -> Mirror:
        """The second reading."""
        return Mirror(self.system.bound.program, self.system.tensors())

    @cached_property
    def switching(self) -> dict[int, Mask]:
        """The entries at a switching point, by node, flat."""
        return by_node(self.system, self.mirror.switching())

    @cached_property
    def without(self) -> Mask:
        """The rows that are made of an entry without a value."""
        bound, valueless = self.system.bound, by_node(self.system, self.mirror.valueless())
        return without_value(bound.program, bound.shapes, tuple(bound.values), valueless)

    # ---- quantities

    def jacobian(self, entries: Entries) -> Verdicts:
        """The verdicts on ``products.jacobian()``. Entries that whole arrays spoilt are replaced: see ``_settled``."""
        if self.mode == "none":
            return unchecked(len(entries))

        def reading(gait: Mirror) -> Floats:
            return self.products.read_off(self._rows_added(gait), self._columns_added(gait))

        doubtful = self._uncertain(entries) if self.switching else np.zeros(len(entries), bool)
        sure = self._sure(entries.values, reading) & ~doubtful
        sure &= ~self._missummed(entries, sure)[entries.columns]
        return self._verdicts(entries.values, sure, lambda wanted: self._slopes(entries, wanted))

    def vjp(self, values: Floats, weights: Floats, exact: Callable[[Tape, int], int]) -> Verdicts:
        """The verdicts on ``products.vjp(weights)``; ``exact`` gives an output entry's weight as a node."""
        prove = partial(self._sums, weights, exact)
        return self._product(values, lambda gait: self._vjp(gait, weights), lambda: self._deciding(weights), prove)

    def jvp(self, values: Floats, tangent: Floats, exact: Callable[[Tape, int], int]) -> Verdicts:
        """The verdicts on ``products.jvp(tangent)``; ``exact`` gives a column's step as a node."""
        prove = partial(self._directions, exact)
        return self._product(values, lambda gait: self._jvp(gait, tangent), lambda: self._decided(tangent), prove)

    def _product(
        self,
        values: Floats,
        reading: Callable[[Mirror], Floats],
        doubtful: Callable[[], Mask],
        prove: Callable[[Sequence[int]], Proofs],
    ) -> Verdicts:
        """The verdicts on a product with a vector, read again in both gaits."""
        if self.mode == "none":
            return unchecked(len(values))
        sure = self._sure(values, reading) & ~doubtful()
        return self._verdicts(values, sure, prove)

    def hvp(self, values: Floats, tangent: Floats, exact: Callable[[Tape, int], int]) -> Verdicts:  # noqa: ARG002
        """Second derivatives have no second reading: nobody looks."""
        return unchecked(len(values))

    # ---- the second reading

    def _vjp(self, reading: Mirror, weights: Floats) -> Floats:
        t = floats.torch()
        found = reading.vjp(self.system.cotangents(t.from_numpy(weights)))
        parts = [found[name].reshape(-1) for name in self.system.bound.chosen]
        numbers: Floats = t.cat(parts).numpy()
        return numbers

    def _jvp(self, reading: Mirror, tangent: Floats) -> Floats:
        t = floats.torch()
        found = reading.jvp(self.system.tangents(t.from_numpy(tangent)))
        shapes = (self.system.bound.shapes[node] for node in self.system.bound.program.outputs)
        numbers: Floats = t.cat([part.expand(s).reshape(-1) for part, s in zip(found, shapes, strict=True)]).numpy()
        return numbers

    def _rows_added(self, reading: Mirror) -> Callable[[Ints], Floats]:
        return lambda rows: self._vjp(reading, _indicator(rows, self.system.rows))

    def _columns_added(self, reading: Mirror) -> Callable[[Ints], Floats]:
        return lambda columns: self._jvp(reading, _indicator(columns, self.system.columns))

    def _sure(self, values: Floats, reading: Callable[[Mirror], Floats]) -> Mask:
        """Where both readings agree and no digits are lost; nowhere, when the mirror has no rule for the program."""
        try:
            first, second = reading(self.mirror), reading(self.mirror.second)
        except NoRule:
            return np.zeros(len(values), bool)
        with np.errstate(all="ignore"):
            found: Mask = agreeing(values, first, second, self.tolerance.rtol, self.tolerance.atol)
        return found

    def _missummed(self, entries: Entries, sure: Mask) -> Mask:
        """The columns whose sums along random weights are not those of the mirror, shape (columns,).

        A pattern that misses an entry, and colours that mix two, spoil both readings in the same way; this they spoil
        in different ways. Rows with an entry that is not sure anyway take no part.

        Raises:
            AssertionError: the pattern has nothing in a column that is not zero.
        """
        generator = np.random.default_rng(SEED)
        taken = np.ones(self.system.rows, bool)
        taken[entries.rows[~sure]] = False
        wrong = np.zeros(self.system.columns, bool)
        with np.errstate(all="ignore"):
            for _ in range(PROBES):
                row = taken * generator.uniform(1, 2, self.system.rows)
                row *= generator.choice((-1.0, 1.0), self.system.rows)
                try:
                    true = self._vjp(self.mirror, row)
                except NoRule:
                    return wrong
                shares = entries.values * row[entries.rows]
                total, size = (np.bincount(entries.columns, s, self.system.columns) for s in (shares, np.abs(shares)))
                wrong |= np.abs(total - true) > self.tolerance.rtol * size + self.tolerance.atol
        missed = np.flatnonzero(wrong & (np.bincount(entries.columns, minlength=self.system.columns) == 0))
        if len(missed):
            raise AssertionError(f"the pattern misses {self.system.space.name(int(missed[0]))}")
        return wrong

    # ---- what a switching point decides about

    def _uncertain(self, entries: Entries) -> Mask:
        """The entries whose row and whose column reach a switching point that is not the same for every point.

        And those of rows without a value.
        """
        wiring = self.system.wiring
        varies = wiring.pushed(self._columns(np.ones(self.system.columns, bool)))
        marks = {node: mask & varies[node] for node, mask in self.switching.items()}
        rows, columns = wiring.of_outputs(wiring.pushed(marks)), self._columns_of(wiring.pulled(marks))
        found: Mask = (rows[entries.rows] & columns[entries.columns]) | self.without[entries.rows]
        return found

    def _deciding(self, weights: Floats) -> Mask:
        """The columns that decide about a switching point on the way to outputs with a weight, or without a value."""
        if not self.switching:
            return np.zeros(self.system.columns, bool)
        wiring = self.system.wiring
        turning = wiring.deciding(self.switching, wiring.at_outputs(weights != 0))
        spoilt = wiring.pulled(wiring.at_outputs((weights != 0) & self.without))
        return self._columns_of(turning) | self._columns_of(spoilt)

    def _decided(self, tangent: Floats) -> Mask:
        """The rows that a switching point decides about which the tangent moves, and those without a value."""
        if not self.switching:
            return np.zeros(self.system.rows, bool)
        wiring = self.system.wiring
        return wiring.of_outputs(wiring.decided(self.switching, self._columns(tangent != 0))) | self.without

    def _columns(self, flat: Any) -> dict[int, Any]:
        """One number a column by the nodes of variables, of those that the outputs need."""
        order = set(self.system.wiring.order)
        return {node: part for node, part in self.system.split(flat).items() if node in order}

    def _columns_of(self, marks: Mapping[int, Mask]) -> Mask:
        found = np.zeros(self.system.columns, bool)
        for node, places in self._columns(np.arange(self.system.columns)).items():
            found[places] = marks[node]
        return found

    # ---- proofs

    def _verdicts(self, values: Floats, sure: Mask, prove: Callable[[Sequence[int]], Proofs]) -> Verdicts:
        """``values`` judged; those that the whole arrays spoilt are replaced in place."""
        verdicts = Verdicts(np.where(sure, _AGREE, _UNCHECKED).astype(np.uint8))
        wanted = np.arange(len(values)) if self.mode == "all" else np.flatnonzero(~sure)
        proofs = prove(list(dict.fromkeys([*sample(len(values)), *wanted.tolist()])))
        for place, proof in proofs.items():
            status, reason = verify.judge(float(values[place]), proof, self.tolerance.rtol, self.tolerance.atol)
            verdicts.kinds[place] = KINDS.index(status)
            if proof.exact is not None:
                verdicts.exact[place] = proof.exact
            if reason is not None:
                verdicts.reasons[place] = reason
        return replace(verdicts, proved=len(proofs))

    def _slopes(self, entries: Entries, wanted: Iterable[int]) -> Proofs:
        """Entries of the Jacobian, row by row."""
        by_row: dict[int, list[int]] = {}
        for place in wanted:
            by_row.setdefault(int(entries.rows[place]), []).append(place)
        found: dict[int, verify.Proof] = {}
        for row, places in self._within(by_row):
            written = self._written({row: None})
            if written is None:
                continue
            tape, node, columns = written
            self._check_pattern(row, tape, node, columns)
            known = [place for place in places if int(entries.columns[place]) in columns]
            nodes = [columns[int(entries.columns[place])] for place in known]
            found |= dict.fromkeys(places, verify.Proof("smooth", "0"))
            found |= dict(zip(known, verify.prove_gradient(tape, node, nodes), strict=True))
            self._spend(found[place] for place in known)
            self._settle(entries, {k: columns[int(entries.columns[k])] for k in known}, found, tape, node)
        return found

    def _sums(self, weights: Floats, exact: Callable[[Tape, int], int], wanted: Iterable[int]) -> Proofs:
        """Entries of ``weights · J``: the outputs that depend on one column, weighted and added up."""
        found: dict[int, verify.Proof] = {}
        for column, places in self._within({place: [place] for place in wanted}):
            rows = np.flatnonzero(self._dependents(column) & (weights != 0))
            written = self._written(dict.fromkeys(rows.tolist(), exact)) if len(rows) <= MOST_ADDED else None
            if written is None:
                continue
            tape, node, columns = written
            proof = verify.Proof("smooth", "0")
            if column in columns:
                (proof,) = verify.prove_gradient(tape, node, [columns[column]])
            self._spend([proof])
            found |= dict.fromkeys(places, proof)
        return found

    def _directions(self, exact: Callable[[Tape, int], int], wanted: Iterable[int]) -> Proofs:
        """Entries of ``J · tangent``."""
        found: dict[int, verify.Proof] = {}
        for row, places in self._within({place: [place] for place in wanted}):
            written = self._written({row: None})
            if written is not None:
                tape, node, columns = written
                direction = {variable: exact(tape, column) for column, variable in columns.items()}
                proof = verify.prove_directional(tape, node, direction)
                self._spend([proof])
                found |= dict.fromkeys(places, proof)
        return found

    def _within(self, groups: Mapping[int, list[int]]) -> Iterable[tuple[int, list[int]]]:
        """The groups, as long as the budget lasts."""
        for count, (key, places) in enumerate(groups.items()):
            if self.mode != "all" and (count >= MOST_PROOFS or self._left <= 0):
                return
            yield key, places

    def _spend(self, proofs: Iterable[verify.Proof]) -> None:
        """What could not be decided took more digits than anything else."""
        self._left -= UNDECIDED * sum(proof.kind == "undecided" for proof in proofs)

    def _dependents(self, column: int) -> Mask:
        """The rows that a column can have a part in."""
        return self.system.wiring.of_outputs(
            self.system.wiring.pushed(self._columns(np.arange(self.system.columns) == column))
        )

    def _written(
        self, rows: Mapping[int, Callable[[Tape, int], int] | None]
    ) -> tuple[Tape, int, dict[int, int]] | None:
        """Some output entries, weighted, as a sum on a tape of its own; and the nodes of its variables by column.

        None where too much stands behind them.
        """
        tape = Tape(self.system.text)
        total: int | None = None
        try:
            found = self._cone.entries([self._output(row) for row in rows], tape)
            for (row, weight), node in zip(rows.items(), found, strict=True):
                term = node if weight is None else tape.add("mul", weight(tape, row), node)
                total = term if total is None else tape.add("add", total, term)
        except TooLarge:
            self._left -= MOST_BEHIND_ONE // 20
            return None
        total = tape.number(0) if total is None else total
        verify.refuse_absurd(tape, [total])
        needed = tape.needed([total])
        self._left -= len(needed)
        entries = {self.system.space.entry(tape.ops[n].value): n for n in needed if tape.ops[n].op == "variable"}
        return tape, total, {entry: node for entry, node in entries.items() if entry < self.system.columns}

    @cached_property
    def _cone(self) -> Cone:
        return Cone(self.system.bound.program, self.system.bound.shapes, self._leaf, MOST_BEHIND_ONE)

    @cached_property
    def _constants(self) -> dict[str, Cone]:
        """The values that were typed as expressions."""
        values = self.system.bound.values.items()
        return {
            name: Cone(value, infer(value, {}), self._leaf, MOST_BEHIND_ONE)
            for name, value in values
            if not isinstance(value, Data)
        }

    def _output(self, row: int) -> tuple[int, int]:
        """The node and the place in it of an output entry."""
        for node in self.system.bound.program.outputs:
            size = self.system.wiring.size(node)
            if row < size:
                return node, row
            row -= size
        raise IndexError(row)

    def _leaf(self, tape: Tape, name: str, place: int) -> int:
        """A variable bound to its exact value; a zero that is held fixed is the number."""
        bound, space = self.system.bound, self.system.space
        value = bound.values[name]
        if isinstance(value, Data):
            node = tape.number(Fraction(value.numbers[place]))
        else:
            (node,) = self._constants[name].entries([(value.outputs[0], place)], tape)
        if name not in bound.chosen and tape.ops[node].op == "number" and tape.ops[node].value == 0:
            return node
        variable = tape.add("variable", value=space.name(int(space.starts[space.position[name]]) + place))
        tape.bound[variable] = node
        return variable

    def _check_pattern(self, row: int, tape: Tape, node: int, columns: Mapping[int, int]) -> None:
        """Raises AssertionError where an output entry, read alone, has a slope that the pattern misses.

        The pattern may know of more zeros: what stands alone is not multiplied out.
        """
        rows, found = self.system.places
        start, stop = np.searchsorted(rows, [row, row + 1])
        others = sorted(columns.keys() - set(found[start:stop].tolist()))
        slopes = verify.prove_gradient(tape, node, [columns[column] for column in others]) if others else []
        missed = [column for column, slope in zip(others, slopes, strict=True) if slope.exact not in (None, "0")]
        if missed:
            raise AssertionError(f"the pattern misses {self.system.space.name(missed[0])} in row {row}")

    def _settle(self, entries: Entries, variables: Mapping[int, int], proofs: Proofs, tape: Tape, node: int) -> None:
        """Compute entries again, in single numbers, where whole arrays gave nan for a finite truth.

        An array operation multiplies a zero cotangent with every entry's derivative, and zero times infinity is nan.
        """
        spoilt = [
            place for place in variables if not np.isfinite(entries.values[place]) and proofs[place].exact is not None
        ]
        if not spoilt:
            return
        t = floats.torch()
        tensors = {
            op.value: t.tensor(self.system.space.doubles[self.system.space.entry(op.value)], dtype=t.float64)
            for op in tape.ops
            if op.op == "variable"
        }
        leaves = [tensors[tape.ops[variables[place]].value].requires_grad_() for place in spoilt]
        value = floats.evaluate(tape.ops, [node], tensors)[node]
        for place, slope in zip(spoilt, floats.gradient(value, leaves), strict=True):
            entries.values[place] = float(slope)


def _indicator(places: Ints, size: int) -> Floats:
    """Ones at some places, zeros elsewhere."""
    found = np.zeros(size)
    found[places] = 1.0
    return found
