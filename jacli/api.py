"""The same work as the command line's, without a process. See ``docs/python.md``."""

from __future__ import annotations

from typing import Any

from jacli.language.parser import read
from jacli.problem import Problem, prepare, read_vector
from jacli.result import Result

__all__ = ["grad", "hessian", "hvp", "jacobian", "jvp", "read", "vjp"]


def jacobian(
    text: str, at: Any, *, wrt: Any = None, vars: Any = None, weights: Any = None, rtol: float = 1e-9, atol: float = 0.0
) -> Result:
    """The full Jacobian of a program at a point, and ``weights · J`` when weights are given.

    Args:
        text: the program.
        at: the point: text as ``--at`` takes it, a number, a sequence, a numpy array, or a mapping of names to these.
        wrt: names to differentiate by, in this order; the other variables are held fixed.
        vars: the order in which a point without names binds the variables.
        weights: one number an output entry, flat or in the outputs' shape.
        rtol, atol: a float agrees when ``|float - exact| <= rtol*|exact| + atol``, or rounding the typed numbers to
            doubles explains the difference.

    Raises:
        JacliError: when the request is wrong; nothing was computed.
    """
    from jacli import calculus

    problem = prepare(text, at, vars=vars, wrt=wrt)
    row = None if weights is None else _weights(problem, weights)
    return calculus.jacobian(problem, calculus.Tolerance(rtol, atol), row)


def vjp(
    text: str, at: Any, weights: Any, *, wrt: Any = None, vars: Any = None, rtol: float = 1e-9, atol: float = 0.0
) -> Result:
    """``weights · J``, as torch's ``backward(gradient=weights)`` computes it. Arguments as for ``jacobian``."""
    from jacli import calculus

    problem = prepare(text, at, vars=vars, wrt=wrt)
    return calculus.vjp(problem, _weights(problem, weights), calculus.Tolerance(rtol, atol))


def jvp(
    text: str, at: Any, tangent: Any, *, wrt: Any = None, vars: Any = None, rtol: float = 1e-9, atol: float = 0.0
) -> Result:
    """``J · tangent``; the tangent has one number a variable entry. Arguments as for ``jacobian``."""
    from jacli import calculus

    problem = prepare(text, at, vars=vars, wrt=wrt)
    return calculus.jvp(problem, _tangent(problem, tangent), calculus.Tolerance(rtol, atol))


def grad(text: str, at: Any, *, wrt: Any = None, vars: Any = None, rtol: float = 1e-9, atol: float = 0.0) -> Result:
    """The gradient of a program with one scalar output. Arguments as for ``jacobian``."""
    from jacli import calculus

    return calculus.grad(prepare(text, at, vars=vars, wrt=wrt), calculus.Tolerance(rtol, atol))


def hessian(text: str, at: Any, *, wrt: Any = None, vars: Any = None, rtol: float = 1e-9, atol: float = 0.0) -> Result:
    """The second derivatives of a program with one scalar output. Arguments as for ``jacobian``."""
    from jacli import calculus

    return calculus.hessian(prepare(text, at, vars=vars, wrt=wrt), calculus.Tolerance(rtol, atol))


def hvp(
    text: str, at: Any, tangent: Any, *, wrt: Any = None, vars: Any = None, rtol: float = 1e-9, atol: float = 0.0
) -> Result:
    """Hessian times tangent of a program with one scalar output. Arguments as for ``jvp``."""
    from jacli import calculus

    problem = prepare(text, at, vars=vars, wrt=wrt)
    return calculus.hvp(problem, _tangent(problem, tangent), calculus.Tolerance(rtol, atol))


def _weights(problem: Problem, given: Any) -> Any:
    return read_vector(given, problem.output_shapes, problem.program.output_names(), "weights")


def _tangent(problem: Problem, given: Any) -> Any:
    shapes = [variable.shape for variable in problem.wrt]
    return read_vector(given, shapes, [variable.name for variable in problem.wrt], "tangent")
