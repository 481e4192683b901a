"""One point, settled by the proof: what the one-point command would say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from jacli.errors import JacliError
from jacli.problem import Problem
from jacli.problem import Variable as Bound
from jacli.readings.lowering import Lowered
from jacli.result import STATUSES, Entry, Result
from jacli.stream.bulk import POINT_STATUSES, SINGLE_RTOL, Answer
from jacli.stream.task import Task

#: Settled points that are remembered: data often has the same few special points again and again.
_MOST_KEPT = 4096


class Settler:
    """Settles points one by one.

    Args:
        task: what to compute.
        decimals: the numbers were typed: 0.1 is one tenth, and not the double next to it.
        single: the floats to judge are of single precision.
    """

    def __init__(self, task: Task, *, decimals: bool, single: bool) -> None:
        self.task = task
        self.decimals = decimals
        self.single = single
        self._kept: dict[tuple[float, ...], Result | str] = {}

    def __call__(self, points: Any, answer: Answer) -> None:
        """Replace what ``answer`` says about its suspects by what is proved about them."""
        for row in answer.suspects:
            result = self._result(tuple(points[row].tolist()))
            if isinstance(result, str):
                answer.status[row] = POINT_STATUSES.index("undefined")
                answer.reasons[row] = result
            else:
                self._settle(answer, row, result)

    def _settle(self, answer: Answer, row: int, result: Result) -> None:
        entries = [entry for line in result.block(self.task.command).rows for entry in line]
        statuses = [entry.status for entry in entries]
        if self.single:
            floats = zip(entries, answer.entries[row].tolist(), answer.bounds[row].tolist(), strict=True)
            statuses = [_single(entry, value, bound, self.task.atol) for entry, value, bound in floats]
        else:
            answer.entries[row] = [entry.value for entry in entries]
            answer.values[row] = [value for output in result.outputs for value in output.values]
            answer.gap[row] = max(map(_gap, entries), default=0.0)
        worst = max(range(len(statuses)), key=lambda i: STATUSES.index(statuses[i]), default=None)
        if worst is None:
            return
        answer.status[row] = POINT_STATUSES.index(statuses[worst])
        if statuses[worst] != "agree":
            answer.reasons[row] = f"{self.task.entries[worst]}: {entries[worst].reason or statuses[worst]}"

    def _result(self, numbers: tuple[float, ...]) -> Result | str:
        if numbers not in self._kept:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            try:
                self._kept[numbers] = compute(self.task, bound(self.task, numbers, decimals=self.decimals))
            except JacliError as error:
                self._kept[numbers] = error.message
        return self._kept[numbers]


def bound(task: Task, numbers: Sequence[float], *, decimals: bool) -> Problem:
    """The task at one point, as the one-point commands take it."""
    plain = task.lowered.tape
    tape = plain.copy()
    variables: dict[str, Bound] = {}
    for variable in task.layout.variables:
        doubles = tuple(numbers[place] for place in variable.places)
        nodes = task.lowered.variables[variable.name]
        for node, double in zip(nodes, doubles, strict=True):
            tape.bound[node] = tape.number(Fraction(repr(double)) if decimals else Fraction(double))
        variables[variable.name] = Bound(variable.name, variable.shape, doubles, nodes)
    wrt = tuple(variables[variable.name] for variable in task.wrt)
    fixed = tuple(variable for variable in variables.values() if variable not in wrt)
    lowered = Lowered(tape, task.lowered.outputs, task.lowered.variables, task.lowered.named)
    return Problem(task.program, task.shapes, wrt, fixed, lowered, ())


def compute(task: Task, problem: Problem) -> Result:
    """The one-point command's result."""
    from jacli import calculus

    tolerance = calculus.Tolerance(task.rtol, task.atol)
    given: Mapping[str, Any] = {"vjp": task.weights, "jvp": task.tangent}
    extra = [given[task.command]] if task.command in given else []
    function: Any = getattr(calculus, task.command)
    first, rest = extra[:1], [tolerance]
    result: Result = function(problem, *first, *rest)
    return result


def _gap(entry: Entry) -> float:
    """The relative difference between a float and the truth; nan where there is none."""
    if entry.difference is None or entry.exact is None:
        return math.nan
    exact = abs(float(entry.exact))
    return abs(entry.difference) / exact if exact else abs(entry.difference)


def _single(entry: Entry, value: float, bound: float, atol: float) -> str:
    """The status of a float of single precision beside the truth found for the same point."""
    if entry.status not in ("agree", "rounding", "disagree") or entry.exact is None:
        return entry.status
    exact = float(entry.exact)
    off = abs(value - exact)
    if off <= SINGLE_RTOL * abs(exact) + atol:
        return "agree"
    return "rounding" if off <= bound else "disagree"
