"""LaTeX with amsmath: each quantity as a matrix of formulas and as a matrix of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jacli.render.formula import latex, name, number
from jacli.render.numbers import show
from jacli.render.options import Options
from jacli.result import Block, Entry, Result
from jacli.text import printable

SYMBOLS = {
    "jacobian": "J",
    "vjp": r"w^{\mathsf{T}} J",
    "jvp": "J t",
    "grad": r"\nabla f",
    "hessian": "H",
    "hvp": "H t",
    "backward": r"\sum w^{\mathsf{T}} J",
}
#: amsmath's matrices have at most this many columns unless told otherwise.
COLUMNS = 10


def render(result: Result, options: Options) -> str:
    """The outputs, then every block; what is not plain agreement is said in comments."""
    return "\n".join(_lines(result, options)) + "\n"


def _lines(result: Result, options: Options) -> Iterator[str]:
    yield f"% jacli {result.command}; verdict: {result.verdict}; needs \\usepackage{{amsmath}}"
    widest = max((len(block.column_names) for block in result.blocks), default=0)
    if widest > COLUMNS:
        yield rf"\setcounter{{MaxMatrixCols}}{{{widest}}}"
    point = [
        rf"{name(entry)} = {number(show(value, options.digits))}"
        for variable in (*result.variables, *result.fixed)
        for entry, value in zip(variable.entries, variable.values, strict=True)
    ]
    yield from _display(point[:1] if len(point) == 1 else [", ".join(point)])
    yield from _display([rf"{name(o.name)} = {latex(o.read_as)}" for o in result.outputs if o.read_as])
    for block in result.blocks:
        yield from _block(block, options)


def _display(formulas: Sequence[str]) -> Iterator[str]:
    for formula in formulas:
        yield rf"\[ {formula} \]"


def _block(block: Block, options: Options) -> Iterator[str]:
    yield from _remarks(block)
    symbol = SYMBOLS.get(block.key, rf"\mathrm{{{block.key}}}")
    formulas = [[latex(e.symbolic) if e.symbolic is not None else r"\text{none}" for e in row] for row in block.rows]
    numbers = [[number(show(e.value, options.digits)) for e in row] for row in block.rows]
    yield r"\["
    yield f"{symbol} = {_matrix(formulas)}"
    yield f"= {_matrix(numbers)}"
    yield r"\]"


def _matrix(rows: Sequence[Sequence[str]]) -> str:
    lines = " \\\\\n".join("  " + " & ".join(row) for row in rows)
    return f"\\begin{{pmatrix}}\n{lines}\n\\end{{pmatrix}}"


def _remarks(block: Block) -> Iterator[str]:
    for row_name, row in zip(block.row_names, block.rows, strict=True):
        for column_name, entry in zip(block.column_names, row, strict=True):
            if entry.status != "agree":
                yield f"% {block.key}, {row_name}, {column_name}: {printable(_why(entry))}"


def _why(entry: Entry) -> str:
    exact = f"exact {entry.exact}" if entry.exact is not None else None
    return "; ".join(filter(None, (entry.status, exact, entry.reason)))
