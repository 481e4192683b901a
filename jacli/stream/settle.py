"""One point, settled by proof: the verdict that the one-point command would give, without its formulas."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from jacli import verify
from jacli.errors import JacliError
from jacli.language.points import read_constant
from jacli.problem import Problem, constant_nodes
from jacli.problem import Variable as Bound
from jacli.readings.lowering import Lowered
from jacli.readings.precision import DOUBLE, SINGLE, Precision
from jacli.readings.tape import Tape
from jacli.result import STATUSES
from jacli.stream.answer import POINT_STATUSES, UNCHECKED, Answer
from jacli.stream.bulk import weighted
from jacli.stream.compare import SINGLE_RTOL
from jacli.stream.source import Rows
from jacli.stream.task import Task

#: Operations whose proofs are remembered, that of a program at a point being one each: data often has the same few
#: special points again and again. Each costs some kilobytes.
_MOST_KEPT = 1 << 16
_LEAST_KEPT = 16

Proofs = Sequence[verify.Proof]
_ZERO = verify.Proof("smooth", "0")


@dataclass(frozen=True, slots=True)
class At:
    """A point: its doubles, and its numbers as they were typed, or None where the doubles are all there is."""

    numbers: tuple[float, ...]
    typed: tuple[str, ...] | None = None

    def nodes(self, tape: Tape) -> list[int]:
        """The numbers as exact constants on a tape."""
        if self.typed is None:
            return [tape.number(Fraction(double)) for double in self.numbers]
        return [constant_nodes(tape, read_constant(text))[0] for text in self.typed]


class Settler:
    """Settles points one by one.

    Args:
        task: what to compute.
        single: the floats to judge are of single precision, and so is the point then, whatever was typed.
    """

    def __init__(self, task: Task, *, single: bool) -> None:
        self.task = task
        self.single = single
        self._kept: dict[At, Proofs | str] = {}
        self._most_kept = max(_LEAST_KEPT, _MOST_KEPT // len(task.lowered.tape.ops))

    def __call__(self, rows: Rows, answer: Answer) -> None:
        """Replace what ``answer`` says about its suspects by what is proved about them."""
        answer.suspects = _suspects(rows, answer)
        for row in answer.suspects:
            point = _single(rows.numbers[row]) if self.single else _double(rows, row)
            proofs = self._proofs(point)
            if isinstance(proofs, str):
                answer.status[row] = POINT_STATUSES.index("undefined")
                answer.reasons[row] = proofs
            else:
                self._settle(answer, row, proofs, point)

    def _settle(self, answer: Answer, row: int, proofs: Proofs, point: At) -> None:
        values = answer.entries[row].tolist()
        if not self.single and not all(map(math.isfinite, values)):
            values = answer.entries[row] = self._alone(point)
        rtol = max(self.task.rtol, SINGLE_RTOL) if self.single else self.task.rtol
        judged = [verify.judge(*each, rtol, self.task.atol) for each in zip(values, proofs, strict=True)]
        answer.gap[row] = max(map(_gap, values, proofs), default=0.0)
        if not judged:
            return
        worst = max(range(len(judged)), key=lambda entry: STATUSES.index(judged[entry][0]))
        status, reason = judged[worst]
        answer.status[row] = POINT_STATUSES.index(status)
        if status != "agree":
            answer.reasons[row] = f"{self.task.entries[worst]}: {reason or status}"

    def _proofs(self, point: At) -> Proofs | str:
        """The proof of every entry, or why there is none."""
        if point not in self._kept:
            if len(self._kept) >= self._most_kept:
                self._kept.clear()
            try:
                self._kept[point] = list(self._proved(point))
            except JacliError as error:
                self._kept[point] = error.message
        return self._kept[point]

    def _proved(self, point: At) -> Iterator[verify.Proof]:
        if not all(map(math.isfinite, point.numbers)):
            raise JacliError("the point is beyond the range of single precision (about 3.4e38)")
        problem = bound(self.task, point)
        return prove(self.task, problem, SINGLE if self.single else DOUBLE)

    def _alone(self, point: At) -> list[float]:
        """Torch's derivative at one point, where dead branches cannot spoil it as the one-point commands know how."""
        from jacli import calculus
        from jacli.problem import Tolerance

        problem = bound(self.task, point)
        given = {"vjp": self.task.weights, "jvp": self.task.tangent}.get(self.task.command)
        tolerance = Tolerance(self.task.rtol, self.task.atol)
        function: Any = getattr(calculus, self.task.command)
        result = function(problem, tolerance) if given is None else function(problem, given, tolerance)
        return [entry.value for line in result.block(self.task.command).rows for entry in line]


