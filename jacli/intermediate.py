"""What lies between the variables and the outputs: values, gradients, and the chain rule step by step.

The numbers are torch's own: gradients are what its hooks and ``retain_grad`` report, local derivatives those of each
operation in a graph of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jacli.autograd import Floats, evaluated
from jacli.errors import JacliError
from jacli.functions import ROWS
from jacli.language.points import read_names
from jacli.language.syntax import Program
from jacli.problem import Problem
from jacli.readings import floats
from jacli.result import Held, Passed, Shown, Step

#: Most operations whose chain rule is told, and most entries of a local derivative that is written out.
MOST_STEPS = 500
MOST_LOCAL = 400

_ENTRYWISE = frozenset(("add", "sub", "mul", "div", "neg", "pow", "select"))


@dataclass(frozen=True, slots=True)
class Graph:
    """A program evaluated in torch: leaves that collect gradients, a tensor a node, the outputs in their shapes."""

    problem: Problem
    leaves: Mapping[str, Any]
    nodes: Mapping[int, Any]
    outputs: tuple[Any, ...]

    @classmethod
    def of(cls, problem: Problem, names: Sequence[str] = ()) -> Graph:
        """The graph of the outputs, and of the statements called ``names`` where nothing else needs them."""
        program = problem.program
        leaves, nodes = evaluated(problem, [program.names[name] for name in names])
        pairs = zip(program.outputs, problem.output_shapes, strict=True)
        return cls(problem, leaves, nodes, tuple(nodes[node].expand(shape) for node, shape in pairs))

    def floats(self) -> Floats:
        """The same tensors, to be differentiated without leaving a trace."""
        return Floats(tuple(self.leaves.values()), self.outputs)

    def held(self, node: int, tensor: Any | None, name: str | None = None) -> Held:
        """A tensor of the shape of ``node``, written down."""
        program = self.problem.program
        label = label_of(program, node) if name is None else name
        return Held(label, tuple(self.problem.shapes[node]), None if tensor is None else flat(tensor))


def flat(tensor: Any) -> tuple[float, ...]:
    """A tensor's entries, row-major."""
    return tuple(tensor.detach().reshape(-1).tolist())


def label_of(program: Program, node: int) -> str:
    """What a node is called: the statement's or the variable's name, or its text on one line."""
    return program.source_name(node) or " ".join(program.source(node).split())


# ---- names to show


def names_to_show(program: Program, given: Any) -> tuple[str, ...]:
    """The statements that ``--show`` asks for. Raises JacliError at a name that no statement gives a value."""
    if not given:
        return ()
    names = read_names(given, "--show")
    for name in names:
        if name in program.names:
            continue
        if name in program.variables:
            hint = "its gradient is part of the result; --show is for statements, name = expression"
            raise JacliError(f"--show names {name}, which is a variable", None, hint, kind="name")
        known = ", ".join(program.names)
        hint = f"the statements are {known}" if known else "name a part of the expression: b = …; …"
        raise JacliError(f"--show names {name}, which no statement gives a value", None, hint, kind="name")
    return names


def shown(graph: Graph, names: Sequence[str], gradients: Mapping[str, Any]) -> tuple[Shown, ...]:
    """Statements with their values and with the gradients that reached them (None where none did)."""
    program = graph.problem.program
    return tuple(
        Shown(
            " ".join(program.source(node).split()),
            graph.held(node, graph.nodes[node], name),
            graph.held(node, gradients.get(name), name),
        )
        for name, node in ((name, program.names[name]) for name in names)
    )


def weighted_gradients(graph: Graph, names: Sequence[str], weights: Sequence[float]) -> dict[str, Any]:
    """For each name, the gradient of the outputs' weighted sum: what ``retain_grad`` would hold after one backward."""
    total = graph.floats().weighted(weights)
    tensors = {name: graph.nodes[graph.problem.program.names[name]] for name in names}
    on_the_way = {name: tensor for name, tensor in tensors.items() if tensor.requires_grad}
    if not total.requires_grad or not on_the_way:
        return {}
    found = floats.torch().autograd.grad(total, list(on_the_way.values()), retain_graph=True, allow_unused=True)
    return {name: gradient for name, gradient in zip(on_the_way, found, strict=True) if gradient is not None}


# ---- the chain rule


def check_steps(problem: Problem) -> None:
    """Refuse a program too long to be told step by step."""
    count = len(problem.program.nodes)
    if count > MOST_STEPS:
        message = f"the chain rule of {count} operations is too long to read; --explain tells at most {MOST_STEPS}"
        raise JacliError(message, None, "--show names single statements", kind="limit")


@contextmanager
def recorded(graph: Graph) -> Iterator[Callable[[], tuple[Step, ...]]]:
    """Listen to a backward pass; what is yielded tells its steps when it is over."""
    order: dict[int, Any] = {}
    handles = [
        tensor.register_hook(_listener(order, node))
        for node, tensor in sorted(graph.nodes.items(), reverse=True)  # a tensor may be two nodes: the outer first
        if tensor.requires_grad and graph.problem.program.nodes[node].op != "variable"
    ]
    try:
        yield lambda: _steps(graph, order)
    finally:
        for handle in handles:
            handle.remove()


def _listener(order: dict[int, Any], node: int) -> Callable[[Any], None]:
    def listen(gradient: Any) -> None:
        order[node] = gradient.detach().clone()

    return listen


def _steps(graph: Graph, order: Mapping[int, Any]) -> tuple[Step, ...]:
    numbers = {node: number for number, node in enumerate(order, start=1)}
    return tuple(
        Step(
            " ".join(graph.problem.program.source(node).split()),
            graph.held(node, graph.nodes[node]),
            graph.held(node, gradient),
            _passes(graph, node, gradient, numbers),
        )
        for node, gradient in order.items()
    )


def _passes(graph: Graph, node: int, gradient: Any, numbers: Mapping[int, int]) -> tuple[Passed, ...]:
    """What one operation hands to each of its arguments: gradient times local derivative."""
    output, arguments = floats.alone(graph.problem.program.nodes, node, graph.nodes)
    sent = floats.gradient(output, list(arguments.values()), gradient)
    program = graph.problem.program
    return tuple(
        Passed(
            label_of(program, arg),
            numbers.get(arg),
            *_local(program.nodes[node].op, output, tensor),
            graph.held(arg, part),
        )
        for (arg, tensor), part in zip(arguments.items(), sent, strict=True)
    )


def _local(op: str, output: Any, argument: Any) -> tuple[tuple[tuple[float, ...], ...], bool]:
    """The local derivative's rows, and whether it is entrywise: then its diagonal, as a single row."""
    row = ROWS.get(op)
    entrywise = output.shape == argument.shape and (op in _ENTRYWISE or (row is not None and row.kind == "elementwise"))
    if entrywise:
        return (flat(floats.gradient(output.sum(), [argument])[0]),), True
    if output.numel() * argument.numel() > MOST_LOCAL:
        return (), False
    return tuple(flat(floats.gradient(entry, [argument])[0]) for entry in output.reshape(-1)), False
