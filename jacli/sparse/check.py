"""Verdicts for a large system: every entry compared in bulk, the suspicious ones and a sample proved one by one.

The sample is read again by the ordinary parser, one equation alone: a mistake in gathering equations of equal shape
would not survive it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jacli import verify
from jacli.errors import JacliError
from jacli.readings.lowering import Lowered, lower
from jacli.readings.tape import Tape
from jacli.result import STATUSES
from jacli.sparse import bulk
from jacli.sparse.derive import Derived, Entries
from jacli.sparse.family import Floats, Ints, Mask
from jacli.sparse.plan import MOST_OPERATIONS, Part

#: How much is checked: every entry proved, the suspicious ones and a sample, or nothing.
MODES = ("suspect", "all", "none")

#: What an entry is called that nobody looked at.
UNCHECKED = "unchecked"

#: All that an entry can be, and the places in it.
KINDS = (*STATUSES, UNCHECKED)
_AGREE, _UNCHECKED = KINDS.index("agree"), KINDS.index(UNCHECKED)

#: Equations that are proved whether they look suspicious or not.
SAMPLE = 16

#: Different equations that are proved before the rest is left unchecked; ``--check all`` proves every one.
MOST_PROOFS = 2_000


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """What was found out about a list of entries.

    Attributes:
        kinds: for each entry, its place in ``KINDS``.
        exact: by entry, the proved value as a decimal string.
        reasons: by entry, why it is not plain agreement.
        proved: how many entries have a proof.
    """

    kinds: np.ndarray[Any, np.dtype[np.uint8]]
    exact: dict[int, str] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)
    proved: int = 0

    @property
    def left(self) -> int:
        """How many entries were suspicious and not proved."""
        return int((self.kinds == _UNCHECKED).sum())


def unchecked(count: int) -> Verdicts:
    """Nobody looked."""
    return Verdicts(np.full(count, _UNCHECKED, np.uint8))


def check_mode(mode: str) -> str:
    """``mode`` if it is one. Raises JacliError."""
    if mode not in MODES:
        raise JacliError(f"--check is {', '.join(MODES)}, not {mode}", kind="option")
    return mode


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """What the rows of a part add to a list of sums, by the table's formulas.

    Attributes:
        part: the rows.
        slot: the variable that is differentiated by, or None for all of them together.
        rows: the rows that take part, and for each of them:
        places: the sum it adds to;
        values, errors: what it adds, and a bound on the rounding of that;
        doubtful: whether doubles may not be relied on;
        exact: whether nothing was rounded, nor will be in sums that stay small.
    """

    part: Part
    slot: str | None
    rows: Ints
    places: Ints
    values: Floats
    errors: Floats
    doubtful: Mask
    exact: Mask


#: A row of a part, and the slot that is differentiated by.
Term = tuple[Part, int, "str | None"]

#: What else the proof about a row depends on.
Factors = Callable[[Part, int], Sequence[float]]


class Checker:
    """The checks of one derived system."""

    def __init__(self, derived: Derived, tolerance: Any, mode: str) -> None:
        self.derived = derived
        self.system = derived.system
        self.point = derived.point
        self.tolerance = tolerance
        self.mode = mode

    # ---- quantities

    def jacobian(self, entries: Entries) -> Verdicts:
        """The verdicts on ``derived.jacobian()``."""
        alone = self.system.distinct
        return self._verdicts(entries.values, lambda: self._entry_shares(entries), self._prove_slope, alone=alone)

    def vjp(self, values: Floats, weights: Floats, exact: Callable[[Tape, int], int]) -> Verdicts:
        """The verdicts on ``derived.vjp(weights)``; ``exact`` gives an output entry's weight as a node."""

        def prove(terms: Sequence[Term]) -> verify.Proof:
            return self._prove_slope(terms, exact)

        return self._verdicts(
            values, lambda: self._column_shares(weights), prove, lambda part, row: (weights[part.family.rows[row]],)
        )

    def jvp(self, values: Floats, tangent: Floats, exact: Callable[[Tape, int], int]) -> Verdicts:
        """The verdicts on ``derived.jvp(tangent)``; ``exact`` gives a column's step as a node."""

        def prove(terms: Sequence[Term]) -> verify.Proof:
            tape, total, columns = self._sum(terms)
            steps = {node: exact(tape, column) for column, node in columns.items() if column < self.system.columns}
            return verify.prove_directional(tape, total, steps)

        return self._verdicts(values, lambda: self._row_shares(tangent), prove, self._steps(tangent))

    def hvp(self, values: Floats, tangent: Floats, exact: Callable[[Tape, int], int]) -> Verdicts:
        """The verdicts on ``derived.hvp(tangent)``."""

        def prove(terms: Sequence[Term]) -> verify.Proof:
            tape, total, columns = self._sum(terms)
            steps = {node: exact(tape, column) for column, node in columns.items() if column < self.system.columns}
            return verify.prove_hvp(tape, total, [columns[_column(terms[0])]], steps)[0]

        return self._verdicts(values, lambda: self._curvature_shares(tangent), prove, self._steps(tangent))

    def _steps(self, tangent: Floats) -> Factors:
        step = self._padded(tangent)
        return lambda part, row: tuple(float(step[columns[row]]) for columns in part.family.columns.values())

    def _padded(self, tangent: Floats) -> Floats:
        """A tangent with zeros for the variables that are held fixed."""
        return np.concatenate([tangent, np.zeros(len(self.point) - len(tangent))])

    # ---- what the table's formulas say

    def _slopes(self) -> Iterator[tuple[Part, str, bulk.Slope, Ints]]:
        """Derivatives by variables that are columns, with the rows where they are."""
        for part in self.derived.parts:
            for slot, slope in bulk.slopes(part, self.point, self.tolerance).items():
                yield part, slot, slope, np.flatnonzero(part.family.columns[slot] < self.system.columns)

    def _entry_shares(self, entries: Entries) -> Iterator[Share]:
        start, width = 0, self.system.columns
        keys = None if self.system.distinct else entries.rows * width + entries.columns
        for part, slot, slope, rows in self._slopes():
            if keys is None:
                places = np.arange(start, start + len(rows))
            else:
                places = np.searchsorted(keys, part.family.rows[rows] * width + part.family.columns[slot][rows])
            start += len(rows)
            yield _share(part, slot, rows, places, slope)

    def _column_shares(self, weights: Floats) -> Iterator[Share]:
        for part, slot, slope, rows in self._slopes():
            used = rows[weights[part.family.rows[rows]] != 0]
            weight = weights[part.family.rows[used]]
            yield _share(part, slot, used, part.family.columns[slot][used], slope, weight)

    def _row_shares(self, tangent: Floats) -> Iterator[Share]:
        for part, slot, slope, rows in self._slopes():
            used = rows[tangent[part.family.columns[slot][rows]] != 0]
            step = tangent[part.family.columns[slot][used]]
            yield _share(part, None, used, part.family.rows[used], slope, step)

    def _curvature_shares(self, tangent: Floats) -> Iterator[Share]:
        step = self._padded(tangent)
        for part in self.derived.parts:
            for slot, slope in bulk.curvature(part, self.point, step, self.tolerance).items():
                rows = np.flatnonzero(part.family.columns[slot] < self.system.columns)
                yield _share(part, slot, rows, part.family.columns[slot][rows], slope)

    # ---- comparing

    def _verdicts(
        self,
        values: Floats,
        shares: Callable[[], Iterator[Share]],
        prove: Callable[[Sequence[Term]], verify.Proof],
        factors: Factors = lambda part, row: (),
        *,
        alone: bool = False,
    ) -> Verdicts:
        if self.mode == "none":
            return unchecked(len(values))
        if self.mode == "all":
            wanted = np.arange(len(values))
            verdicts = unchecked(len(values))
        else:
            suspicious = self._suspicious(values, shares(), alone=alone)
            verdicts = Verdicts(np.where(suspicious, _UNCHECKED, _AGREE).astype(np.uint8))
            wanted = np.flatnonzero(suspicious)
        sample = _sample(len(values))
        return self._proved(values, verdicts, [*sample, *wanted.tolist()], shares, prove, factors)

    def _doubtful(self, values: Floats, shares: Iterator[Share]) -> Mask:
        """``_suspicious`` where every value is one share, in order."""
        result = np.zeros(len(values), bool)
        start = 0
        for share in shares:
            here = slice(start, start + len(share.rows))
            allowed = self.tolerance.rtol * np.abs(share.values) + self.tolerance.atol
            result[here] = share.doubtful | ~(np.abs(values[here] - share.values) <= allowed / 2)
            start = here.stop
        return result

    def _suspicious(self, values: Floats, shares: Iterator[Share], *, alone: bool) -> Mask:
        """Where the readings differ, or where doubles cannot be relied on."""
        count = len(values)
        if alone:
            return self._doubtful(values, shares)
        total, size, error, doubtful, rounded = (np.zeros(count) for _ in range(5))
        for share in shares:
            total += np.bincount(share.places, share.values, minlength=count)
            size += np.bincount(share.places, np.abs(share.values), minlength=count)
            error += np.bincount(share.places, share.errors, minlength=count)
            doubtful += np.bincount(share.places, share.doubtful, minlength=count)
            rounded += np.bincount(share.places, ~share.exact, minlength=count)
        allowed = self.tolerance.rtol * np.abs(total) + self.tolerance.atol
        exact = (rounded == 0) & (size < 2.0**32)
        sure = error + np.where(exact, 0.0, size * 2.0**-51) <= allowed / 4
        suspicious: Mask = (doubtful > 0) | ~sure | ~(np.abs(values - total) <= allowed / 2)
        return suspicious

    # ---- proving

    def _proved(
        self,
        values: Floats,
        verdicts: Verdicts,
        wanted: Sequence[int],
        shares: Callable[[], Iterator[Share]],
        prove: Callable[[Sequence[Term]], verify.Proof],
        factors: Factors,
    ) -> Verdicts:
        terms = self._terms(set(wanted), len(values), shares())
        known: dict[object, verify.Proof] = {}
        proved = 0
        for place in dict.fromkeys(wanted):
            key = self._key(terms[place], factors)
            if key not in known:
                if len(known) >= MOST_PROOFS and self.mode != "all":
                    continue
                known[key] = prove(terms[place]) if terms[place] else verify.Proof("smooth", "0")
            proof = known[key]
            status, reason, _ = verify.judge(float(values[place]), proof, self.tolerance.rtol, self.tolerance.atol)
            verdicts.kinds[place] = KINDS.index(status)
            proved += 1
            if proof.exact is not None:
                verdicts.exact[place] = proof.exact
            if reason is not None:
                verdicts.reasons[place] = reason
        return replace(verdicts, proved=proved)

    def _terms(self, wanted: set[int], count: int, shares: Iterator[Share]) -> dict[int, list[Term]]:
        """The rows that add to each of the wanted sums."""
        terms: dict[int, list[Term]] = {place: [] for place in wanted}
        chosen = np.zeros(count, bool)
        chosen[list(wanted)] = True
        for share in shares:
            for k in np.flatnonzero(chosen[share.places]).tolist():
                term = (share.part, int(share.rows[k]), share.slot)
                if share.slot is not None or term not in terms[int(share.places[k])]:
                    terms[int(share.places[k])].append(term)
        return terms

    def _key(self, terms: Sequence[Term], factors: Factors) -> object:
        """What a proof depends on: equal formulas at equal numbers have equal derivatives."""
        return tuple(
            (id(part.family.formula), slot, *self._numbers(part, row), *factors(part, row)) for part, row, slot in terms
        )

    def _numbers(self, part: Part, row: int) -> Iterator[float]:
        for columns in part.family.columns.values():
            yield float(self.point[columns[row]])
        for numbers in part.family.numbers.values():
            yield float(numbers.doubles[row])

    def _sum(
        self, terms: Sequence[Term], weight: Callable[[Tape, int], int] | None = None
    ) -> tuple[Tape, int, dict[int, int]]:
        """The sum of some rows on a tape of its own, each row read alone, and the nodes of its variables by entry."""
        tape, total = Tape(self.system.text), None
        columns: dict[int, int] = {}
        for part, row in dict.fromkeys((part, row) for part, row, _ in terms):
            lowered = lower_row(part, row)
            node = copied(tape, lowered.tape, lowered.outputs[0][0])
            if weight is not None:
                node = tape.add("mul", weight(tape, int(part.family.rows[row])), node)
            total = node if total is None else tape.add("add", total, node)
            for name in lowered.variables:
                columns[self.system.space.entry(name)] = tape.add("variable", value=name)
        for column, variable in columns.items():
            self.system.space.bind(tape, variable, column)
        if total is None:
            total = tape.number(0)
        verify.refuse_absurd(tape, [total])
        return tape, total, columns

    def _prove_slope(self, terms: Sequence[Term], weight: Callable[[Tape, int], int] | None = None) -> verify.Proof:
        """The derivative of a sum of rows by the variable that they share."""
        tape, total, columns = self._sum(terms, weight)
        column = _column(terms[0])
        if column not in columns:  # the equation read alone does not have it
            return verify.Proof("smooth", "0")
        return verify.prove_gradient(tape, total, [columns[column]])[0]


