"""The witnesses of a Jacobian side by side, and which of them is to blame where two differ.

Five ways to one number: torch's reverse and forward mode, SymPy's formula evaluated at the exact point, the proof, and
central differences of the floats. They share no derivative rule, except that torch's two modes are one library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any

from jacli import verify
from jacli.calculus import Exact
from jacli.checks import differences
from jacli.checks.differences import Slope
from jacli.findings import Witness
from jacli.problem import Problem, Tolerance
from jacli.readings import floats
from jacli.readings.balls import Balls
from jacli.readings.decimals import DIGITS
from jacli.readings.substituted import Substituted
from jacli.result import STATUSES, Entry
from jacli.text import to_decimal

#: How many operations forward mode and the differences may take: some seconds, for a dual number is slow.
MOST_FORWARD = 100_000
MOST_DIFFERENCES = 400_000

#: Two numbers of exact readings are the same to this relative difference: one is rounded to 20 digits.
_SAME = Decimal("1e-18")

#: Differences see every kink whose slopes differ by this much relative to their sizes.
_WIDE_KINK = 1e-2

_CONTEXT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)

Grid = Sequence[Sequence[Any]]


# ---- torch, forward


@contextmanager
def _duals() -> Iterator[Any]:
    import warnings

    from torch.autograd import forward_ad

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch, of its own compiler, at the first use
        with forward_ad.dual_level():
            yield forward_ad


def forward_column(
    function: Callable[[Sequence[Any]], Sequence[Any]], inputs: Sequence[Any], place: tuple[int, int]
) -> list[float] | None:
    """One column of a Jacobian by torch's forward mode; None where an operation has none.

    Args:
        function: from tensors to tensors.
        inputs: the point.
        place: which entry (flattened) of which input to differentiate by.
    """
    t = floats.torch()
    with _duals() as forward_ad:
        moved = [t.zeros_like(tensor) for tensor in inputs]
        moved[place[0]].reshape(-1)[place[1]] = 1.0
        duals = [forward_ad.make_dual(x.detach(), tangent) for x, tangent in zip(inputs, moved, strict=True)]
        try:
            outputs = function(duals)
        except (NotImplementedError, RuntimeError):
            return None
        column: list[float] = []
        for output in outputs:
            tangent = forward_ad.unpack_dual(output).tangent
            column += [0.0] * output.numel() if tangent is None else tangent.reshape(-1).tolist()
        return column


def _forward(problem: Problem) -> Grid:
    """The Jacobian by forward mode, None where there is none."""
    t = floats.torch()
    known = {v.name: t.tensor(v.doubles, dtype=t.float64).reshape(v.shape) for v in problem.variables}
    inputs = [known[variable.name] for variable in problem.wrt]

    def function(tensors: Sequence[Any]) -> list[Any]:
        values = known | {variable.name: x for variable, x in zip(problem.wrt, tensors, strict=True)}
        found = floats.evaluate(problem.program.nodes, problem.program.outputs, values)
        pairs = zip(problem.program.outputs, problem.output_shapes, strict=True)
        return [found[node].expand(shape) for node, shape in pairs]

    places = [(i, k) for i, x in enumerate(inputs) for k in range(x.numel())]
    return _across(problem, [forward_column(function, inputs, place) for place in places])


def _forward_by_entries(problem: Problem) -> Grid:
    """The same of the program written out in single numbers: there no entry's nan can reach another's derivative."""
    t = floats.torch()
    assert problem.lowered is not None
    known = {
        entry: t.tensor(value, dtype=t.float64)
        for variable in problem.variables
        for entry, value in zip(variable.entries, variable.doubles, strict=True)
    }
    outputs = [node for nodes in problem.lowered.outputs for node in nodes]
    ops = problem.lowered.tape.ops

    def function(tensors: Sequence[Any]) -> list[Any]:
        found = floats.evaluate(ops, outputs, known | dict(zip(problem.columns, tensors, strict=True)))
        return [found[node] for node in outputs]

    inputs = [known[name] for name in problem.columns]
    return _across(problem, [forward_column(function, inputs, (i, 0)) for i in range(len(inputs))])


def _across(problem: Problem, columns: Sequence[Sequence[Any] | None]) -> Grid:
    """Columns as rows; None where a column is missing."""
    return [[None if column is None else column[i] for column in columns] for i in range(problem.output_size)]


def _settled_forward(problem: Problem, exact: Exact, entries: Sequence[Sequence[Entry]]) -> Grid:
    """Forward mode, as reverse mode is settled: 0 where the program cannot depend on the column, for zero times nan
    is nan, and entries computed in single numbers where whole arrays gave nan for a finite truth.
    """
    rows = [
        [value if node in reached or value is None else 0.0 for node, value in zip(exact.columns, row, strict=True)]
        for reached, row in zip(exact.reached, _forward(problem), strict=True)
    ]
    doubtful = [
        (i, j)
        for i, row in enumerate(rows)
        for j, value in enumerate(row)
        if value is not None and not math.isfinite(value) and entries[i][j].exact is not None
    ]
    if doubtful and any(problem.shapes):
        again = _forward_by_entries(problem)
        for i, j in doubtful:
            rows[i][j] = again[i][j]
    return rows


# ---- differences


def float_function(problem: Problem) -> differences.Function:
    """The program in doubles: from the flattened variables differentiated to the flattened outputs."""
    t = floats.torch()
    fixed = {v.name: t.tensor(v.doubles, dtype=t.float64).reshape(v.shape) for v in problem.fixed}
    pairs = list(zip(problem.program.outputs, problem.output_shapes, strict=True))

    def function(point: Sequence[float]) -> list[float]:
        flat = t.tensor(point, dtype=t.float64)
        tensors, start = dict(fixed), 0
        for variable in problem.wrt:
            size = len(variable.doubles)
            tensors[variable.name] = flat[start : start + size].reshape(variable.shape)
            start += size
        found = floats.evaluate(problem.program.nodes, problem.program.outputs, tensors)
        return [number for node, shape in pairs for number in found[node].expand(shape).reshape(-1).tolist()]

    return function


def _differences(problem: Problem) -> list[list[Slope]]:
    function = float_function(problem)
    point = [x for variable in problem.wrt for x in variable.doubles]
    columns = [differences.column(function, point, j) for j in range(len(point))]
    return [[column[i] for column in columns] for i in range(problem.output_size)]


# ---- SymPy


def _sympy(exact: Exact) -> Grid:
    """SymPy's formulas at the exact point, as decimals."""
    nodes = {
        name: node
        for variable in exact.problem.variables
        for name, node in zip(variable.entries, variable.nodes, strict=True)
    }
    substituted = Substituted(Balls(exact.tape), nodes)
    return [
        [substituted.decimal(exact.formula(index, name)) for name in exact.problem.columns]
        for index in range(len(exact.outputs))
    ]


