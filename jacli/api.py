"""The same work as the command line's, without a process. See ``docs/python.md``.

Each function first reads and binds its request, and then imports what computes: a refusal costs no torch or SymPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jacli import sparse
from jacli.errors import JacliError
from jacli.language.parser import read
from jacli.problem import Problem, Tolerance, bound, prepare, read_vector
from jacli.result import Result

if TYPE_CHECKING:
    from jacli.sparse.result import LargeResult
    from jacli.sparse.system import System

__all__ = [
    "backward",
    "check",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "read",
    "sparse_jacobian",
    "sparsity",
    "vjp",
]


def jacobian(
    text: str,
    at: Any,
    *,
    wrt: Any = None,
    vars: Any = None,
    weights: Any = None,
    show: Any = (),
    check: str = "suspect",
    most_dense: int | None = sparse.MOST_DENSE,
    rtol: float = 1e-9,
    atol: float = 0.0,
) -> Result | LargeResult:
    """The full Jacobian of a program at a point, and ``weights · J`` when weights are given.

    Args:
        text: the program.
        at: the point: text as ``--at`` takes it, a number, a sequence, a numpy array, or a mapping of names to these.
        wrt: names to differentiate by, in this order; the other variables are held fixed.
        vars: the order in which a point without names binds the variables.
        weights: one number an output entry, flat or in the outputs' shape.
        show: names of statements whose values are wanted too, and the gradients that reach them where there are
            weights, or one scalar output.
        check: of a large Jacobian: ``suspect`` compares every entry and proves the doubtful ones and a sample,
            ``all`` proves every entry, ``none`` proves and compares nothing. Small ones are always proved.
        most_dense: a Jacobian of more entries, zeros included, is large: its result is a sparse ``LargeResult``;
            None refuses a large one.
        rtol: relative tolerance; a float agrees when ``|float - exact| <= rtol*|exact| + atol``, or rounding the
            typed numbers to doubles explains the difference.
        atol: absolute tolerance.

    Raises:
        JacliError: when the request is wrong; nothing was computed.
    """
    limit = sparse.MOST_DENSE if most_dense is None else most_dense
    problem = _read(text, at, vars, wrt, show, limit, long_is_large=most_dense is not None)
    if not isinstance(problem, Problem):
        if most_dense is None:
            raise sparse.too_large("Jacobian", problem.rows, problem.columns)
        from jacli.sparse import commands

        return commands.jacobian(problem, Tolerance(rtol, atol), check, weights)
    row = None if weights is None else _weights(problem, weights)
    from jacli import calculus

    tell = _shower(problem, show, None if row is None else row.doubles)
    return tell(calculus.jacobian(problem, Tolerance(rtol, atol), row))


def vjp(
    text: str,
    at: Any,
    weights: Any,
    *,
    wrt: Any = None,
    vars: Any = None,
    show: Any = (),
    check: str = "suspect",
    most_dense: int = sparse.MOST_DENSE_BESIDE_A_PRODUCT,
    rtol: float = 1e-9,
    atol: float = 0.0,
) -> Result | LargeResult:
    """``weights · J``, as torch's ``backward(gradient=weights)`` computes it. Arguments as for ``jacobian``."""
    problem = _read(text, at, vars, wrt, show, most_dense)
    if not isinstance(problem, Problem):
        from jacli.sparse import commands

        return commands.vjp(problem, weights, Tolerance(rtol, atol), check)
    row = _weights(problem, weights)
    from jacli import calculus

    return _shower(problem, show, row.doubles)(calculus.vjp(problem, row, Tolerance(rtol, atol)))