def _sample(count: int) -> list[int]:
    """A few places, the same every time."""
    chosen: list[int] = np.random.default_rng(0).permutation(count)[:SAMPLE].tolist()
    return chosen


def _share(
    part: Part, slot: str | None, rows: Ints, places: Ints, slope: bulk.Slope, factor: Floats | None = None
) -> Share:
    """What some rows of a slope add, each times its factor."""
    values, errors, doubtful = slope.values[rows], slope.errors[rows], slope.doubtful[rows]
    exact = (errors == 0) & bulk.dyadic(values)
    if factor is None:
        return Share(part, slot, rows, places, values, errors, doubtful, exact)
    exact &= bulk.dyadic(factor)
    return Share(part, slot, rows, places, values * factor, errors * np.abs(factor), doubtful, exact)


def _column(term: Term) -> int:
    part, row, slot = term
    if slot is None:
        raise AssertionError("a row's directional derivative has no single variable")
    return int(part.family.columns[slot][row])


def lower_row(part: Part, row: int) -> Lowered:
    """One row of a family in single operations, from its own text."""
    program = part.family.source(row)
    return lower(program, dict.fromkeys(program.variables, ()), MOST_OPERATIONS)


def copied(tape: Tape, other: Tape, root: int) -> int:
    """A node of another tape, with all it needs, on this one."""
    nodes: dict[int, int] = {}
    for node in other.needed([root]):
        op, args, value = other.ops[node]
        nodes[node] = tape.add(op, *(nodes[arg] for arg in args), value=value)
    return nodes[root]
