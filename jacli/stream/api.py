"""Many points from Python: arrays in, arrays out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jacli.errors import JacliError
from jacli.result import entry_names
from jacli.stream.task import COMMANDS, prepare


@dataclass(frozen=True, slots=True)
class Points:
    """Results at many points.

    Attributes:
        variables: the names of the entries differentiated by.
        outputs: the names of the output entries.
        values: (points, output entries).
        derivative: (points, *shape): (outputs, variables) of a Jacobian, (variables, variables) of a Hessian, a vector
            otherwise.
        status: (points,) of words: each point is as bad as its worst entry.
        reasons: by row, why a point does not plainly agree.
    """

    variables: tuple[str, ...]
    outputs: tuple[str, ...]
    values: Any
    derivative: Any
    status: Any
    reasons: Mapping[int, str]


def at_points(
    text: str,
    points: Any,
    command: str = "jacobian",
    *,
    vars: Any = None,
    wrt: Any = None,
    weights: Any = None,
    tangent: Any = None,
    check: str = "suspect",
    dtype: str = "float64",
    device: str = "cpu",
    rtol: float = 1e-9,
    atol: float = 0.0,
) -> Points:
    """A derivative at every row of an array.

    Args:
        text: the program.
        points: an array (points, numbers), or a mapping from names to arrays (points, *shape).
        command: ``jacobian``, ``vjp``, ``jvp``, ``grad`` or ``hessian``.
        vars: names that bind an array's columns, in order.
        wrt: names to differentiate by; all where None.
        weights: for ``vjp``, the same at every point.
        tangent: for ``jvp``, the same at every point.
        check: ``suspect`` compares two readings and proves what looks doubtful, ``all`` proves every point, ``none``
            evaluates formulas alone.
        dtype: ``float64`` or ``float32``.
        device: ``cpu`` or ``cuda``.
        rtol: relative difference that still agrees.
        atol: absolute difference that still agrees.

    Raises:
        JacliError: when the request is wrong; nothing was computed.
    """
    import numpy as np

    columns, numbers = _matrix(points)
    _refuse(command, weights, tangent, check, dtype)
    if not np.isfinite(numbers).all():
        raise JacliError("the points hold a value that is not finite", kind="point")
    task = prepare(
        command,
        text,
        columns,
        numbers.shape[1],
        vars=vars,
        wrt=wrt,
        weights=weights,
        tangent=tangent,
        rtol=rtol,
        atol=atol,
    )
    numbers = numbers[:, list(task.layout.sources)]

    from jacli.stream.answer import POINT_STATUSES
    from jacli.stream.bulk import Bulk
    from jacli.stream.settle import Settler
    from jacli.stream.source import Rows

    bulk, settle = Bulk(task, check, dtype, device), Settler(task, single=dtype == "float32")
    count, kind = len(numbers), np.float32 if bulk.single else np.float64
    values = np.empty((count, len(task.outputs)), kind)
    derivative = np.empty((count, len(task.entries)), kind)
    status = np.empty(count, np.uint8)
    reasons: dict[int, str] = {}
    for start in range(0, count, bulk.together):
        part = slice(start, start + bulk.together)
        answer = bulk(numbers[part])
        settle(Rows(np.arange(start, start + len(numbers[part])), numbers[part]), answer)
        values[part], derivative[part], status[part] = answer.values, answer.entries, answer.status
        reasons |= {start + row: reason for row, reason in answer.reasons.items()}
    words = np.array(POINT_STATUSES)[status]
    return Points(task.columns, task.outputs, values, derivative.reshape(-1, *task.shape), words, reasons)


def _refuse(command: str, weights: Any, tangent: Any, check: str, dtype: str) -> None:
    for what, value, choices in (
        ("command", command, COMMANDS),
        ("check", check, ("suspect", "all", "none")),
        ("dtype", dtype, ("float64", "float32")),
    ):
        if value not in choices:
            raise JacliError(f"{what} is one of {', '.join(choices)}, not {value}", kind="option")
    if command == "vjp" and weights is None:
        raise JacliError("vjp needs weights", kind="option")
    if command == "jvp" and tangent is None:
        raise JacliError("jvp needs a tangent", kind="option")


def _matrix(points: Any) -> tuple[tuple[str, ...] | None, Any]:
    """The columns' names, if there are any, and a float64 matrix with a row a point."""
    import numpy as np

    if not isinstance(points, Mapping):
        array = np.asarray(points, dtype=np.float64)
        if array.ndim == 0:
            raise JacliError("the points must be an array with a row a point", kind="point")
        return None, array.reshape(len(array), math.prod(array.shape[1:]))
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in points.items()}
    counts = {array.shape[0] if array.ndim else 0 for array in arrays.values()}
    if len(counts) != 1 or 0 in counts:
        raise JacliError("every variable needs the same number of points, at least one", kind="point")
    names = tuple(entry for name, array in arrays.items() for entry in entry_names(name, array.shape[1:]))
    return names, np.concatenate([array.reshape(len(array), -1) for array in arrays.values()], axis=1)
