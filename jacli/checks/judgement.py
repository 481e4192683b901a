"""A derivative derived by hand beside the proved one, entry by entry: at the point and, of formulas, at others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from jacli.calculus import Exact
from jacli.checks.claims import Matrix, Written
from jacli.checks.places import SEED, Place, elsewhere, inner_nodes
from jacli.checks.slips import Matching, Numbers, Slips, View
from jacli.errors import JacliError
from jacli.findings import Claim, Claimed
from jacli.problem import Problem, Tolerance, row_names
from jacli.readings.decimals import written as decimal_text
from jacli.result import Block, Entry
from jacli.text import to_decimal
from jacli.verify import INPUT_FACTOR

#: How many operations the tests at other points may look at: some seconds.
MOST_TRIED = 100_000

#: Longest expression whose inner parts are tried as missing factors.
_MOST_INNER = 100

MOST_TRIALS = 1000


@dataclass(frozen=True, slots=True)
class Asked:
    """What a claim is about.

    Attributes:
        kind: ``jacobian``, ``grad``, ``hessian`` or ``vjp``.
        block: the entries that it is beside.
        targets: the nodes differentiated, one a row (of a Hessian: the one output).
    """

    kind: str
    block: Block
    targets: tuple[int, ...]

    def true(self, place: Place) -> Numbers:
        """The derivatives at a place."""
        if self.kind == "hessian":
            return place.second(self.targets[0])
        return [place.row(target) for target in self.targets]

    def label(self, i: int, j: int) -> str:
        """What an entry is called."""
        row, column = self.block.row_names[i], self.block.column_names[j]
        if self.kind == "hessian":
            return f"the entry of {row} and {column}"
        return f"vjp {column}" if self.kind == "vjp" else f"∂{row}/∂{column}"


def fitted(claim: Matrix, shape: tuple[int, int], kind: str, variable: tuple[int, ...] | None = None) -> Matrix:
    """The claim in the shape of what it is about. Raises JacliError naming both shapes.

    A gradient or VJP may be one column, or have the shape of the only variable.
    """
    if claim.shape == shape:
        return claim
    if kind in ("grad", "vjp") and claim.shape in (shape[::-1], variable):
        return claim.flat()
    what = {"jacobian": "Jacobian", "grad": "gradient", "hessian": "Hessian", "vjp": "VJP"}[kind]
    found, wanted = (f"{rows} x {columns}" for rows, columns in (claim.shape, shape))
    if claim.shape == shape[::-1]:
        hint = "this looks transposed: a row for each output, a column for each variable"
    else:
        hint = "type a row for each output, ended by ;, and in it an entry for each variable"
    raise JacliError(f"the {what} is {wanted}, but the claim is {found}", None, hint, kind="shape")


def judge(claim: Matrix, asked: Asked, problem: Problem, exact: Exact, tolerance: Tolerance, trials: int) -> Claim:
    """Every entry right or wrong, and what slip a wrong one looks like."""
    base = Place(exact.tape, exact.columns)
    here = View(base, _values(claim, base), [[_true(entry) for entry in row] for row in asked.block.rows])
    others = list(_others(claim, asked, problem, exact, trials)) if claim.formulas else []
    matching = Matching(tolerance.rtol, tolerance.atol)
    slips = Slips(
        claim.rows,
        [here, *others],
        matching,
        (asked.block.row_names, asked.block.column_names),
        asked.label,
        [_parts(problem, exact, target) for target in _by_row(asked)],
        dict(zip(exact.outputs, row_names(problem), strict=True)),
    )
    rows = [
        [_judged(slips, here, others, asked.block.rows[i][j], i, j) for j in range(len(row))]
        for i, row in enumerate(claim.rows)
    ]
    arranged = slips.arrangement() if any(entry.right is False for row in rows for entry in row) else None
    if arranged:
        rows = [[_explained(entry, arranged) for entry in row] for row in rows]
    return Claim(asked.kind, asked.block.key, tuple(map(tuple, rows)), claim.formulas, trials, len(others), SEED)


def _by_row(asked: Asked) -> tuple[int, ...]:
    """The node that each row is about."""
    return asked.targets * len(asked.block.rows) if asked.kind == "hessian" else asked.targets


def _parts(problem: Problem, exact: Exact, target: int) -> dict[int, str]:
    """What a node is made of, itself left out."""
    needed = set(exact.tape.needed([target])) - {target}
    return {node: source for node, source in inner_nodes(problem, _MOST_INNER).items() if node in needed}


def _true(entry: Entry) -> Decimal | None:
    return None if entry.exact is None else to_decimal(entry.exact)


def _values(claim: Matrix, place: Place) -> Numbers:
    return [[place.number(entry.node) for entry in row] for row in claim.rows]


def _others(claim: Matrix, asked: Asked, problem: Problem, exact: Exact, trials: int) -> Iterator[View]:
    """Places where every derivative is a plain number."""
    cost = sum(len(exact.tape.needed([target])) for target in asked.targets)
    cost *= len(exact.columns) if asked.kind == "hessian" else 1
    for places in elsewhere(problem, min(trials, max(MOST_TRIED // max(cost, 1), 1))):
        for place in places:
            true = asked.true(place)
            if all(number is not None for row in true for number in row):
                yield View(place, _values(claim, place), true)
                break


def _judged(slips: Slips, here: View, others: Sequence[View], entry: Entry, i: int, j: int) -> Claimed:
    written, value = slips.rows[i][j], here.claimed[i][j]
    right, remark = _at_the_point(slips, here, entry, i, j)
    wrong = next((v for v in others if not slips.matching.fits(written, v.claimed[i][j], v.true[i][j])), None)
    if right is False and entry.exact is not None and value is not None:
        remark = slips.of(i, j) or remark
    elif right and wrong is not None:
        claimed, true = (_shown(number) for number in (wrong.claimed[i][j], wrong.true[i][j]))
        remark = f"right at this point, wrong at {wrong.place.label}: {claimed} there, where the derivative is {true}"
        right = False
    return Claimed(
        written.text,
        None if value is None else _shown(value),
        right,
        remark,
        None if wrong is None else wrong.place.label,
    )


def _at_the_point(slips: Slips, here: View, entry: Entry, i: int, j: int) -> tuple[bool | None, str | None]:
    """Whether an entry is right at the point, and what there is to say about it."""
    written, claimed, true = slips.rows[i][j], here.claimed[i][j], here.true[i][j]
    if claimed is None and here.place.undecided(written.node):
        return None, "its value is undecided"
    if true is None:
        if entry.reason is not None and entry.reason.startswith("undecided"):
            return None, "the true derivative is undecided"
        if claimed is None:
            return True, f"no value here, and no derivative either ({entry.status})"
        return False, f"there is no derivative here ({entry.status})"
    if claimed is None:
        return False, "this has no value here"
    if slips.matching.close(claimed, true, INPUT_FACTOR * (entry.bound or 0.0)):
        return True, None
    if slips.matching.rounded(written, claimed, true):
        return True, f"the derivative rounded to the {_digits(written)} typed"
    return False, None


def _digits(written: Written) -> str:
    return f"{written.digits} digit{'s' * (written.digits != 1)}"


def _explained(entry: Claimed, slip: str) -> Claimed:
    return replace(entry, slip=slip) if entry.right is False else entry


def _shown(number: Decimal | None) -> str:
    return "no number" if number is None else decimal_text(number)