# ---- side by side


@dataclass(frozen=True, slots=True)
class Testimony:
    """The Jacobian's entries with what all witnesses have to say about each, and what could not be asked."""

    entries: tuple[tuple[Entry, ...], ...]
    witnesses: tuple[tuple[Witness, ...], ...]
    notes: tuple[str, ...] = ()


def hear(problem: Problem, exact: Exact, entries: Sequence[Sequence[Entry]], tolerance: Tolerance) -> Testimony:
    """Ask every witness about the entries of a Jacobian, whose values are torch's reverse mode."""
    length, count = len(problem.program.nodes), len(problem.columns)
    nobody: Grid = [[None] * count for _ in range(problem.output_size)]
    notes = []
    forward, slopes = nobody, nobody
    if length * count <= MOST_FORWARD:
        forward = _settled_forward(problem, exact, entries)
    else:
        notes.append("forward mode was not asked: the program is too long for one pass a variable")
    if length * count * 2 * len(differences.steps(1.0)) <= MOST_DIFFERENCES:
        slopes = _differences(problem)
    else:
        notes.append("differences were not taken: the program is too long to be evaluated so many times")
    return weigh(exact, entries, forward, slopes, tolerance, tuple(notes))


def weigh(
    exact: Exact,
    entries: Sequence[Sequence[Entry]],
    forward: Grid,
    slopes: Grid,
    tolerance: Tolerance,
    notes: tuple[str, ...] = (),
    names: Mapping[str, str] | None = None,
    function: str | None = None,
) -> Testimony:
    """Lay the witnesses side by side; forward mode and differences have been asked already.

    ``names`` are what reasons call the witnesses. ``function`` is the name of the user's own function that the floats
    come from: it may compute something else than the expression, and then the proof is not to blame.
    """
    court = _Court(exact, tolerance, names or _NAMES, function)
    rows = []
    for index, formulas in enumerate(_sympy(exact)):
        row = []
        for j, entry in enumerate(entries[index]):
            slope = slopes[index][j] or Slope()
            said = _witness(entry, forward[index][j], formulas[j], slope)
            row.append(court.judged(entry, said, slope, (index, j)))
        rows.append(row)
    return Testimony(
        tuple(tuple(entry for entry, _ in row) for row in rows),
        tuple(tuple(witness for _, witness in row) for row in rows),
        notes,
    )


