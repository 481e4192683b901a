"""Many points at once: torch's derivative, the formulas' derivative, and which points need a closer look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jacli.readings import derive
from jacli.readings.floats import torch
from jacli.readings.machine import ENLARGED, Machine, block
from jacli.readings.tape import Tape
from jacli.stream.answer import AGREE, ROUNDING, UNCHECKED, Answer, merged
from jacli.stream.autograd import Autograd
from jacli.stream.compare import SAFETY, SINGLE_RTOL, Comparison, compare
from jacli.stream.task import Task

#: Points that are computed together, and numbers of their results: what stays in a processor's cache, what fills a GPU.
TOGETHER = {"cpu": 1 << 15, "cuda": 1 << 18}
_MOST_NUMBERS = {"cpu": 1 << 21, "cuda": 1 << 26}

#: Points are computed in multiples of so many, for processors compute some at once and the rest one by one, by other
#: instructions: the last digit of a point's results must not depend on how many points stand beside it.
_ABREAST = 64

#: Different ways through a program's choices that get formulas of their own.
_MOST_ROUTES = 64

#: Relative difference at which a result is still the one that was computed before.
_SAME = 1e-9

#: Keeps what is allowed at zero above zero.
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Route:
    """The derivative's formulas for one way through the program's choices.

    Attributes:
        machine: computes the outputs, the entries, and the switches.
        outputs: how many output entries there are.
        entries: how many entries a derivative has.
        live: the places of the derivative's entries that can differ from zero.
    """

    machine: Machine
    outputs: int
    entries: int
    live: frozenset[int]

    def __call__(self, columns: Any, *, nudged: bool = False) -> tuple[Any, Any, Any]:
        """Values, entries, and switches: a row each, a column a point."""
        results = self.machine(columns, nudged=nudged)
        after = self.outputs + self.entries
        return results[: self.outputs], results[self.outputs : after], results[after:]


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
        torch().empty(31 << 17, dtype=torch().float64)  # glibc keeps as much as was ever freed at once: without it,
        # every operation takes its memory from the system and gives it back, which is half of the time
        size = len(task.layout.names) + len(task.outputs) + len(task.entries)
        self.together = max(64, min(TOGETHER[device], _MOST_NUMBERS[device] // size))
        self._names = {name: place for place, name in enumerate(task.layout.names)}
        self._routes: dict[tuple[int, ...], Route] = {}
        self._selects = derive.selects(task.lowered.tape, task.output_nodes)
        self._conditions = self._deciders()

    def __call__(self, points: Any) -> Answer:
        """The results at ``points``, a float64 array (points, numbers of a point), at most ``together`` of them."""
        columns, count = self._columns(points), len(points)
        groups = self._groups(columns, count)
        if len(groups) == 1:
            return self._answer(columns, count, self._route(groups[0][0]))
        parts = [
            (members, self._answer(columns[:, _filled(members)], len(members), self._route(taken)))
            for taken, members in groups
        ]
        return merged(count, [(members.cpu().numpy(), part) for members, part in parts])

    def leeway(self, points: Any) -> Any:
        """How far results computed at other times may be off: (points, output entries and derivative entries).

        Where nothing is known it is infinite.
        """
        import numpy as np

        columns = self._columns(points)
        found = np.empty((len(points), len(self.task.outputs) + len(self.task.entries)))
        for taken, members in self._groups(columns, len(points)):
            off = self._leeway(columns[:, _filled(members)], self._route(taken))[:, : len(members)]
            found[members.cpu().numpy()] = off.nan_to_num(nan=float("inf"), posinf=float("inf")).T.cpu().numpy()
        return found

    def _leeway(self, columns: Any, route: Route) -> Any:
        both = []
        for nudged in (False, True):
            values, entries, _ = route(columns, nudged=nudged)
            both.append(torch().cat([values, entries]))
        off = (both[1] - both[0]).abs() * (SAFETY / ENLARGED * (2.0**29 if self.single else 1.0))
        return off + both[0].abs() * (SINGLE_RTOL if self.single else _SAME) + _TINY

    def _columns(self, points: Any) -> Any:
        """The points' numbers: a row each, a column a point; the last point again and again until they are abreast."""
        count = len(points)
        columns = block(points.shape[1], (-(-count // _ABREAST) * _ABREAST,))
        columns.numpy()[:, :count] = points.T
        columns[:, count:] = columns[:, count - 1 : count]
        if self.single:
            columns = columns.float().double()
        return columns.to(self.device)

    def _answer(self, columns: Any, count: int, route: Route) -> Answer:
        """The results at the first ``count`` points, which take one route."""
        import numpy as np

        if self.check == "none":
            values, entries, _ = route(columns)
            if self.single:
                values, entries = values.float(), entries.float()
            status = np.full(count, UNCHECKED, np.uint8)
            return Answer(_by_point(values, count), _by_point(entries, count), status, np.zeros(count))
        values, entries = self.autograd(columns.float() if self.single else columns)
        found = self._compared(columns, values, entries, route)
        return Answer(
            _by_point(values, count),
            _by_point(entries, count),
            np.where(_by_point(found.agrees, count), np.uint8(AGREE), np.uint8(ROUNDING)),
            _by_point(found.gap, count),
            range(count) if self.check == "all" else np.flatnonzero(_by_point(~found.sure, count)).tolist(),
        )

    def _compared(self, columns: Any, values: Any, entries: Any, route: Route) -> Comparison:
        """Torch's derivative beside the formulas', and the formulas' beside those in the machine's second gait.

        Where a value is not finite, and where a switch is zero or nearly so, nothing is sure.
        """
        _, formulas, switches = route(columns)
        _, moved, switches_moved = route(columns, nudged=True)
        gaits = {k: (formulas[k], moved[k]) for k in route.live}
        found = compare(entries, gaits, self.task.rtol, self.task.atol)
        sure = found.sure
        for value in values:
            sure &= value - value == 0  # it is finite
        for place, place_moved in zip(switches, switches_moved, strict=True):
            sure &= (place != 0) & (place.abs() > 2 * (place_moved - place).abs())
        return found

    # ---- choices: points that take the same branches are computed together

    def _deciders(self) -> Machine | None:
        tape = self.task.lowered.tape
        conditions = [arg for node in self._selects for arg in _conditions(tape, node)]
        return Machine(tape, conditions, self._names, self.device) if conditions else None

    def _groups(self, columns: Any, count: int) -> list[tuple[tuple[int, ...] | None, Any]]:
        """The ways that the first ``count`` points take through the choices, each with its points.

        Where there are more ways than get formulas of their own, there is one, None.
        """
        t = torch()
        everyone = t.arange(count, device=self.device)
        if self._conditions is None:
            return [((), everyone)]
        held = self._conditions(columns)
        tape, start, taken = self.task.lowered.tape, 0, []
        for node in self._selects:
            conditions = held[start : start + len(_conditions(tape, node))]
            start += len(conditions)
            taken.append(_position(t, conditions, len(tape.ops[node].args)))
        ways, which = t.unique(t.stack(taken)[:, :count], dim=1, return_inverse=True)
        if ways.shape[1] == 1:
            return [(tuple(ways[:, 0].tolist()), everyone)]
        if ways.shape[1] > _MOST_ROUTES:
            return [(None, everyone)]
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
        needed = [*task.output_nodes, *task.column_nodes]
        tape, went, looked = derive.resolved(task.lowered.tape, needed, ways)
        outputs = [went[node] for node in task.output_nodes]
        switches = derive.switches(tape, [*outputs, *looked])
        entries = _derivative(task, tape, outputs, [went[node] for node in task.column_nodes])
        machine = Machine(tape, [*outputs, *entries, *switches], self._names, self.device)
        return Route(machine, len(outputs), len(entries), _live(task))


def _filled(members: Any) -> Any:
    """Places of points, the last one again and again until they are abreast."""
    missing = -len(members) % _ABREAST
    return torch().cat([members, members[-1:].expand(missing)]) if missing else members


def _by_point(rows: Any, count: int) -> Any:
    """The first ``count`` of (rows, points) as an array (points, rows) whose columns lie together, or of (points,)."""
    return rows[..., :count].t().cpu().numpy()


def _conditions(tape: Tape, node: int) -> tuple[int, ...]:
    args = tape.ops[node].args
    return args[: 2 * (len(args) // 2) : 2]


def _position(t: Any, conditions: Any, arguments: int) -> Any:
    """Which argument each point takes: that after the first condition that holds, the last one, or none (-1)."""
    otherwise = arguments - 1 if arguments % 2 else -1
    taken = t.full(conditions.shape[1:], otherwise, device=conditions.device)
    for k in reversed(range(len(conditions))):
        taken[conditions[k] != 0] = 2 * k + 1
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


def _live(task: Task) -> frozenset[int]:
    """The places of the entries that can differ from zero: an output's derivatives by what it depends on."""
    if task.command not in ("jacobian", "grad"):
        return frozenset(range(len(task.entries)))
    needed = (set(task.lowered.tape.needed([node])) for node in task.output_nodes)
    reached = (column in nodes for nodes in needed for column in task.column_nodes)
    return frozenset(place for place, reaches in enumerate(reached) if reaches)


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
