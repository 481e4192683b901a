"""Large problems, in time and memory linear in the non-zeros.

One idea carries all of it: a ``Family`` is one formula and many rows. Equations of equal shape in a text are one,
``{x[i+1] - x[i] for i in 0:n-1}`` is one, a slice expression ``x[1:] - x[:-1]`` is one. A family is evaluated once
and differentiated once, for all its rows. What has no families is differentiated as a whole (``coloured``), by a few
products with the Jacobian that its pattern says are enough.

This file imports nothing heavy: small problems pass by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jacli.errors import JacliError

if TYPE_CHECKING:
    from jacli.problem import Bound
    from jacli.sparse.system import System

#: A Jacobian with more entries than this, zeros included, is sparse unless another limit is asked for.
MOST_DENSE = 250_000

#: The same for products, which never build the Jacobian: below it every entry is proved.
MOST_DENSE_BESIDE_A_PRODUCT = 1_000_000

#: Text at least this long is cut into equations before it is parsed, in characters.
LONG_TEXT = 4_000

#: Text of this length and more is only ever cut into equations: parsing all of it would take seconds.
LONG_FOR_THE_PARSER = 100_000


def from_text(text: str, at: Any, most_dense: int, *, vars: Any = None, wrt: Any = None) -> System | None:
    """A system of the equations of a long text, or None when the ordinary way is the right one.

    Args:
        text: the program.
        at: the point, or None.
        most_dense: how many entries a Jacobian may have that is not sparse.
        vars: names in the order of the point.
        wrt: names to differentiate by.

    Raises:
        JacliError: where anything does not fit.
    """
    if not isinstance(text, str) or (len(text) < LONG_TEXT and most_dense >= MOST_DENSE):
        return None
    from jacli.sparse import system

    try:
        found = system.from_text(text, at, vars=vars, wrt=wrt)
    except JacliError:
        if len(text) < LONG_FOR_THE_PARSER:
            return None  # its own words are the best
        raise
    return found if found is not None and found.rows * found.columns > most_dense else None


def from_arrays(bound: Bound, most_dense: int) -> System | None:
    """A system of a program of arrays, or None when it is small."""
    rows, columns = bound.size
    if rows * columns <= most_dense:
        return None
    from jacli.sparse import arrays

    return arrays.system(bound)


def too_large(what: str, rows: int, columns: int) -> JacliError:
    """The refusal of a dense matrix that could not be held, naming what can."""
    size = _bytes(8 * rows * columns)
    if what == "Hessian":
        hint = "jvp and hvp never build it"
    else:
        hint = (
            "vjp and jvp never build it; --format coo, npz, mtx or csv writes its non-zeros, "
            "--most-dense 0 a document of them"
        )
    message = f"the {what} would have {rows} x {columns} entries ({size} as doubles)"
    return JacliError(f"{message}; at most {MOST_DENSE:,} are written out", None, hint, kind="limit")


def _bytes(count: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} PB"