def _witness(entry: Entry, forward: float | None, formula: str | None, slope: Slope) -> Witness:
    known = math.isfinite(slope.value)
    return Witness(
        entry.value,
        forward,
        formula,
        entry.exact,
        _radius(entry.exact),
        slope.value if known else None,
        slope.error if known else None,
        slope.step if known else None,
    )


def _radius(exact: str | None) -> str | None:
    """One unit of the last of the digits that are shown: rounding to them is half of it, the ball is narrower."""
    if exact is None or exact == "0":
        return exact
    return f"1e{to_decimal(exact).adjusted() - DIGITS + 1}"


# ---- who is to blame

_NAMES: Mapping[str, str] = {
    "reverse": "torch's reverse mode",
    "forward": "torch's forward mode",
    "sympy": "SymPy's formula",
    "differences": "central differences",
}


@dataclass(frozen=True, slots=True)
class _Court:
    """What the witnesses are judged by. ``names`` and ``function`` as for ``weigh``."""

    exact: Exact
    tolerance: Tolerance
    names: Mapping[str, str]
    function: str | None

    def judged(self, entry: Entry, said: Witness, slope: Slope, place: tuple[int, int]) -> tuple[Entry, Witness]:
        """The entry with the reason for every difference, and its witnesses with those to blame."""
        if not self.function and (_invented_kink(entry, said, slope) or _alone(entry, said)):
            accused = replace(entry, status="disagree", reason=self._accused_proof(entry, said))
            return accused, replace(said, blamed=("proved",))
        if entry.exact is None:
            return entry, said
        suspects = [name for name in ("reverse", "forward", "sympy") if self._differs(name, entry, said, *place)]
        if not suspects:
            return entry, said
        alarm = "reverse" in suspects or "forward" in suspects
        reasons = [entry.reason] if entry.reason and entry.status != "disagree" else []
        if self.function and "reverse" in suspects and _side(said, "differences") == "torch":
            blamed = ["function"]
            reasons.append(self._something_else(said))
        elif "reverse" in suspects and _against_the_proof(said):
            blamed = ["proved"]
            reasons.append(self._accused_proof(entry, said))
        else:
            blamed = suspects
            reasons += [self._accused(name, said, blamed) for name in blamed]
        status = max(entry.status, "disagree" if alarm else "agree", key=STATUSES.index)
        return replace(entry, status=status, reason="; ".join(reasons)), replace(said, blamed=tuple(blamed))

    def _differs(self, name: str, entry: Entry, said: Witness, row: int, column: int) -> bool:
        """Whether a witness differs from the proved value, with nothing to explain it."""
        assert entry.exact is not None
        if name == "reverse":
            return entry.status == "disagree"
        if name == "forward":
            return said.forward is not None and self._status(said.forward, entry.exact, row, column) == "disagree"
        return said.sympy is not None and (said.sympy == "nan" or not _same(said.sympy, entry.exact))

    def _status(self, value: float, true: str, row: int, column: int) -> str:
        """The status of a float beside the truth, as for the entry itself; the proof is fetched again if need be."""
        if abs(value - float(true)) <= self.tolerance.rtol * abs(float(true)) + self.tolerance.atol:
            return "agree"
        node = self.exact.columns[column]
        if node not in self.exact.reached[row]:
            return "disagree"
        proof = verify.prove_gradient(self.exact.tape, self.exact.outputs[row], [node])[0]
        return verify.judge(value, proof, self.tolerance.rtol, self.tolerance.atol)[0]

    # ---- words

    def _accused(self, name: str, said: Witness, blamed: Sequence[str]) -> str:
        told = _told(said, name)
        verb = "gives" if name == "sympy" else "returned"
        others = [self.names[other] for other in self.names if other not in blamed and _supports(said, other)]
        support = f", and so say {_listed(others)}" if others else ""
        where = " here" if str(told) == "nan" else ""
        return f"{self.names[name]} {verb} {told}{where}; the proved value is {said.proved}{support}"

    def _accused_proof(self, entry: Entry, said: Witness) -> str:
        others = [name for name in ("sympy", "differences") if entry.exact is None or _side(said, name) == "torch"]
        names = [self.names[name] for name in ("reverse", *others)]
        proved = said.proved or "{} on the left and {} on the right".format(*(entry.one_sided or (None, None)))
        return (
            f"the proof says {proved}, but {_listed(names)} say {said.reverse!r}: the proof is wrong, which is a "
            "bug in jacli; please report it"
        )

    def _something_else(self, said: Witness) -> str:
        return (
            f"{self.names['reverse']} returned {said.reverse!r}, and so say its own differences: {self.function} does "
            f"not compute the expression, whose derivative is {said.proved}"
        )


