"""Published problems: floats as close as doubles can be, exact values to 18 digits, verdicts that say so."""

from __future__ import annotations

import json
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import pytest

import jacli
from jacli.result import Entry, Result

DATA = Path(__file__).parent / "data" / "published.jsonl"
PROBLEMS = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]

#: Tags of problems where a double evaluation is expected to be visibly wrong.
HARD = {"cancellation", "overflow", "removable-singularity"}

#: Those of them whose Jacobian doubles get right all the same.
HARMLESS = {"dyn-e5", "dyn-unicycle-velocity-model", "dyn-edge-rump"}

#: Problems that torch cannot get right in the order typed, and why.
BEYOND_DOUBLES = {
    "dyn-edge-smooth-at-zero": "0 times infinity inside sqrt(x**4): autograd gives nan",
    "dyn-edge-big-decimals": "x*1e-200*1e-200 underflows in the order typed",
    "mgh35-chebyquad-n8": "eight digits of cancellation beyond the rounding of the inputs",
    "nist-enso-rows": "cos(2*pi*165/12) of a rounded angle is 3e-15 where 0 is true",
}


def solve(problem: dict[str, Any]) -> Result:
    at = {**problem["at"], **problem.get("params", {})}
    text = ",".join(f"{name}=({value})" for name, value in at.items())
    return jacli.jacobian(", ".join(problem["exprs"]), text, wrt=problem["vars"], weights=problem.get("weights"))


def close(a: str | float, b: str, tolerance: Decimal) -> bool:
    with localcontext(prec=60):
        left, right = Decimal(a), Decimal(b)
        return abs(left - right) <= tolerance * (abs(right) or Decimal(1))


def tolerance(problem: dict[str, Any]) -> Decimal:
    rounding = (problem.get("input_rounding") or {}).get("entry") or 0
    return Decimal("1e-13") + 100 * Decimal(rounding)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p["id"])
def test_every_entry(problem: dict[str, Any]) -> None:
    result = solve(problem)
    rows = result.block("jacobian").rows
    assert "disagree" not in {entry.status for row in rows for entry in row}
    if HARD & set(problem["tags"]):
        assert result.verdict != "agree" or problem["id"] in HARMLESS
        return
    for row, truths in zip(rows, problem["jacobian"], strict=True):
        scale = max(abs(Decimal(truth)) for truth in truths)
        for entry, truth in zip(row, truths, strict=True):
            check(problem, entry, truth, scale)
    if problem["id"] not in BEYOND_DOUBLES:
        assert {entry.status for row in rows for entry in row} == {"agree"}


def check(problem: dict[str, Any], entry: Entry, truth: str, scale: Decimal) -> None:
    assert entry.exact is not None
    assert close(entry.exact, truth, Decimal("1e-17"))
    if problem["id"] not in BEYOND_DOUBLES:
        room = tolerance(problem) * max(abs(Decimal(truth)), scale / 100)
        assert abs(Decimal(entry.value) - Decimal(truth)) <= room


@pytest.mark.parametrize(
    "problem", [p for p in PROBLEMS if "vjp" in p and p["id"] not in BEYOND_DOUBLES][::5], ids=lambda p: p["id"]
)
def test_the_vjp(problem: dict[str, Any]) -> None:
    row = solve(problem).block("vjp").rows[0]
    for entry, truth in zip(row, problem["vjp"], strict=True):
        if not HARD & set(problem["tags"]):
            assert entry.exact is not None
            assert close(entry.exact, truth, Decimal("1e-17"))
