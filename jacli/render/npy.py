"""NumPy's own format: the main quantity alone, float64, in its full shape."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jacli.render.options import Options
    from jacli.result import Block, Named, Result


def render(result: Result, _: Options) -> bytes:
    """The command's own quantity; a Jacobian of one output by one variable has the outer shape of the two."""
    import numpy as np

    block = _main_block(result)
    values = np.array([[entry.value for entry in row] for row in block.rows], dtype=np.float64)
    buffer = io.BytesIO()
    np.save(buffer, values.reshape(_shape(result, block)), allow_pickle=False)
    return buffer.getvalue()


def _main_block(result: Result) -> Block:
    named = [block for block in result.blocks if block.key == result.command]
    return (named or list(result.blocks))[0]


def _shape(result: Result, block: Block) -> tuple[int, ...]:
    """``output_shape + variable_shape`` when each is one array; flat rows and columns otherwise."""
    rows: Sequence[Named] = () if block.vector else result.variables if block.key == "hessian" else result.outputs
    columns: Sequence[Named] = result.outputs if block.key == "jvp" else result.variables
    flat = (() if block.vector else (len(block.row_names),)) + (len(block.column_names),)
    if len(columns) != 1 or len(rows) > 1:
        return flat
    full = tuple(size for named in (*rows, *columns) for size in named.shape)
    return full if math.prod(full) == math.prod(flat) else flat
