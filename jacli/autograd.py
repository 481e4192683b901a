"""A problem in torch at its point, and its derivatives by autograd.

Everything is made of one reverse pass, ``floats.gradient``; a JVP and second derivatives are reverse passes over a
graph that a reverse pass left behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jacli.problem import Problem
from jacli.readings import floats


@dataclass(frozen=True, slots=True)
class Floats:
    """A program evaluated in torch at a point, ready to be differentiated.

    ``inputs`` are leaf tensors, the variables differentiated; ``outputs`` the outputs. Results are flattened, so it
    makes no difference whether these are arrays or their entries one by one.
    """

    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]

    @classmethod
    def of(cls, problem: Problem) -> Floats:
        """The program as typed, arrays as arrays."""
        inputs, values = evaluated(problem)
        pairs = zip(problem.program.outputs, problem.output_shapes, strict=True)
        return cls(tuple(inputs.values()), tuple(values[node].expand(shape) for node, shape in pairs))

    @classmethod
    def by_entries(cls, problem: Problem) -> Floats:
        """The program written out in single numbers: there no entry's nan can reach another's derivative."""
        t = floats.torch()
        assert problem.lowered is not None
        tensors = {
            entry: t.tensor(value, dtype=t.float64)
            for variable in problem.variables
            for entry, value in zip(variable.entries, variable.doubles, strict=True)
        }
        inputs = tuple(tensors[name].requires_grad_() for name in problem.columns)
        outputs = [node for nodes in problem.lowered.outputs for node in nodes]
        values = floats.evaluate(problem.lowered.tape.ops, outputs, tensors)
        return cls(inputs, tuple(values[node] for node in outputs))

    def values(self) -> list[float]:
        """The outputs' entries, flattened."""
        return self.flat(self.outputs)

    def rows(self) -> list[list[float]]:
        """The Jacobian, a row an output entry."""
        return [self.row(output, entry) for output in self.outputs for entry in range(output.numel())]

    def row(self, output: Any, entry: int) -> list[float]:
        """The derivatives of one entry of one output."""
        single = output if output.ndim == 0 else output.reshape(-1)[entry]
        return self.flat(floats.gradient(single, self.inputs))

    def vjp(self, weights: Sequence[float]) -> list[float]:
        """``weights · J``. Outputs of weight zero take no part: zero times nan is nan."""
        return self.flat(floats.gradient(self.weighted(weights), self.inputs))

    def weighted(self, weights: Sequence[float]) -> Any:
        """The outputs' weighted sum: the scalar whose gradient is the VJP."""
        t = floats.torch()
        total, start = None, 0
        for output in self.outputs:
            part = t.tensor(weights[start : start + output.numel()], dtype=t.float64)
            start += output.numel()
            if not part.any():
                continue
            term = output * part[0] if output.ndim == 0 else (output * part.reshape(output.shape)).sum()
            total = term if total is None else total + term
        return t.zeros((), dtype=t.float64) if total is None else total

    def jvp(self, tangent: Sequence[float]) -> list[float]:
        """``J · tangent`` by two reverse passes: the derivative by u of ``(u·J)·tangent``.

        The classical double-vjp construction; it needs no forward mode, whose first use imports a compiler.
        """
        t = floats.torch()
        result: list[float] = []
        for output in self.outputs:
            if not output.requires_grad:
                result += [0.0] * output.numel()
                continue
            u = t.ones_like(output, requires_grad=True)
            row = floats.gradient((output * u).sum(), self.inputs, create_graph=True)
            column = self._dot(row, tangent)
            result += (
                floats.gradient(column, [u])[0].reshape(-1).tolist() if column.requires_grad else [0.0] * output.numel()
            )
        return result

    def _dot(self, parts: Sequence[Any], tangent: Sequence[float]) -> Any:
        t = floats.torch()
        total, start = t.zeros((), dtype=t.float64), 0
        for part in parts:
            piece = t.tensor(tangent[start : start + part.numel()], dtype=t.float64).reshape(part.shape)
            start += part.numel()
            total = total + (part * piece).sum()
        return total

    def hessian(self) -> list[list[float]]:
        """Second derivatives of the one scalar output, a row a variable entry: reverse over reverse."""
        slope = floats.gradient(self.outputs[0].reshape(()), self.inputs, create_graph=True)
        return [self.flat(floats.gradient(entry, self.inputs)) for part in slope for entry in part.reshape(-1)]

    def hvp(self, tangent: Sequence[float]) -> list[float]:
        """``H · tangent``: the gradient of the gradient's product with the tangent."""
        slope = floats.gradient(self.outputs[0].reshape(()), self.inputs, create_graph=True)
        return self.flat(floats.gradient(self._dot(slope, tangent), self.inputs))

    @staticmethod
    def flat(parts: Sequence[Any]) -> list[float]:
        """The entries of tensors as Python numbers, row-major."""
        return [number for part in parts for number in part.detach().reshape(-1).tolist()]


def at_the_point(problem: Problem) -> dict[str, Any]:
    """A float64 tensor a variable, in its shape."""
    t = floats.torch()
    return {
        variable.name: t.tensor(variable.doubles, dtype=t.float64).reshape(variable.shape)
        for variable in problem.variables
    }


def evaluated(problem: Problem, also: Sequence[int] = ()) -> tuple[dict[str, Any], dict[int, Any]]:
    """The leaf tensors of the variables differentiated, and a tensor for every node that the outputs need.

    ``also`` are further nodes to evaluate.
    """
    tensors = at_the_point(problem)
    inputs = {variable.name: tensors[variable.name].requires_grad_() for variable in problem.wrt}
    return inputs, floats.evaluate(problem.program.nodes, [*problem.program.outputs, *also], tensors)