def _suspects(rows: Rows, answer: Answer) -> Sequence[int]:
    """The points to settle: also those with numbers in words, if anything is checked."""
    import numpy as np

    asked = np.isin(rows.lines, list(rows.words)) & (answer.status != UNCHECKED) if rows.words else ()
    return sorted({*answer.suspects, *np.flatnonzero(asked).tolist()})


def _double(rows: Rows, row: int) -> At:
    """A point as it was given."""
    typed = None if rows.typed is None else tuple(rows.typed(int(rows.lines[row])))
    return At(tuple(rows.numbers[row].tolist()), typed)


def _single(point: Any) -> At:
    """The numbers of single precision that are nearest to a point's; infinite where they are beyond its range."""
    import numpy as np

    with np.errstate(over="ignore"):
        return At(tuple(point.astype(np.float32).tolist()))


def bound(task: Task, point: At) -> Problem:
    """The task at one point, as the one-point commands take it."""
    tape = task.lowered.tape.copy()
    exact = point.nodes(tape)
    variables: dict[str, Bound] = {}
    for variable in task.layout.variables:
        nodes = task.lowered.variables[variable.name]
        tape.bound.update(zip(nodes, (exact[place] for place in variable.places), strict=True))
        doubles = tuple(point.numbers[place] for place in variable.places)
        variables[variable.name] = Bound(variable.name, variable.shape, doubles, nodes)
    wrt = tuple(variables[variable.name] for variable in task.wrt)
    fixed = tuple(variable for variable in variables.values() if variable not in wrt)
    lowered = Lowered(tape, task.lowered.outputs, task.lowered.variables, task.lowered.named)
    return Problem(task.program, task.shapes, wrt, fixed, lowered, ())


def prove(task: Task, problem: Problem, precision: Precision = DOUBLE) -> Iterator[verify.Proof]:
    """The proof of every entry of the derivative, in order, beside floats of a type."""
    assert problem.lowered is not None
    tape, columns = problem.lowered.tape, task.column_nodes
    if task.command == "hessian":
        for row in verify.prove_hessian(tape, task.output_nodes[0], columns, precision):
            yield from (proof or _ZERO for proof in row)
    elif task.command == "vjp":
        yield from _gradient(tape, weighted(task, tape, task.output_nodes), columns, precision)
    elif task.command == "jvp":
        assert task.tangent is not None
        steps = dict(zip(columns, task.tangent.nodes(tape), strict=True))
        for node in task.output_nodes:
            needed = set(tape.needed([node]))
            along = {column: steps[column] for column in columns if column in needed}
            yield verify.prove_directional(tape, node, along, precision) if along else _ZERO
    else:
        for node in task.output_nodes:
            yield from _gradient(tape, node, columns, precision)


def _gradient(tape: Tape, node: int, columns: Sequence[int], precision: Precision) -> list[verify.Proof]:
    """A row's proofs; what the program cannot depend on is zero."""
    needed = set(tape.needed([node]))
    reached = [column for column in columns if column in needed]
    found = dict(zip(reached, verify.prove_gradient(tape, node, reached, precision), strict=True)) if reached else {}
    return [found.get(column, _ZERO) for column in columns]


def _gap(value: float, proof: verify.Proof) -> float:
    """The relative difference between a float and the truth; nan where there is none."""
    if proof.exact is None or proof.kind != "smooth":
        return math.nan
    exact = float(proof.exact)
    return abs(value - exact) / abs(exact) if exact else abs(value)
