"""torch's own ``backward``, call by call, and the row-times-matrix product that explains each call.

Nothing is simulated: real leaf tensors, one graph, ``output.backward(gradient)`` as often as asked, ``.grad`` read
before and after. The Jacobian's rows stand beside it, and the exact reading judges what is left in ``.grad``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from jacli import calculus
from jacli.errors import JacliError
from jacli.intermediate import Graph, check_steps, flat, names_to_show, recorded, shown
from jacli.problem import Problem, Tolerance, Vector, read_vector, too_long
from jacli.readings import floats, symbols
from jacli.result import Backward, Block, Call, Entry, Held, Result, Shown, Step

#: Most calls of backward in one request.
MOST_CALLS = 1000

#: Rows and columns of a Jacobian that come this close to their mirror image make it symmetric.
_SAME = 1e-12


def backward(
    problem: Problem,
    gradients: Iterable[Any],
    tolerance: Tolerance,
    *,
    retain_graph: bool = False,
    zero_grad: bool = False,
    explain: bool = False,
    show: Any = (),
) -> Result:
    """Call torch's ``backward`` once for each gradient, or once without for a scalar output.

    Args:
        problem: the program at its point.
        gradients: weights for the outputs, one for each call.
        tolerance: how close ``.grad`` must come to the exact sum.
        retain_graph: keep the graph after each call; needed for more than one.
        zero_grad: set every ``.grad`` to zero before each further call.
        explain: tell the chain rule of each call step by step.
        show: names of statements whose values and gradients are wanted too.

    Raises:
        JacliError: what torch would refuse, before anything is computed.
    """
    given = tuple(gradients)
    names = names_to_show(problem.program, show)
    weights = _weights(problem, given)
    _check_calls(len(weights), retain_graph=retain_graph)
    if explain:
        check_steps(problem)
    if problem.lowered is None:
        raise too_long()
    exact = calculus.Exact(problem)
    symbols.sympy()  # torch imports it for a first gradient; counted once, it is there for the formulas
    graph = Graph.of(problem, names)
    _check_graph(graph)
    calls = _Calls(graph, names, retain_graph=retain_graph, zero_grad=zero_grad, explain=explain)
    for row in weights:
        calls.call(row, given=bool(given))
    added = weights[-1:] if zero_grad else weights
    entries = calculus.weighted_entries(exact, added, lambda _: calls.left(), tolerance)
    entries = tuple(map(_judged, entries, calls.left()))
    block = Block("backward", ("backward",), problem.columns, (entries,), vector=True)
    result = calculus.assembled("backward", problem, calls.floats, exact, [block], tolerance=tolerance)
    return replace(result, backward=calls.told(), shown=calls.shown())


def _judged(entry: Entry, value: float) -> Entry:
    """The verdict on what torch left in ``.grad``, a nan included where no exact reading would look for one."""
    if math.isfinite(value) or entry.status not in ("agree", "disagree"):
        return entry
    reason = "backward multiplies by every derivative on its way; 0 times one that is not finite is nan"
    return replace(entry, value=value, status="rounding", reason=reason)


# ---- what torch would refuse


def _weights(problem: Problem, given: Sequence[Any]) -> list[Vector]:
    """The weights of each call, checked against the outputs."""
    names = problem.program.output_names()
    if given:
        return [read_vector(gradient, problem.output_shapes, names, "gradient") for gradient in given]
    if problem.output_size != 1 or len(problem.program.outputs) != 1:
        raise _gradient_needed(problem)
    return [read_vector([1], [()], names, "gradient")]


def _gradient_needed(problem: Problem) -> JacliError:
    count, shapes = problem.output_size, problem.output_shapes
    if not count:
        return JacliError("the output has no entries, so there is nothing to go back from", kind="shape")
    if len(shapes) == 1:
        holder = f"the output has {count} entries (shape {_shape(shapes[0])})"
    else:
        holder = f"the {len(shapes)} outputs have {count} entries"
    ones = ",".join(["1"] * count)
    first = ",".join(["1", *["0"] * (count - 1)])
    return JacliError(
        f"{holder}, so backward needs a gradient of that shape: several numbers have no single gradient, they have a "
        f"Jacobian with {count} rows, and entry i of the argument is the weight of row i in the sum that is computed",
        None,
        f"type --gradient {ones} for the plain sum of the rows, --gradient {first} for the first row alone"
        if count <= 8
        else "type --gradient with one number for each entry, or make one number of the output: sum(…)",
        kind="gradient",
    )


def _shape(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _check_calls(count: int, *, retain_graph: bool) -> None:
    if count > 1 and not retain_graph:
        raise JacliError(
            f"{count} calls of backward need the graph to be retained: each call frees the intermediate values that it "
            "used, and the next one would go through the graph a second time without them",
            None,
            "add --retain-graph (and --zero-grad where the calls shall not add up in .grad)",
            kind="gradient",
        )
    if count > MOST_CALLS:
        raise JacliError(f"{count} calls of backward are too many: at most {MOST_CALLS}", kind="limit")


def _check_graph(graph: Graph) -> None:
    """Torch refuses an output that depends on no leaf; of several outputs one that does is enough here."""
    if not any(output.requires_grad for output in graph.outputs):
        names = ", ".join(graph.leaves) or "no variable"
        raise JacliError(
            f"the output does not depend on {names} here, so there is no graph for backward to go through",
            None,
            "jacobian shows the zeros",
            kind="gradient",
        )


# ---- the calls


class _Calls:
    """Calls of ``backward`` on one graph, and what each of them did to ``.grad``."""

    def __init__(
        self, graph: Graph, names: Sequence[str], *, retain_graph: bool, zero_grad: bool, explain: bool
    ) -> None:
        self.graph = graph
        self.floats = graph.floats()
        self._names = names
        self._retain, self._zero, self._explain = retain_graph, zero_grad, explain
        size = sum(output.numel() for output in graph.outputs) * sum(leaf.numel() for leaf in graph.leaves.values())
        self._rows = self.floats.rows() if size <= calculus.MOST_SHARES else []
        self._calls: list[Call] = []
        self._kept = {name: graph.nodes[graph.problem.program.names[name]] for name in names}
        for tensor in self._kept.values():
            if tensor.requires_grad:
                tensor.retain_grad()

    def call(self, weights: Vector, *, given: bool) -> None:
        """One call."""
        if self._zero and self._calls:
            self._clear()
        row = weights.doubles
        total = () if self._rows else tuple(self.floats.vjp(row))
        scaled = tuple(tuple(w * slope for slope in slopes) for w, slopes in zip(row, self._rows, strict=False))
        before = self._held()
        steps = self._backward(row if given else None)
        self._calls.append(
            Call(row, given, scaled, total or _sum(scaled), self._column(row), before, self._held(), steps)
        )

    def _backward(self, weights: Sequence[float] | None) -> tuple[Step, ...]:
        if not self._explain:
            self._run(weights)
            return ()
        with recorded(self.graph) as steps:
            self._run(weights)
            return steps()

    def _run(self, weights: Sequence[float] | None) -> None:
        """Torch's own backward."""
        outputs = self.graph.outputs
        if weights is None:
            outputs[0].backward(retain_graph=self._retain)
            return
        gradients = _in_shapes(weights, outputs)
        if len(outputs) == 1:
            outputs[0].backward(gradients[0], retain_graph=self._retain)
            return
        pairs = [pair for pair in zip(outputs, gradients, strict=True) if pair[0].requires_grad]
        floats.torch().autograd.backward(*zip(*pairs, strict=True), retain_graph=self._retain)

    def _clear(self) -> None:
        for tensor in (*self.graph.leaves.values(), *self._kept.values()):
            if tensor.requires_grad and tensor.grad is not None:
                tensor.grad.zero_()

    def _held(self) -> tuple[Held, ...]:
        return tuple(
            Held(name, tuple(leaf.shape), None if leaf.grad is None else flat(leaf.grad))
            for name, leaf in self.graph.leaves.items()
        )

    def _column(self, weights: Sequence[float]) -> tuple[float, ...] | None:
        if not _square(self._rows):
            return None
        return tuple(sum(slope * weight for slope, weight in zip(row, weights, strict=True)) for row in self._rows)

    def left(self) -> list[float]:
        """What is in ``.grad`` now, a number a column; 0 where torch holds None."""
        return [
            number
            for held in self._held()
            for number in (held.values if held.values is not None else (0.0,) * math.prod(held.shape))
        ]

    def shown(self) -> tuple[Shown, ...]:
        """The statements asked for, with what ``retain_grad`` holds."""
        gradients = {name: tensor.grad for name, tensor in self._kept.items() if tensor.requires_grad}
        return shown(self.graph, self._names, gradients)

    def told(self) -> Backward:
        """Everything that happened."""
        rows = tuple(map(tuple, self._rows))
        return Backward(tuple(self._calls), rows, _symmetric(rows) if _square(rows) else None)


def _in_shapes(weights: Sequence[float], outputs: Sequence[Any]) -> list[Any]:
    """Flat weights as one tensor an output, in its shape."""
    t, start, gradients = floats.torch(), 0, []
    for output in outputs:
        part = weights[start : start + output.numel()]
        start += output.numel()
        gradients.append(t.tensor(part, dtype=t.float64).reshape(output.shape))
    return gradients


def _sum(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(map(sum, zip(*rows, strict=True)))


def _square(rows: Sequence[Sequence[float]]) -> bool:
    return len(rows) > 1 and len(rows) == len(rows[0])


def _symmetric(rows: Sequence[Sequence[float]]) -> bool:
    return all(math.isclose(rows[i][j], rows[j][i], rel_tol=_SAME) for i in range(len(rows)) for j in range(i))
