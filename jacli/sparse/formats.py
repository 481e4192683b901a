"""Sparse matrices as other programs read them: Matrix Market, SciPy's npz, and plain coordinates."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from jacli.errors import JacliError
from jacli.sparse.check import KINDS
from jacli.sparse.family import Floats, Ints
from jacli.sparse.result import LargeResult

#: Matrix Market allows 1024 characters a line.
_LINE = 1000


def matrix(result: LargeResult) -> tuple[Ints, Ints, Floats, Any]:
    """Rows, columns, values and statuses of the Jacobian's entries, row by row.

    Raises:
        JacliError: the result is no matrix.
    """
    for found in result.quantities:
        if found.entries is not None:
            order = found.order
            return (
                found.entries.rows[order],
                found.entries.columns[order],
                found.values[order],
                found.verdicts.kinds[order],
            )
    raise JacliError(
        f"{result.command} gives a vector, not a sparse matrix", None, "use --format npy, csv or json", kind="option"
    )


def mtx(result: LargeResult) -> str:
    """Matrix Market, coordinate real general; entries count from 1, names are comments."""
    rows, columns, values, _ = matrix(result)
    lines = ["%%MatrixMarket matrix coordinate real general", f"% jacli {result.command}, verdict {result.verdict}"]
    lines += _wrapped("rows", result.row_names) + _wrapped("columns", result.column_names)
    lines.append(f"{result.shape[0]} {result.shape[1]} {len(values)}")
    triples = zip((rows + 1).tolist(), (columns + 1).tolist(), values.tolist(), strict=True)
    lines += [f"{i} {j} {value!r}" for i, j, value in triples]
    return "\n".join(lines) + "\n"


def _wrapped(what: str, names: tuple[str, ...]) -> list[str]:
    lines, line = [], f"% {what}:"
    for name in names:
        if len(line) + len(name) >= _LINE:
            lines.append(line)
            line = f"% {what}:"
        line += " " + name
    return [*lines, line]


def npz(result: LargeResult) -> bytes:
    """What ``scipy.sparse.load_npz`` reads, with the names, shapes and statuses beside it."""
    rows, columns, values, kinds = matrix(result)
    system = result.system
    names = {
        "outputs": list(system.output_names),
        "output_shapes": [list(shape) for shape in system.output_shapes or ()],
        "variables": list(system.space.names),
        "variable_shapes": [list(shape) for shape in system.space.shapes or ()],
        "statuses": list(KINDS),
        "verdict": result.verdict,
    }
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        row=rows,
        col=columns,
        data=values,
        format=np.array(b"coo"),
        shape=np.array(result.shape),
        status=kinds,
        names=np.frombuffer(json.dumps(names).encode(), np.uint8),
    )
    return buffer.getvalue()


def coo(result: LargeResult) -> str:
    """One entry a line: row, column (both from 0), value, status."""
    rows, columns, values, kinds = matrix(result)
    entries = zip(rows.tolist(), columns.tolist(), values.tolist(), kinds.tolist(), strict=True)
    return "".join(f"{i} {j} {value!r} {KINDS[kind]}\n" for i, j, value, kind in entries)
