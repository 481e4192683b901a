"""The table of functions: every row complete, and every reading of a row the same function."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

import jacli
from jacli.functions import ROWS, TABLE, Function, lookup, suggest
from jacli.readings.tape import PRIMITIVES

EXAMPLES = [row for row in TABLE if row.example[0]]

#: What torch reaches where that is not nearly every digit.
TORCH_IS_WORSE = {"polygamma": 1e-9}
ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_a_row_is_complete(row: Function) -> None:
    assert row.meaning
    assert row.signature.endswith(")")
    assert row.kind in ("elementwise", "array", "condition", "choice")
    assert row.kind == "condition" or all(row.example)
    assert (row.shape is None) == (row.entries is None) or row.integers_first
    least, most = row.arity
    assert most is None or least <= most


@pytest.mark.parametrize("row", [row for row in ROWS.values() if row.kind == "elementwise"], ids=lambda row: row.name)
def test_a_number_function_has_an_exact_form(row: Function) -> None:
    assert row.definitions or row.entries or row.name in PRIMITIVES
    if row.name in PRIMITIVES and row.name not in ("max", "min"):
        assert len(row.derivatives) == PRIMITIVES[row.name]


def test_no_spelling_means_two_things() -> None:
    spellings = [name for row in TABLE for name in (row.name, *row.aliases)]
    assert len(spellings) == len(set(spellings))
    assert all(lookup(name) for name in spellings)


@pytest.mark.parametrize("row", EXAMPLES, ids=lambda row: row.name)
def test_every_reading_of_an_example_agrees(row: Function) -> None:
    text, at = row.example
    result = jacli.jacobian(text, at)
    assert result.verdict == "agree"
    for output in result.outputs:
        for value, exact in zip(output.values, output.exact, strict=True):
            assert exact is not None
            assert math.isclose(value, float(exact), rel_tol=TORCH_IS_WORSE.get(row.name, 1e-12), abs_tol=1e-15)


@pytest.mark.parametrize("row", EXAMPLES, ids=lambda row: row.name)
def test_an_example_has_formulas(row: Function) -> None:
    for line in jacli.jacobian(*row.example).block("jacobian").rows:
        assert all(entry.symbolic is not None for entry in line)


@pytest.mark.parametrize(
    "row", [r for r in EXAMPLES if r.name not in ("polygamma", "digamma")], ids=lambda row: row.name
)
def test_second_derivatives_agree_too(row: Function) -> None:
    text, at = row.example
    result = jacli.hessian(f"sum({text})", at) if row.kind == "array" else jacli.hessian(text, at)
    assert result.verdict == "agree"


@pytest.mark.parametrize(
    ("typed", "meant"), [("sqr", "sqrt"), ("Sine", "sin"), ("arctann", "arctan"), ("expp", "exp"), ("qqqq", None)]
)
def test_suggestions(typed: str, meant: str | None) -> None:
    assert suggest(typed) == meant


def test_the_page_of_functions_is_the_table() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "jacli", "functions", "--format", "markdown"], capture_output=True, text=True, check=True
    ).stdout
    assert printed in (ROOT / "docs" / "functions.md").read_text(encoding="utf-8")


def test_every_function_in_a_process_that_leaves_parts_of_torch_out() -> None:
    """The levers of a cold start put imports off; nothing that the table calls may miss them."""
    code = """
from jacli.cli import levers
levers.pull()
import jacli
from jacli.functions import TABLE
for row in TABLE:
    if row.example[0]:
        jacli.jacobian(*row.example)
        if row.kind != "array":
            jacli.hessian(*row.example)
jacli.jacobian("where(x > [1, 2, 3], x, y)", "x=2, y=[3, 4, 5]")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