def _told(said: Witness, name: str) -> float | str | None:
    """What a witness says."""
    told: Mapping[str, float | str | None] = {
        "reverse": said.reverse,
        "forward": said.forward,
        "sympy": said.sympy,
        "differences": said.difference,
    }
    return told[name]


def _same(a: str, b: str) -> bool:
    x, y = to_decimal(a), to_decimal(b)
    return _CONTEXT.subtract(x, y).copy_abs() <= _CONTEXT.multiply(_SAME, max(x.copy_abs(), y.copy_abs()))


def _side(said: Witness, name: str) -> str | None:
    """Which of two numbers SymPy or the differences support: the proved one, torch's, or neither."""
    told = _told(said, name)
    if told is None or told == "nan" or said.proved is None:
        return None
    torch, proved, number = said.reverse, float(said.proved), float(told)
    gap = abs(torch - proved)
    if name == "differences" and not (said.error is not None and 4 * said.error < gap):
        return None  # too coarse to tell the two apart
    if abs(number - proved) <= gap / 10:
        return "proved"
    return "torch" if abs(number - torch) <= gap / 10 else None


def _against_the_proof(said: Witness) -> bool:
    """SymPy or the differences say what torch says, nobody says what was proved, torch's forward mode included."""
    if said.forward is not None and not math.isclose(said.reverse, said.forward, rel_tol=1e-9):
        return False
    sides = {_side(said, name) for name in ("sympy", "differences")}
    return "torch" in sides and "proved" not in sides


def _alone(entry: Entry, said: Witness) -> bool:
    """Nobody says what was proved: torch, SymPy and the differences agree on something else."""
    off = entry.exact is not None and entry.status != "agree"
    return off and all(_side(said, name) == "torch" for name in ("sympy", "differences"))


def _invented_kink(entry: Entry, said: Witness, slope: Slope) -> bool:
    """A proved kink, wide enough to be seen by differences, where everybody sees one smooth slope."""
    if entry.status != "kink" or entry.one_sided is None or said.sympy in (None, "nan") or said.difference is None:
        return False
    left, right = (float(side) if side is not None else math.nan for side in entry.one_sided)
    wide = abs(right - left) > max(_WIDE_KINK * (abs(left) + abs(right)), 1000 * slope.error)
    near = 1e-6 * abs(said.reverse) + 4 * slope.error
    return (
        wide
        and slope.sides is None
        and all(abs(float(told) - said.reverse) <= near for told in (said.sympy, said.difference) if told is not None)
    )


def _supports(said: Witness, name: str) -> bool:
    """Whether a witness says about what was proved."""
    told = _told(said, name)
    if told is None or told == "nan" or said.proved is None:
        return False
    true = float(said.proved)
    slack = 4 * (said.error or 0.0) + 1e-7 * abs(true) if name == "differences" else 1e-9 * abs(true)
    return abs(float(told) - true) <= slack


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
