"""The program in torch, all points at once: one backward pass a row serves every point.

The points are columns of leaves; the gradient of a row's sum over the points holds each point's own row, for no
point depends on another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jacli.readings import floats
from jacli.stream.task import Task, Variable


class Autograd:
    """The user's own program, differentiated by torch."""

    def __init__(self, task: Task) -> None:
        self.task = task
        program = task.program
        arrays = any(task.shapes) or any(variable.shape for variable in task.layout.variables)
        chooses = any(node.op == "select" for node in program.nodes)
        #: Arrays are mapped over the points; where the points choose between branches, single numbers are used.
        self._forward = self._columns if not arrays else self._single if chooses else self._mapped

    def __call__(self, columns: Any) -> tuple[Any, Any]:
        """Values and derivatives at the points whose numbers are the rows of ``columns`` (a row a number).

        Returns:
            Tensors (output entries, points) and (derivative entries, points).
        """
        t = floats.torch()
        leaves = {v.name: self._leaf(columns, v) for v in self.task.layout.variables}
        inputs = [leaves[variable.name] for variable in self.task.wrt]
        outputs = self._forward(leaves, columns.shape[1])
        entries = getattr(self, "_" + self.task.command)(outputs, inputs)
        return t.stack([output.detach() for output in outputs]), t.cat([_rows(part) for part in entries])

    def _leaf(self, columns: Any, variable: Variable) -> Any:
        """One variable at every point: (points, *shape)."""
        if not variable.shape:
            return columns[variable.places[0]].clone().requires_grad_()
        start, stop = variable.places[0], variable.places[-1] + 1
        return columns[start:stop].T.reshape(-1, *variable.shape).clone().requires_grad_()

    # ---- forward: a column an output entry

    def _columns(self, leaves: dict[str, Any], count: int) -> list[Any]:
        outputs = self.task.program.outputs
        values = floats.evaluate(self.task.program.nodes, outputs, leaves)
        return [_column(values[node], count, leaves) for node in outputs]

    def _mapped(self, leaves: dict[str, Any], _: int) -> list[Any]:
        t = floats.torch()
        names = list(leaves)
        program = self.task.program

        def one(*tensors: Any) -> tuple[Any, ...]:
            values = floats.evaluate(program.nodes, program.outputs, dict(zip(names, tensors, strict=True)))
            shaped = zip(program.outputs, self.task.output_shapes, strict=True)
            return tuple(values[node].expand(shape).reshape(-1) for node, shape in shaped)

        parts = t.vmap(one)(*leaves.values())
        return [column for part in parts for column in part.unbind(1)]

    def _single(self, leaves: dict[str, Any], count: int) -> list[Any]:
        tape = self.task.lowered.tape
        entries: dict[str, Any] = {}
        for variable in self.task.layout.variables:
            nodes = self.task.lowered.variables[variable.name]
            flat = leaves[variable.name].reshape(count, -1).unbind(1)
            entries |= {tape.ops[node].value: column for node, column in zip(nodes, flat, strict=True)}
        values = floats.evaluate(tape.ops, self.task.output_nodes, entries)
        return [_column(values[node], count, leaves) for node in self.task.output_nodes]

    # ---- backward: parts (points, …) whose columns are the derivative's entries in order

    def _jacobian(self, outputs: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        return [part for output in outputs for part in floats.gradient(output.sum(), inputs)]

    _grad = _jacobian

    def _vjp(self, outputs: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        assert self.task.weights is not None
        weights = self.task.weights.doubles
        parts = [
            output * weight for output, weight in zip(outputs, weights, strict=True) if weight
        ]  # 0 times nan is nan
        return floats.gradient(sum(parts[1:], parts[0]).sum(), inputs) if parts else list(map(_zeros, inputs))

    def _jvp(self, outputs: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """The derivative by u of ``(u·J)·tangent``: reverse mode twice."""
        t = floats.torch()
        result = []
        for output in outputs:
            u = t.ones_like(output, requires_grad=True)
            row = floats.gradient((output * u).sum(), inputs, create_graph=True)
            total = self._along(row)
            result.append(floats.gradient(total.sum(), [u])[0])
        return result

    def _along(self, row: Sequence[Any]) -> Any:
        """A row's product with the tangent, a number a point."""
        assert self.task.tangent is not None
        steps = iter(self.task.tangent.doubles)
        flat = [column for part in row for column in _rows(part)]
        parts = [column * step for column, step in zip(flat, steps, strict=True) if step]
        return sum(parts[1:], parts[0]) if parts else flat[0] * 0

    def _hessian(self, outputs: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        slope = floats.gradient(outputs[0].sum(), inputs, create_graph=True)
        return [part for first in slope for row in _rows(first) for part in floats.gradient(row.sum(), inputs)]


def _column(value: Any, count: int, leaves: dict[str, Any]) -> Any:
    """One number a point, of the points' own type also where the program is a constant."""
    some = next(iter(leaves.values()), value)
    return value.to(some.dtype).to(some.device).expand(count)


def _rows(part: Any) -> Any:
    """(points, *shape) as (entries, points)."""
    return (
        part.detach().reshape(1, -1) if part.ndim == 1 and not part.requires_grad else part.reshape(part.shape[0], -1).T
    )


def _zeros(tensor: Any) -> Any:
    return floats.torch().zeros_like(tensor)
