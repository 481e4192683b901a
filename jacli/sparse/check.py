"""Verdicts for a large system: every entry compared in bulk, the suspicious ones and a sample proved one by one.

The sample is read again by the ordinary parser, one equation alone: a mistake in gathering equations of equal shape
would not survive it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
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
class Spots:
    """Where the rows of a part add to a list of sums.

    Attributes:
        part: the rows.
        slot: the variable that is differentiated by.
        rows: the rows that take part, and for each of them:
        places: the sum it adds to, and
        factors: what its derivative is multiplied by; ones where None.
    """

    part: Part
    slot: str
    rows: Ints
    places: Ints
    factors: Floats | None = None


#: A row of a part, and the slot that is differentiated by (None: all of them at once, along a direction).
Term = tuple[Part, int, "str | None"]

#: What else the proof about a row depends on.
Factors = Callable[[Part, int], Sequence[float]]


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A list of numbers to judge, each a sum of what some rows add.

    Attributes:
        values: the numbers, by autograd.
        spots: where rows add to them.
        slopes: what they add, by the table's formulas.
        prove: the truth about one sum.
        factors: what the proof about a row depends on beside its own numbers.
        alone: every number is one row's, in the order of the spots.
        along: derivatives are along a direction, all slots of a row at once.
    """

    values: Floats
    spots: Callable[[], Iterator[Spots]]
    slopes: Callable[[Part], dict[str, bulk.Slope]]
    prove: Callable[[Sequence[Term]], verify.Proof]
    factors: Factors = lambda part, row: ()
    alone: bool = False
    along: bool = False

    def shares(self) -> Iterator[tuple[Spots, Floats, Floats, Mask, Mask]]:
        """What the rows add, with bounds on the rounding, which are doubtful, and which are free of any rounding."""
        part, slopes = None, {}
        for spots in self.spots():
            if spots.part is not part:
                part, slopes = spots.part, self.slopes(spots.part)
            slope, rows = slopes[spots.slot], spots.rows
            values, errors, doubtful = slope.values[rows], slope.errors[rows], slope.doubtful[rows]
            exact = (errors == 0) & bulk.dyadic(values)
            if spots.factors is not None:
                exact &= bulk.dyadic(spots.factors)
                values, errors = values * spots.factors, errors * np.abs(spots.factors)
            yield spots, values, errors, doubtful, exact


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
        spots = partial(self._entry_spots, entries)
        alone = self.system.distinct
        return self._verdicts(Question(entries.values, spots, self._slopes, self._prove_slope, alone=alone))

    def vjp(self, values: Floats, weights: Floats, exact: Callable[[Tape, int], int]) -> Verdicts:
        """The verdicts on ``derived.vjp(weights)``; ``exact`` gives an output entry's weight as a node."""

        def prove(terms: Sequence[Term]) -> verify.Proof:
            return self._prove_slope(terms, exact)

        def factors(part: Part, row: int) -> tuple[float]:
            return (float(weights[part.family.rows[row]]),)

        return self._verdicts(Question(values, partial(self._column_spots, weights), self._slopes, prove, factors))

    def jvp(self, values: Floats, tangent: Floats, exact: Callable[[Tape, int], int]) -> Verdicts:
        """The verdicts on ``derived.jvp(tangent)``; ``exact`` gives a column's step as a node."""

        def prove(terms: Sequence[Term]) -> verify.Proof:
            tape, total, columns = self._sum(terms)
            return verify.prove_directional(tape, total, self._direction(tape, columns, exact))

        spots = partial(self._row_spots, tangent)
        return self._verdicts(Question(values, spots, self._slopes, prove, self._steps(tangent), along=True))

    def hvp(self, values: Floats, tangent: Floats, exact: Callable[[Tape, int], int]) -> Verdicts:
        """The verdicts on ``derived.hvp(tangent)``."""
        step = self._padded(tangent)

        def prove(terms: Sequence[Term]) -> verify.Proof:
            tape, total, columns = self._sum(terms)
            direction = self._direction(tape, columns, exact)
            return verify.prove_hvp(tape, total, [columns[_column(terms[0])]], direction)[0]

        def slopes(part: Part) -> dict[str, bulk.Slope]:
            return bulk.curvature(part, self.point, step, self.tolerance)

        return self._verdicts(Question(values, partial(self._column_spots, None), slopes, prove, self._steps(tangent)))

    def _slopes(self, part: Part) -> dict[str, bulk.Slope]:
        return bulk.slopes(part, self.point, self.tolerance)

    def _direction(self, tape: Tape, columns: Mapping[int, int], exact: Callable[[Tape, int], int]) -> dict[int, int]:
        return {node: exact(tape, column) for column, node in columns.items() if column < self.system.columns}

    def _steps(self, tangent: Floats) -> Factors:
        step = self._padded(tangent)
        return lambda part, row: tuple(float(step[columns[row]]) for columns in part.family.columns.values())

    def _padded(self, tangent: Floats) -> Floats:
        """A tangent with zeros for the variables that are held fixed."""
        return np.concatenate([tangent, np.zeros(len(self.point) - len(tangent))])

    # ---- where rows add

    def _free(self) -> Iterator[tuple[Part, str, Ints, Ints]]:
        """Slots with the rows where they are columns, and those columns."""
        for part in self.derived.parts:
            for slot, columns in part.family.columns.items():
                rows = np.flatnonzero(columns < self.system.columns)
                yield part, slot, rows, columns[rows]

    def _entry_spots(self, entries: Entries) -> Iterator[Spots]:
        start, width = 0, self.system.columns
        keys = None if self.system.distinct else entries.rows * width + entries.columns
        for part, slot, rows, columns in self._free():
            if keys is None:
                places = np.arange(start, start + len(rows))
            else:
                places = np.searchsorted(keys, part.family.rows[rows] * width + columns)
            start += len(rows)
            yield Spots(part, slot, rows, places)

    def _column_spots(self, weights: Floats | None) -> Iterator[Spots]:
        for part, slot, rows, columns in self._free():
            if weights is None:
                yield Spots(part, slot, rows, columns)
                continue
            factors = weights[part.family.rows[rows]]
            used = factors != 0
            yield Spots(part, slot, rows[used], columns[used], factors[used])

    def _row_spots(self, tangent: Floats) -> Iterator[Spots]:
        for part, slot, rows, columns in self._free():
            used = tangent[columns] != 0
            yield Spots(part, slot, rows[used], part.family.rows[rows[used]], tangent[columns[used]])

    # ---- comparing

    def _verdicts(self, question: Question) -> Verdicts:
        count = len(question.values)
        if self.mode == "none":
            return unchecked(count)
        if self.mode == "all":
            verdicts, wanted = unchecked(count), np.arange(count)
        else:
            with np.errstate(all="ignore"):  # infinities meet
                suspicious = self._alone(question) if question.alone else self._suspicious(question)
            verdicts = Verdicts(np.where(suspicious, _UNCHECKED, _AGREE).astype(np.uint8))
            wanted = np.flatnonzero(suspicious)
        found = self._proved(question, verdicts, [*sample(count), *wanted.tolist()])
        if not self.system.distinct:
            self._spread(question, found)
        return found

    def _spread(self, question: Question, verdicts: Verdicts) -> None:
        """A sum with a term that has no value has none, and no derivative by the variables of its other terms."""
        odd = verdicts.kinds == KINDS.index("undefined")
        doubtful = ~np.isfinite(self.derived.values())
        for spots in question.spots():
            doubtful[spots.part.family.rows[spots.rows[odd[spots.places]]]] = True
        for part in self.derived.parts if question.along else ():  # a direction may not move what has no value
            for slope in question.slopes(part).values():
                doubtful[part.family.rows[slope.doubtful]] = True
        outputs = np.flatnonzero(doubtful)
        proved = outputs if self.mode == "all" else outputs[:MOST_PROOFS]
        values = {output: self._value_of(output) for output in proved.tolist()}
        for spots in question.spots():
            for place, _ in _pairs(spots, outputs[len(proved) :]):
                verdicts.kinds[place] = _UNCHECKED
            for place, output in _pairs(spots, [output for output, value in values.items() if value.kind != "smooth"]):
                status, reason = verify.judge(float(question.values[place]), values[output])
                verdicts.kinds[place] = KINDS.index(status)
                verdicts.exact.pop(place, None)
                verdicts.reasons.setdefault(place, reason or status)

    def _value_of(self, output: int) -> verify.Proof:
        """The truth about the value of an output."""
        parts = ((part, np.flatnonzero(part.family.rows == output)) for part in self.derived.parts)
        tape, total, _ = self._sum([(part, row, None) for part, rows in parts for row in rows.tolist()])
        return verify.prove_value(tape, total)

    def _alone(self, question: Question) -> Mask:
        """``_suspicious`` where every value is one row's, in order."""
        result = np.zeros(len(question.values), bool)
        start = 0
        for spots, values, _, doubtful, _ in question.shares():
            here = slice(start, start + len(spots.rows))
            allowed = self.tolerance.rtol * np.abs(values) + self.tolerance.atol
            result[here] = doubtful | ~(np.abs(question.values[here] - values) <= allowed / 2)
            start = here.stop
        return result

    def _suspicious(self, question: Question) -> Mask:
        """Where the readings differ, or where doubles cannot be relied on."""
        count = len(question.values)
        total, size, error, doubt, rounded = (np.zeros(count) for _ in range(5))
        for spots, values, errors, doubtful, exact in question.shares():
            total += np.bincount(spots.places, values, minlength=count)
            size += np.bincount(spots.places, np.abs(values), minlength=count)
            error += np.bincount(spots.places, errors, minlength=count)
            doubt += np.bincount(spots.places, doubtful, minlength=count)
            rounded += np.bincount(spots.places, ~exact, minlength=count)
        allowed = self.tolerance.rtol * np.abs(total) + self.tolerance.atol
        exactly = (rounded == 0) & (size < 2.0**32)
        sure = error + np.where(exactly, 0.0, size * 2.0**-51) <= allowed / 4
        suspicious: Mask = (doubt > 0) | ~sure | ~(np.abs(question.values - total) <= allowed / 2)
        return suspicious

    # ---- proving

    def _proved(self, question: Question, verdicts: Verdicts, wanted: Sequence[int]) -> Verdicts:
        terms = self._terms(question, set(wanted))
        known: dict[object, verify.Proof] = {}
        proved = 0
        for place in dict.fromkeys(wanted):
            key = self._key(terms[place], question.factors)
            if key not in known:
                if len(known) >= MOST_PROOFS and self.mode != "all":
                    continue
                known[key] = question.prove(terms[place]) if terms[place] else verify.Proof("smooth", "0")
            proof, value = known[key], float(question.values[place])
            status, reason = verify.judge(value, proof, self.tolerance.rtol, self.tolerance.atol)
            verdicts.kinds[place] = KINDS.index(status)
            proved += 1
            if proof.exact is not None:
                verdicts.exact[place] = proof.exact
            if reason is not None:
                verdicts.reasons[place] = reason
        return replace(verdicts, proved=proved)

    def _terms(self, question: Question, wanted: set[int]) -> dict[int, list[Term]]:
        """The rows that add to each of the wanted sums."""
        terms: dict[int, dict[Term, None]] = {place: {} for place in wanted}
        chosen = np.zeros(len(question.values), bool)
        chosen[list(wanted)] = True
        for spots in question.spots():
            slot = None if question.along else spots.slot
            for k in np.flatnonzero(chosen[spots.places]).tolist():
                terms[int(spots.places[k])][spots.part, int(spots.rows[k]), slot] = None
        return {place: list(found) for place, found in terms.items()}

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


def sample(count: int) -> list[int]:
    """A few places, the same every time."""
    chosen: list[int] = np.random.default_rng(0).permutation(count)[:SAMPLE].tolist()
    return chosen


def _pairs(spots: Spots, outputs: Any) -> Iterator[tuple[int, int]]:
    """The sums that rows of these outputs add to, each with its output."""
    rows = spots.part.family.rows[spots.rows]
    hit = np.isin(rows, outputs)
    return zip(spots.places[hit].tolist(), rows[hit].tolist(), strict=True)


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
