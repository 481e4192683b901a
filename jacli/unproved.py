"""Products for programs too long to be proved: every entry compared with a second reading in doubles.

The result says so in its notes. Entries have no formula and no exact value; where the two readings differ, and where a
switching point decides, the entry is ``undefined`` and not ``disagree``, since neither reading is the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jacli.autograd import Floats, at_the_point
from jacli.mirror import Mirror, NoRule
from jacli.problem import Problem, Tolerance, Vector, row_names, too_long
from jacli.readings import floats
from jacli.result import Block, Entry, Named, Result, entry_names
from jacli.sparse.wires import Wiring, wiring, without_value

#: What rounding in long sums may do, relative to the largest entry of the row.
ROUNDING = 1e-12

NOTE = (
    "the program is too long to be written out in single numbers: every entry is compared with a second reading in "
    "doubles, not proved"
)


def vjp(problem: Problem, weights: Vector, tolerance: Tolerance) -> Result:
    """``weights · J``, entry by entry beside a second reverse pass that shares no rule with autograd."""
    computed, second = Floats.of(problem), _Second(problem)
    row = second.row(computed.vjp(weights.doubles), weights.doubles, tolerance)
    block = Block("vjp", ("vjp",), problem.columns, (row,), vector=True)
    return _result("vjp", problem, computed, block, tolerance, weights=weights.doubles)


def grad(problem: Problem, tolerance: Tolerance) -> Result:
    """The gradient of the one scalar output, likewise."""
    computed, second = Floats.of(problem), _Second(problem)
    row = second.row(computed.vjp((1.0,)), (1.0,), tolerance)
    block = Block("grad", row_names(problem), problem.columns, (row,), vector=True)
    return _result("grad", problem, computed, block, tolerance)


def jvp(problem: Problem, tangent: Vector, tolerance: Tolerance) -> Result:
    """``J · tangent``, entry by entry beside a forward pass by the same second reading."""
    computed, second = Floats.of(problem), _Second(problem)
    row = second.column(computed.jvp(tangent.doubles), tangent.doubles, tolerance)
    block = Block("jvp", ("jvp",), row_names(problem), (row,), vector=True)
    return _result("jvp", problem, computed, block, tolerance, tangent=tangent.doubles)


@dataclass(frozen=True)
class _Second:
    """The second reading of a problem."""

    problem: Problem

    @cached_property
    def mirror(self) -> Mirror:
        return Mirror(self.problem.program, at_the_point(self.problem))

    def row(self, values: Sequence[float], weights: Sequence[float], tolerance: Tolerance) -> tuple[Entry, ...]:
        """The entries of ``weights · J``. Raises JacliError where the program has an operation without a rule."""
        pieces = _cut(weights, self.problem.output_shapes)
        try:
            bars = self.mirror.vjp([_tensor(piece) for piece in pieces])
        except NoRule:
            raise too_long() from None
        second = Floats.flat([bars[variable.name] for variable in self.problem.wrt])
        return _entries(values, second, self._deciding(pieces), tolerance)

    def column(self, values: Sequence[float], tangent: Sequence[float], tolerance: Tolerance) -> tuple[Entry, ...]:
        """The entries of ``J · tangent``. Raises JacliError as ``row``."""
        pieces = _cut(tangent, [variable.shape for variable in self.problem.wrt])
        names = [variable.name for variable in self.problem.wrt]
        try:
            dots = self.mirror.jvp({name: _tensor(piece) for name, piece in zip(names, pieces, strict=True)})
        except NoRule:
            raise too_long() from None
        second = [dot.expand(shape) for dot, shape in zip(dots, self.problem.output_shapes, strict=True)]
        return _entries(values, Floats.flat(second), self._decided(pieces), tolerance)

    # ---- switching points

    @cached_property
    def _wiring(self) -> Wiring:
        return wiring(self.problem.program, self.problem.shapes, [variable.name for variable in self.problem.wrt], {})

    @cached_property
    def _switching(self) -> dict[int, Any]:
        """The entries at a switching point, by node, flat."""
        return self._flat(self.mirror.switching())

    @cached_property
    def _without(self) -> Any:
        """The rows that are made of an entry without a value."""
        program = self.problem.program
        return without_value(
            program, self.problem.shapes, tuple(program.variables), self._flat(self.mirror.valueless())
        )

    def _flat(self, masks: dict[int, Any]) -> dict[int, Any]:
        shapes = self.problem.shapes
        return {node: mask.expand(shapes[node]).reshape(-1).numpy() for node, mask in masks.items()}

    def _deciding(self, weights: Sequence[Any]) -> list[bool]:
        """For each column, whether it decides about a switching point on the way to an output with a weight.

        Or has a part in one without a value.
        """
        if not self._switching:
            return [False] * len(self.problem.columns)
        used = np.concatenate([piece.reshape(-1) != 0 for piece in weights])
        wiring = self._wiring
        turning = wiring.deciding(self._switching, wiring.at_outputs(used))
        spoilt = wiring.pulled(wiring.at_outputs(used & self._without))
        nodes = [self.problem.program.variables.get(variable.name, -1) for variable in self.problem.wrt]
        masks = [
            turning[node] | spoilt[node] if node in turning else np.zeros(len(variable.entries), bool)
            for node, variable in zip(nodes, self.problem.wrt, strict=True)
        ]
        return [bool(turns) for mask in masks for turns in mask]

    def _decided(self, tangent: Sequence[Any]) -> list[bool]:
        """For each row, whether a switching point decides about it that the tangent moves, or it has no value."""
        if not self._switching:
            return [False] * self.problem.output_size
        nodes = [self.problem.program.variables.get(variable.name, -1) for variable in self.problem.wrt]
        moved = {node: piece.reshape(-1) != 0 for node, piece in zip(nodes, tangent, strict=True)}
        marks = self._wiring.of_outputs(self._wiring.decided(self._switching, moved)) | self._without
        return [bool(turns) for turns in marks]


def _cut(numbers: Sequence[float], shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """A flat list as arrays of these shapes."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(np.array(numbers, float), ends), shapes, strict=True)]


def _tensor(array: Any) -> Any:
    return floats.torch().from_numpy(array)


def _entries(
    values: Sequence[float], second: Sequence[float], turning: Sequence[bool], tolerance: Tolerance
) -> tuple[Entry, ...]:
    room = ROUNDING * max((abs(value) for value in second if math.isfinite(value)), default=0.0) + tolerance.atol
    return tuple(
        _entry(value, confirmed=abs(value - other) <= tolerance.rtol * abs(other) + room, turns=turns)
        for value, other, turns in zip(values, second, turning, strict=True)
    )


def _entry(value: float, *, confirmed: bool, turns: bool) -> Entry:
    if turns:
        reason = "at a switching point, or too near to one for doubles, and the program is too long to prove which side"
        return Entry(value, None, None, "undefined", reason=reason)
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
        notes=(*problem.notes(), NOTE),
        **more,
    )