def jvp(
    text: str,
    at: Any,
    tangent: Any,
    *,
    wrt: Any = None,
    vars: Any = None,
    check: str = "suspect",
    most_dense: int = sparse.MOST_DENSE_BESIDE_A_PRODUCT,
    rtol: float = 1e-9,
    atol: float = 0.0,
) -> Result | LargeResult:
    """``J · tangent``; the tangent has one number a variable entry. Arguments as for ``jacobian``."""
    problem = _read(text, at, vars, wrt, (), most_dense)
    if not isinstance(problem, Problem):
        from jacli.sparse import commands

        return commands.jvp(problem, tangent, Tolerance(rtol, atol), check)
    from jacli import calculus

    return calculus.jvp(problem, _tangent(problem, tangent), Tolerance(rtol, atol))


def grad(
    text: str,
    at: Any,
    *,
    wrt: Any = None,
    vars: Any = None,
    show: Any = (),
    check: str = "suspect",
    most_dense: int = sparse.MOST_DENSE_BESIDE_A_PRODUCT,
    rtol: float = 1e-9,
    atol: float = 0.0,
) -> Result | LargeResult:
    """The gradient of a program with one scalar output. Arguments as for ``jacobian``."""
    problem = _read(text, at, vars, wrt, show, most_dense)
    if not isinstance(problem, Problem):
        from jacli.sparse import commands

        return commands.grad(problem, Tolerance(rtol, atol), check)
    from jacli import calculus

    return _shower(problem, show)(calculus.grad(problem, Tolerance(rtol, atol)))


def hessian(text: str, at: Any, *, wrt: Any = None, vars: Any = None, rtol: float = 1e-9, atol: float = 0.0) -> Result:
    """The second derivatives of a program with one scalar output. Arguments as for ``jacobian``."""
    problem = prepare(text, at, vars=vars, wrt=wrt)
    from jacli import calculus

    return calculus.hessian(problem, Tolerance(rtol, atol))


def hvp(
    text: str,
    at: Any,
    tangent: Any,
    *,
    wrt: Any = None,
    vars: Any = None,
    check: str = "suspect",
    most_dense: int = sparse.MOST_DENSE_BESIDE_A_PRODUCT,
    rtol: float = 1e-9,
    atol: float = 0.0,
) -> Result | LargeResult:
    """Hessian times tangent of a program with one scalar output. Arguments as for ``jvp``."""
    problem = _read(text, at, vars, wrt, (), most_dense, long_is_large=True)
    if not isinstance(problem, Problem):
        from jacli.sparse import commands

        return commands.hvp(problem, tangent, Tolerance(rtol, atol), check)
    from jacli import calculus

    return calculus.hvp(problem, _tangent(problem, tangent), Tolerance(rtol, atol))


def sparse_jacobian(text: str, at: Any, *, wrt: Any = None, vars: Any = None, check: str = "suspect") -> LargeResult:
    """The Jacobian in coordinates, however small: ``result.to_coo()`` is a SciPy array. Arguments as for ``jacobian``.

    Raises:
        JacliError: when the request is wrong, or too many entries can differ from zero.
    """
    found = jacobian(text, at, wrt=wrt, vars=vars, check=check, most_dense=-1)
    assert not isinstance(found, Result), "whatever has more than -1 entries is large"
    return found


def sparsity(text: str, at: Any = None, *, wrt: Any = None, vars: Any = None) -> LargeResult:
    """Which entries of the Jacobian can differ from zero; numbers need no point, arrays need one for their shapes."""
    from jacli.sparse import commands

    return commands.sparsity(text, at, vars=vars, wrt=wrt)


