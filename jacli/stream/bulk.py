"""Many points at once: torch's derivative, the formulas' derivative, and which points need a closer look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jacli.readings import derive
from jacli.readings.floats import torch
from jacli.readings.machine import ENLARGED, Machine
from jacli.readings.tape import Tape
from jacli.result import STATUSES
from jacli.stream.autograd import Autograd
from jacli.stream.task import Task

#: What a point's status can be; a point is as bad as its worst entry.
POINT_STATUSES = (*STATUSES, "unchecked")
AGREE, ROUNDING, UNCHECKED = (POINT_STATUSES.index(name) for name in ("agree", "rounding", "unchecked"))

#: Points that are computed together, and numbers of their results: what stays in a processor's cache, what fills a GPU.
TOGETHER = {"cpu": 8192, "cuda": 1 << 18}
_MOST_NUMBERS = {"cpu": 1 << 18, "cuda": 1 << 26}

#: Different ways through a program's choices that get formulas of their own.
_MOST_ROUTES = 64

#: How many units of the last place one operation may cost.
_SAFETY = 8

#: Keeps a difference relative to zero finite.
_TINY = 1e-300

#: Relative difference at which a result is still the one that was computed before.
_SAME = 1e-9

#: What agreement means for single precision where nothing else is asked for.
SINGLE_RTOL = 1e-4


@dataclass(slots=True)
class Answer:
    """The results at some points.

    Attributes:
        values: (points, output entries).
        entries: (points, derivative entries).
        status: (points,), positions in ``POINT_STATUSES``.
        gap: (points,), the largest relative difference between the two readings; nan where unknown.
        suspects: the points, by row, that are to be settled one by one.
        bounds: (points, derivative entries), what the rounding of the type may explain; None in double precision.
        reasons: by row, why a settled point does not plainly agree.
    """

    values: Any
    entries: Any
    status: Any
    gap: Any
    suspects: Sequence[int]
    bounds: Any = None
    reasons: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Route:
    """The derivative's formulas for one way through the program's choices.

    Attributes:
        machine: computes the outputs, the live entries, and the switches.
        outputs: how many output entries there are.
        live: the places of the entries that can differ from zero.
    """

    machine: Machine
    outputs: int
    live: tuple[int, ...]

    def __call__(self, columns: Any, *, nudged: bool = False) -> tuple[Any, Any, list[Any]]:
        """Tensors of values and live entries, (entries, points) each, and the switches' columns."""
        t = torch()
        results = self.machine(columns, nudged=nudged)
        filled = t.empty((self.outputs + len(self.live), columns.shape[1]), dtype=t.float64, device=columns.device)
        for row, result in zip(filled, results, strict=False):
            row[:] = result
        switches = [s for s in results[len(filled) :] if not isinstance(s, float | bool)]
        return filled[: self.outputs], filled[self.outputs :], switches

    def spread(self, live: Any, entries: int) -> Any:
        """All entries, those that are not live being zero."""
        if len(self.live) == entries:
            return live
        full = live.new_zeros((entries, live.shape[1]))
        full[list(self.live)] = live
        return full


