"""``check``: every witness of a derivative side by side, and the judgement of one that somebody derived by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jacli import calculus
from jacli.calculus import Exact
from jacli.checks import witnesses
from jacli.checks.claims import Matrix, read_claim
from jacli.checks.judgement import MOST_TRIALS, Asked, fitted, judge
from jacli.errors import JacliError
from jacli.findings import Findings
from jacli.problem import Problem, Tolerance, Vector, too_long
from jacli.result import Result

#: What the columns are.
WITNESSES = (
    "SymPy is its formula at the exact point; differences are central, extrapolated once, with the step whose "
    "estimated error is least"
)


def check(problem: Problem, tolerance: Tolerance, weights: Vector | None, claim: Any, trials: Any) -> Result:
    """The Jacobian with all its witnesses; the VJP where there are weights; and a claim about one of them, judged.

    Raises:
        JacliError: when the claim cannot be read or has another shape than what it is about.
    """
    count = read_trials(trials)
    if problem.lowered is None:
        raise too_long()
    matrix = None if claim is None else read_claim(claim, problem)
    kind = "" if matrix is None else _kind(matrix, problem, weights)
    if matrix is not None:
        matrix = fitted(matrix, _shape(kind, problem), kind, problem.wrt[0].shape if len(problem.wrt) == 1 else None)
    exact = Exact(problem)
    result = calculus.jacobian(problem, tolerance, weights, exact)
    heard = witnesses.hear(problem, exact, result.block("jacobian").rows, tolerance)
    blocks = [replace(block, rows=heard.entries) if block.key == "jacobian" else block for block in result.blocks]
    if kind == "hessian":
        blocks.append(calculus.hessian(problem, tolerance, exact).block("hessian"))
    findings = Findings(heard.witnesses)
    if matrix is not None:
        block = blocks[0 if kind in ("jacobian", "grad") else -1]
        asked = Asked(kind, block, _targets(kind, exact, weights))
        findings = replace(findings, claim=judge(matrix, asked, problem, exact, tolerance, count))
    notes = (*result.notes, WITNESSES, *heard.notes)
    return replace(result, command="check", blocks=tuple(blocks), notes=notes, findings=findings)


def read_trials(given: Any) -> int:
    """How many other points formulas are tried at. Raises JacliError unless it is a whole number in range."""
    text = str(given).strip()
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) <= MOST_TRIALS):
        raise JacliError(f"--trials is a whole number from 0 to {MOST_TRIALS}, not {given}", kind="option")
    return int(text)


def _kind(claim: Matrix, problem: Problem, weights: Vector | None) -> str:
    """What a claim is about, told from its shape: a square one about a scalar output is the Hessian."""
    count = len(problem.columns)
    if weights is not None:
        return "vjp"
    if problem.output_size != 1:
        return "jacobian"
    return "hessian" if count > 1 and claim.shape == (count, count) else "grad"


def _shape(kind: str, problem: Problem) -> tuple[int, int]:
    count = len(problem.columns)
    return {"jacobian": problem.output_size, "grad": 1, "vjp": 1, "hessian": count}[kind], count


def _targets(kind: str, exact: Exact, weights: Vector | None) -> tuple[int, ...]:
    if kind == "vjp":
        assert weights is not None
        return (exact.weighted(weights),)
    return tuple(exact.outputs)
