"""Products for programs too long to be proved: every entry compared with a second reading in doubles.

The result says so in its notes. Entries have no formula and no exact value; where the two readings differ, the entry
is ``undefined`` and not ``disagree``, since neither reading is the truth.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from jacli import mirror
from jacli.autograd import Floats, at_the_point
from jacli.problem import Problem, Tolerance, Vector, row_names, too_long
from jacli.readings import floats
from jacli.result import Block, Entry, Named, Result, entry_names

#: What rounding in long sums may do, relative to the largest entry of the row.
ROUNDING = 1e-12

#: Rows of random signs that a JVP is compared along, and their seed.
PROBES, SEED = 3, 20

NOTE = "the program is too long to be written out in single numbers: {how}, not proved"


def vjp(problem: Problem, weights: Vector, tolerance: Tolerance) -> Result:
    """``weights · J``, entry by entry beside a second reverse pass that shares no rule with autograd."""
    computed = Floats.of(problem)
    row = _row(problem, computed, weights.doubles, computed.vjp(weights.doubles), tolerance)
    block = Block("vjp", ("vjp",), problem.columns, (row,), vector=True)
    return _result("vjp", problem, computed, block, tolerance, weights=weights.doubles)


def grad(problem: Problem, tolerance: Tolerance) -> Result:
    """The gradient of the one scalar output, likewise."""
    computed = Floats.of(problem)
    row = _row(problem, computed, (1.0,), computed.vjp((1.0,)), tolerance)
    block = Block("grad", row_names(problem), problem.columns, (row,), vector=True)
    return _result("grad", problem, computed, block, tolerance)


def jvp(problem: Problem, tangent: Vector, tolerance: Tolerance) -> Result:
    """``J · tangent``, compared along random rows: ``u·(J·tangent)`` beside ``(u·J)·tangent`` of the second reading."""
    computed = Floats.of(problem)
    values = computed.jvp(tangent.doubles)
    generator = random.Random(SEED)  # noqa: S311
    confirmed = all(
        _along(problem, computed, [generator.choice((-1.0, 1.0)) for _ in values], values, tangent.doubles, tolerance)
        for _ in range(PROBES)
    )
    row = tuple(_entry(value, confirmed and math.isfinite(value)) for value in values)
    block = Block("jvp", ("jvp",), row_names(problem), (row,), vector=True)
    how = f"compared along {PROBES} random rows with a second reading in doubles"
    return _result("jvp", problem, computed, block, tolerance, tangent=tangent.doubles, how=how)


def _row(
    problem: Problem, computed: Floats, weights: Sequence[float], values: Sequence[float], tolerance: Tolerance
) -> tuple[Entry, ...]:
    second = _mirrored(problem, computed, weights)
    room = ROUNDING * max((abs(value) for value in second if math.isfinite(value)), default=0.0) + tolerance.atol
    return tuple(
        _entry(value, abs(value - other) <= tolerance.rtol * abs(other) + room)
        for value, other in zip(values, second, strict=True)
    )


def _along(
    problem: Problem,
    computed: Floats,
    row: Sequence[float],
    values: Sequence[float],
    tangent: Sequence[float],
    tolerance: Tolerance,
) -> bool:
    ours = [u * value for u, value in zip(row, values, strict=True)]
    theirs = [slope * step for slope, step in zip(_mirrored(problem, computed, row), tangent, strict=True)]
    room = tolerance.rtol * max(math.fsum(map(abs, ours)), math.fsum(map(abs, theirs))) + tolerance.atol
    return abs(math.fsum(ours) - math.fsum(theirs)) <= room


def _mirrored(problem: Problem, computed: Floats, weights: Sequence[float]) -> list[float]:
    """The second reading's ``weights · J``, flattened. Raises JacliError when it has no rule for the program."""
    t = floats.torch()
    cotangents: list[Any] = []
    start = 0
    for output in computed.outputs:
        part = weights[start : start + output.numel()]
        cotangents.append(t.tensor(part, dtype=t.float64).reshape(output.shape))
        start += output.numel()
    try:
        bars = mirror.vjp(problem.program, at_the_point(problem), cotangents)
    except mirror.NoRule:
        raise too_long() from None
    return Floats.flat([bars[variable.name] for variable in problem.wrt])


def _entry(value: float, confirmed: bool) -> Entry:
    if confirmed:
        return Entry(value, None, None, "agree")
    reason = "two readings in doubles differ here, and the program is too long to prove either"
    return Entry(value, None, None, "undefined", reason=reason)


def _result(
    command: str,
    problem: Problem,
    computed: Floats,
    block: Block,
    tolerance: Tolerance,
    *,
    how: str = "every entry is compared with a second reading in doubles",
    **more: Any,
) -> Result:
    names = problem.program.output_names()
    outputs = tuple(
        Named(name, shape, entry_names(name, shape), tuple(Floats.flat([output])))
        for name, shape, output in zip(names, problem.output_shapes, computed.outputs, strict=True)
    )
    return Result(
        command,
        problem.program.text,
        outputs,
        tuple(variable.named() for variable in problem.wrt),
        tuple(variable.named() for variable in problem.fixed),
        (block,),
        rtol=tolerance.rtol,
        atol=tolerance.atol,
        remarks=problem.remarks,
        notes=(*problem.notes(), NOTE.format(how=how)),
        **more,
    )