class Bulk:
    """A task at many points.

    Args:
        task: what to compute.
        check: ``suspect`` compares two readings, ``all`` leaves every point to the prover, ``none`` evaluates the
            formulas alone.
        dtype: ``float64`` or ``float32``: what torch's program computes in.
        device: where.
    """

    def __init__(self, task: Task, check: str = "suspect", dtype: str = "float64", device: str = "cpu") -> None:
        self.task = task
        self.check = check
        self.single = dtype == "float32"
        self.device = device
        self.autograd = Autograd(task)
        size = len(task.layout.names) + len(task.outputs) + len(task.entries)
        self.together = max(64, min(TOGETHER[device], _MOST_NUMBERS[device] // size))
        self._names = {name: place for place, name in enumerate(task.layout.names)}
        self._routes: dict[tuple[int, ...], Route] = {}
        self._selects = derive.selects(task.lowered.tape, task.output_nodes)
        self._conditions = self._deciders()

    def __call__(self, points: Any) -> Answer:
        """The results at ``points``, a float64 array (points, numbers of a point), at most ``together`` of them."""
        import numpy as np

        t = torch()
        columns = t.from_numpy(np.ascontiguousarray(points.T)).to(self.device)
        if self.single:
            columns = columns.float().double()
        count = columns.shape[1]
        dtype = np.float32 if self.single else np.float64
        answer = Answer(
            np.empty((len(self.task.outputs), count), dtype).T,  # columns are filled, and rows are read once
            np.empty((len(self.task.entries), count), dtype).T,
            np.full(count, AGREE, np.uint8),
            np.zeros(count),
            (),
            np.zeros((count, len(self.task.entries))) if self.single else None,
        )
        suspect = np.zeros(count, bool)
        for taken, members in self._groups(columns):
            mine = columns if members is None else columns[:, members]
            rows = slice(None) if members is None else members.cpu().numpy()
            self._answer(answer, suspect, rows, mine, self._route(taken))
        answer.suspects = np.flatnonzero(suspect).tolist()
        return answer

    def leeway(self, points: Any) -> Any:
        """How far results computed at other times may be off: (points, output entries and derivative entries).

        Where nothing is known it is infinite.
        """
        import numpy as np

        t = torch()
        columns = t.from_numpy(np.ascontiguousarray(points.T)).to(self.device)
        if self.single:
            columns = columns.float().double()
        found = np.empty((len(points), len(self.task.outputs) + len(self.task.entries)))
        for taken, members in self._groups(columns):
            mine = columns if members is None else columns[:, members]
            rows = slice(None) if members is None else members.cpu().numpy()
            route = self._route(taken)
            both = []
            for nudged in (False, True):
                values, live, _ = route(mine, nudged=nudged)
                both.append(t.cat([values, route.spread(live, len(self.task.entries))]))
            off = (both[1] - both[0]).abs() * (_SAFETY / ENLARGED * (2.0**29 if self.single else 1.0))
            off += both[0].abs() * (SINGLE_RTOL if self.single else _SAME) + _TINY
            found[rows] = off.T.nan_to_num(nan=float("inf"), posinf=float("inf")).cpu().numpy()
        return found

    def _answer(self, answer: Answer, suspect: Any, rows: Any, columns: Any, route: Route) -> None:
        """Fill in the results of points that take one route."""
        if self.check == "none":
            values, live, _ = route(columns)
            entries = route.spread(live, len(self.task.entries))
            answer.status[rows] = UNCHECKED
        else:
            values, entries = self.autograd(columns.float() if self.single else columns)
            self._compare(answer, suspect, rows, columns, values, entries, route)
        answer.values.T[:, rows] = values.cpu().numpy()
        answer.entries.T[:, rows] = entries.cpu().numpy()

    def _compare(
        self, answer: Answer, suspect: Any, rows: Any, columns: Any, values: Any, entries: Any, route: Route
    ) -> None:
        """Torch's derivative beside the formulas', and both beside the formulas' in the machine's second gait.

        Whatever is not finite makes a difference nan, which is suspicious.
        """
        _, formulas, switches = route(columns)
        _, loss, moved = route(columns, nudged=True)
        loss.sub_(formulas).abs_().mul_(_SAFETY / ENLARGED)  # what rounding may do to the formulas
        live = entries if len(formulas) == len(entries) else entries[list(route.live)]
        off = (live - formulas).abs_()
        size = formulas.abs_()
        if self.single:
            excess = self._single(answer, rows, off, loss, size, route)
        else:
            excess = (off + loss).sub_(size * (self.task.rtol / 2) + self.task.atol)
        sure = _holds(excess) & _holds(values - values)
        for place, place_moved in zip(switches, moved, strict=True):
            sure &= (place != 0) & (place.abs() > 2 * (place_moved - place).abs())
        suspect[rows] = True if self.check == "all" else (~sure).cpu().numpy()
        if len(off):
            answer.gap[rows] = off.div_(size.add_(_TINY)).amax(0).cpu().numpy()

    def _single(self, answer: Answer, rows: Any, off: Any, loss: Any, size: Any, route: Route) -> Any:
        """What is too much in single precision, entry by entry, and which points rounding explains."""
        t = torch()
        rtol = max(self.task.rtol, SINGLE_RTOL)
        allowed = size * rtol + self.task.atol
        explained = loss * 2.0**29  # the same rounding in single precision
        answer.status[rows] = t.where(_holds(off - allowed), AGREE, ROUNDING).cpu().numpy()
        answer.bounds[rows] = route.spread(explained, len(self.task.entries)).T.cpu().numpy()
        return t.maximum(off - t.maximum(allowed, explained), loss - allowed / 2)

    # ---- choices: points that take the same branches are computed together

    def _deciders(self) -> Machine | None:
        tape = self.task.lowered.tape
        conditions = [arg for node in self._selects for arg in _conditions(tape, node)]
        return Machine(tape, conditions, self._names, self.device) if conditions else None

    def _groups(self, columns: Any) -> list[tuple[tuple[int, ...] | None, Any]]:
        """The ways taken through the choices, each with its points (None: all of them)."""
        if self._conditions is None:
            return [((), None)]
        t = torch()
        count = columns.shape[1]
        held = t.stack([_filled(t, value, count) for value in self._conditions(columns)])
        tape, start, taken = self.task.lowered.tape, 0, []
        for node in self._selects:
            conditions = held[start : start + len(_conditions(tape, node))]
            start += len(conditions)
            taken.append(_position(t, conditions, len(tape.ops[node].args)))
        ways, which = t.unique(t.stack(taken), dim=1, return_inverse=True)
        if ways.shape[1] == 1:
            return [(tuple(ways[:, 0].tolist()), None)]
        if ways.shape[1] > _MOST_ROUTES:
            return [(None, None)]
        return [(tuple(ways[:, k].tolist()), t.nonzero(which == k)[:, 0]) for k in range(ways.shape[1])]

    def _route(self, taken: tuple[int, ...] | None) -> Route:
        """The formulas for one way; for None the choices stay in them."""
        key = (-2,) if taken is None else taken
        if key not in self._routes:
            if len(self._routes) > 4 * _MOST_ROUTES:
                self._routes.clear()
            ways = {} if taken is None else {n: p for n, p in zip(self._selects, taken, strict=True) if p >= 0}
            self._routes[key] = self._built(ways)
        return self._routes[key]

    def _built(self, ways: dict[int, int]) -> Route:
        task = self.task
        roots = [*task.output_nodes, *task.column_nodes]
        tape, went, looked = derive.resolved(task.lowered.tape, roots, ways)
        outputs = [went[node] for node in task.output_nodes]
        switches = derive.switches(tape, [*outputs, *looked])
        entries = _derivative(task, tape, outputs, [went[node] for node in task.column_nodes])
        live = _live(task)
        machine = Machine(tape, [*outputs, *(entries[k] for k in live), *switches], self._names, self.device)
        return Route(machine, len(outputs), live)


def _holds(excess: Any) -> Any:
    """For each point, whether no entry is above zero; nan is."""
    if not len(excess):
        return torch().ones(excess.shape[1:], dtype=torch().bool, device=excess.device)
    return excess.amax(0) <= 0


def _conditions(tape: Tape, node: int) -> tuple[int, ...]:
    args = tape.ops[node].args
    return args[: 2 * (len(args) // 2) : 2]


def _filled(t: Any, value: Any, count: int) -> Any:
    return t.full((count,), value) if isinstance(value, bool | float) else value


def _position(t: Any, conditions: Any, arguments: int) -> Any:
    """Which argument each point takes: that after the first condition that holds, the last one, or none (-1)."""
    otherwise = arguments - 1 if arguments % 2 else -1
    taken = t.full(conditions.shape[1:], otherwise, device=conditions.device)
    for k in reversed(range(len(conditions))):
        taken[conditions[k].bool()] = 2 * k + 1
    return taken


def _derivative(task: Task, tape: Tape, outputs: Sequence[int], wrt: Sequence[int]) -> list[int]:
    """The nodes of the entries that the command asks for."""
    forms: dict[str, Callable[[], list[int]]] = {
        "vjp": lambda: derive.gradient(tape, weighted(task, tape, outputs), wrt),
        "jvp": lambda: [_along(task, tape, derive.gradient(tape, output, wrt)) for output in outputs],
        "hessian": lambda: [
            e for row in derive.gradient(tape, outputs[0], wrt) for e in derive.gradient(tape, row, wrt)
        ],
    }
    rows = forms.get(task.command, lambda: [e for output in outputs for e in derive.gradient(tape, output, wrt)])
    return rows()


def _live(task: Task) -> tuple[int, ...]:
    """The places of the entries that can differ from zero: an output's derivatives by what it depends on."""
    if task.command not in ("jacobian", "grad"):
        return tuple(range(len(task.entries)))
    needed = (set(task.lowered.tape.needed([node])) for node in task.output_nodes)
    reached = (column in nodes for nodes in needed for column in task.column_nodes)
    return tuple(place for place, reaches in enumerate(reached) if reaches)


def weighted(task: Task, tape: Tape, outputs: Sequence[int]) -> int:
    """The node of the outputs' weighted sum; outputs of weight zero are left out."""
    from jacli.readings import terms

    assert task.weights is not None
    total = tape.number(0)
    for node, weight in zip(outputs, task.weights.nodes(tape), strict=True):
        total = terms.add(tape, total, terms.mul(tape, weight, node))
    return total


def _along(task: Task, tape: Tape, row: Sequence[int]) -> int:
    from jacli.readings import terms

    assert task.tangent is not None
    total = tape.number(0)
    for slope, step in zip(row, task.tangent.nodes(tape), strict=True):
        total = terms.add(tape, total, terms.mul(tape, slope, step))
    return total
