"""The commands on large systems. Everything else about them is in the modules beside this one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jacli.errors import JacliError
from jacli.problem import Tolerance, bound
from jacli.readings.tape import Tape
from jacli.sparse import arrays, coloured
from jacli.sparse.check import Checker, check_mode, unchecked
from jacli.sparse.coloured import Coloured, Products
from jacli.sparse.compare import Comparer
from jacli.sparse.derive import Derived, Entries, one_thread
from jacli.sparse.family import Floats
from jacli.sparse.point import Values, read_values
from jacli.sparse.result import LargeResult, Quantity
from jacli.sparse.system import System, from_text


def jacobian(system: System, tolerance: Tolerance, check: str = "suspect", weights: Any = None) -> LargeResult:
    """Every entry that the program can depend on, and ``weights · J`` when weights are given."""
    row = None if weights is None else _numbers(weights, system.rows, "weights")
    with one_thread():
        derived, checker = _readings(system, tolerance, check)
        value, entries = derived.values(), derived.jacobian()
        quantities = [Quantity("jacobian", entries.values, checker.jacobian(entries), entries)]
        if row is not None:
            quantities.append(_vjp(derived, checker, row))
    return _result("jacobian", system, value, quantities, tolerance, check, weights=row)


def vjp(system: System, weights: Any, tolerance: Tolerance, check: str = "suspect") -> LargeResult:
    """``weights · J``; the Jacobian is never built."""
    row = _numbers(weights, system.rows, "weights")
    with one_thread():
        derived, checker = _readings(system, tolerance, check)
        found = _vjp(derived, checker, row)
        return _result("vjp", system, derived.values(), [found], tolerance, check, weights=row)


def jvp(system: System, tangent: Any, tolerance: Tolerance, check: str = "suspect") -> LargeResult:
    """``J · tangent``; the Jacobian is never built."""
    column = _numbers(tangent, system.columns, "tangent")
    with one_thread():
        derived, checker = _readings(system, tolerance, check)
        values = derived.jvp(column.doubles)
        found = Quantity("jvp", values, checker.jvp(values, column.doubles, _exact(column)), over="outputs")
        return _result("jvp", system, derived.values(), [found], tolerance, check, tangent=column)


def grad(system: System, tolerance: Tolerance, check: str = "suspect") -> LargeResult:
    """The gradient of the one scalar output."""
    _check_scalar(system, "gradient", "jacobian or vjp")
    if isinstance(system, Coloured):
        return _gradient_of_a_whole(system, tolerance, check)
    found = jacobian(system, tolerance, check)
    quantity = found.quantities[0]
    entries = quantity.entries
    if entries is None:
        raise AssertionError("a Jacobian has entries")
    values = np.zeros(system.columns)
    values[entries.columns] = entries.values
    place = dict(enumerate(entries.columns.tolist()))
    kinds = np.zeros(system.columns, np.uint8)
    kinds[entries.columns] = quantity.verdicts.kinds
    moved = type(quantity.verdicts)(
        kinds,
        {place[k]: exact for k, exact in quantity.verdicts.exact.items()},
        {place[k]: reason for k, reason in quantity.verdicts.reasons.items()},
        quantity.verdicts.proved,
    )
    return _result("grad", system, found.value, [Quantity("grad", values, moved)], tolerance, check)


def _gradient_of_a_whole(system: Coloured, tolerance: Tolerance, check: str) -> LargeResult:
    """One reverse pass, whatever lies on the way."""
    with one_thread():
        derived, checker = _readings(system, tolerance, check)
        one = np.ones(1)
        values = derived.vjp(one)
        verdicts = checker.vjp(values, one, lambda tape, _: tape.number(1))
        return _result("grad", system, derived.values(), [Quantity("grad", values, verdicts)], tolerance, check)


def hvp(system: System, tangent: Any, tolerance: Tolerance, check: str = "suspect") -> LargeResult:
    """The Hessian of the one scalar output times ``tangent``; the Hessian is never built."""
    _check_scalar(system, "Hessian", "jacobian")
    column = _numbers(tangent, system.columns, "tangent")
    with one_thread():
        derived, checker = _readings(system, tolerance, check)
        values = derived.hvp(column.doubles)
        found = Quantity("hvp", values, checker.hvp(values, column.doubles, _exact(column)))
        return _result("hvp", system, derived.values(), [found], tolerance, check, tangent=column)


def sparsity(text: str, at: Any = None, *, vars: Any = None, wrt: Any = None) -> LargeResult:
    """The places that can differ from zero, by what each equation names. Numbers need no point.

    Raises:
        JacliError: when the program has arrays and there is no point to give their shapes, or too many places.
    """
    system = from_text(text, at, vars=vars, wrt=wrt)
    if system is None:
        if at is None:
            hint = "for example --at x=@x.npy, or --at 'x=zeros(1000)'"
            raise JacliError("arrays need a point, for their shapes", None, hint, kind="option")
        system = arrays.system(bound(text, at, vars=vars, wrt=wrt))
    entries = _pattern(system)
    found = Quantity("sparsity", entries.values, unchecked(len(entries)), entries)
    return LargeResult("sparsity", system, np.zeros(0), (found,), check="none", remarks=_remarks(system))


def _pattern(system: System) -> Entries:
    """The places that can differ from zero; the values are ones."""
    if not isinstance(system, Coloured):
        return Derived(system).pattern()
    rows, columns = system.places
    return Entries(rows, columns, np.ones(len(rows)))


def _readings(system: System, tolerance: Tolerance, check: str) -> tuple[Derived | Products, Checker | Comparer]:
    """What computes a system, and what checks that."""
    mode = check_mode(check)
    if isinstance(system, Coloured):
        products = Products(system)
        return products, Comparer(products, tolerance, mode)
    derived = Derived(system)
    return derived, Checker(derived, tolerance, mode)


def _remarks(system: System) -> tuple[str, ...]:
    """What is worth saying on standard error."""
    return system.remarks + (coloured.remarks(system) if isinstance(system, Coloured) else ())


def _vjp(derived: Derived | Products, checker: Checker | Comparer, weights: Values) -> Quantity:
    values = derived.vjp(weights.doubles)
    return Quantity("vjp", values, checker.vjp(values, weights.doubles, _exact(weights)))


def _numbers(given: Any, wanted: int, what: str) -> Values:
    """Weights or a tangent: one number an entry, flat.

    Raises:
        JacliError: naming both counts when they differ.
    """
    values = read_values(given, what)
    if values.names is not None:
        raise JacliError(f"the {what} of a large program come without names", None, "type numbers alone", kind="point")
    if len(values.doubles) != wanted:
        things = "variable" if what == "tangent" else "output"
        given_count = f"{len(values.doubles):,} number{'s' * (len(values.doubles) != 1)}"
        raise JacliError(
            f"the {things}s have {wanted:,} entries but {given_count} were given as {what}",
            None,
            f"one number for each {things} entry",
            kind="shape",
        )
    return values


def _exact(values: Values) -> Callable[[Tape, int], int]:
    """The exact node of a flat entry."""
    if values.shapes is None:
        return lambda tape, entry: values.exact(tape, entry, 0)
    starts = np.cumsum([0, *(int(np.prod(shape)) for shape in values.shapes)])

    def exact(tape: Tape, entry: int) -> int:
        owner = int(np.searchsorted(starts, entry, side="right")) - 1
        return values.exact(tape, owner, entry - int(starts[owner]))

    return exact


def _left_over(command: str, system: System, count: int, check: str) -> str:
    """What remains unchecked, and what would help."""
    if command == "hvp" and isinstance(system, Coloured):
        return "second derivatives of a program that is too long to be written out are compared with nothing"
    if not isinstance(system, Coloured):
        return f"{count:,} doubtful entries were not proved; --check all proves every one"
    if check == "all":
        return f"{count:,} entries were not proved: too many numbers stand behind each"
    return f"{count:,} doubtful entries were not proved; --check all proves every one that few numbers stand behind"


def _check_scalar(system: System, what: str, instead: str) -> None:
    if system.rows != 1:
        raise JacliError(
            f"a {what} is of one number, but this program has {system.rows:,} output entries",
            None,
            f"use {instead}, or make one number of them: sum(…)",
            kind="shape",
        )


def _result(
    command: str,
    system: System,
    value: Floats,
    quantities: Sequence[Quantity],
    tolerance: Tolerance,
    check: str,
    *,
    weights: Values | None = None,
    tangent: Values | None = None,
) -> LargeResult:
    left = 0 if check == "none" else sum(found.verdicts.left for found in quantities)
    remarks = _remarks(system)
    if left:
        remarks += (_left_over(command, system, left, check),)
    return LargeResult(
        command,
        system,
        value,
        tuple(quantities),
        None if weights is None else weights.doubles,
        None if tangent is None else tangent.doubles,
        tolerance.rtol,
        tolerance.atol,
        check,
        remarks,
    )