def check(
    text: str | None,
    at: Any,
    *,
    claim: Any = None,
    trials: Any = 5,
    weights: Any = None,
    torch: str | None = None,
    wrt: Any = None,
    vars: Any = None,
    rtol: float = 1e-9,
    atol: float = 0.0,
) -> Result:
    """All witnesses of a Jacobian side by side, and the judgement of a derivative that was derived by hand.

    Args:
        text: the program; it may be None with ``torch``.
        at, wrt, vars, rtol, atol: as for ``jacobian``.
        claim: a Jacobian, the gradient or the Hessian of a scalar output, or with ``weights`` a VJP: formulas or
            numbers in jacli's language, rows separated by ``;``, or ``@FILE``, or nested sequences, or an array.
        trials: at how many other points formulas are tried.
        weights: as for ``jacobian``.
        torch: ``FILE.py:FUNCTION`` or ``MODULE:FUNCTION``, a function of tensors whose autograd is judged. This runs
            the code in that file.

    Raises:
        JacliError: when the request is wrong, or the function fails.
    """
    if torch is not None:
        from jacli.checks import foreign

        return foreign.check(torch, text, at, Tolerance(rtol, atol), vars=vars, wrt=wrt, claim=claim, weights=weights)
    if text is None:
        raise JacliError("an expression is missing", kind="request")
    problem = prepare(text, at, vars=vars, wrt=wrt)
    from jacli.checks import check as command

    row = None if weights is None else _weights(problem, weights)
    return command.check(problem, Tolerance(rtol, atol), row, claim, trials)


def backward(
    text: str,
    at: Any,
    *,
    gradients: Any = (),
    retain_graph: bool = False,
    zero_grad: bool = False,
    explain: bool = False,
    show: Any = (),
    wrt: Any = None,
    vars: Any = None,
    rtol: float = 1e-9,
    atol: float = 0.0,
) -> Result:
    """What torch's ``backward`` leaves in ``.grad``, call by call.

    Args:
        text, at, wrt, vars, rtol, atol: as for ``jacobian``.
        gradients: one gradient a call, each with one number an output entry, flat or in the output's shape; none for
            a scalar output.
        retain_graph: keep the graph after each call, as more than one call needs.
        zero_grad: set every ``.grad`` to zero before each further call; without it calls add up.
        explain: tell the chain rule step by step.
        show: names of statements whose values and gradients are wanted too.

    Raises:
        JacliError: what torch would refuse, and every wrong request; nothing was computed.
    """
    problem = prepare(text, at, vars=vars, wrt=wrt)
    from jacli import backprop

    return backprop.backward(
        problem,
        (gradients,) if isinstance(gradients, str) else gradients,
        Tolerance(rtol, atol),
        retain_graph=retain_graph,
        zero_grad=zero_grad,
        explain=explain,
        show=show,
    )


def _shower(problem: Problem, show: Any, weights: Sequence[float] | None = None) -> Callable[[Result], Result]:
    """Adds to a result the statements to show: names are checked now, tensors are asked for later."""
    if not show:
        return lambda result: result
    from jacli import intermediate

    names = intermediate.names_to_show(problem.program, show)
    if weights is None and problem.output_size == 1:
        weights = (1.0,)

    def add(result: Result) -> Result:
        graph = intermediate.Graph.of(problem, names)
        gradients = {} if weights is None else intermediate.weighted_gradients(graph, names, weights)
        return replace(result, shown=intermediate.shown(graph, names, gradients))

    return add


def _read(
    text: str, at: Any, vars: Any, wrt: Any, show: Any, most_dense: int, *, long_is_large: bool = False
) -> Problem | System:
    """A problem to prove entry by entry, or a large one as a system of families.

    ``long_is_large``: so is one that is too long to be written out in single numbers.
    """
    large = sparse.from_text(text, at, most_dense, vars=vars, wrt=wrt)
    if large is None:
        found = bound(text, at, vars=vars, wrt=wrt)
        large = sparse.from_arrays(found, most_dense)
        if large is None:
            problem = found.problem()
            large = sparse.from_arrays(found, -1) if long_is_large and problem.lowered is None else None
            if large is None:
                return problem
    if show:
        raise JacliError("statements of a large program are not shown", None, "ask without --show", kind="option")
    return large


def _weights(problem: Problem, given: Any) -> Any:
    return read_vector(given, problem.output_shapes, problem.program.output_names(), "weights")


def _tangent(problem: Problem, given: Any) -> Any:
    shapes = [variable.shape for variable in problem.wrt]
    return read_vector(given, shapes, [variable.name for variable in problem.wrt], "tangent")
