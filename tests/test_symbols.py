"""Formulas of derivatives: those that SymPy's own ``diff`` writes."""

from __future__ import annotations

import pytest
import sympy

from jacli.functions import ROWS
from jacli.problem import prepare
from jacli.readings import symbols

TEXTS = [
    "2*(x + y)**2",
    "x*y*exp(x*y)/(x + exp(y))",
    "exp(x)/(exp(x) + exp(y) + 3)",
    "-3*x**2*(y - 1)/sqrt(x + 2*y)",
    "(x + y)**(1/3)*(x - 2*y)**4",
    "x**y + 2**x - y**(-2)",
    "exp(2*(x + y)) - exp(-x)",
    "where(x > y, x**2*y, sin(x*y))",
    "max(x, y**2)*abs(x*y)",
    "atan2(x, y)*tanh(x/y)",
]


EXAMPLES = [(text, "x=0.3,y=0.7") for text in TEXTS] + [
    row.example for row in ROWS.values() if row.listed and row.example[0]
]


@pytest.mark.parametrize(("text", "at"), EXAMPLES)
def test_formulas_are_those_of_diff(text: str, at: str) -> None:
    problem = prepare(text, at)
    assert problem.lowered is not None
    outputs = [node for nodes in problem.lowered.outputs for node in nodes]
    expressions = symbols.Expressions(problem.lowered.tape, outputs)
    for node in outputs:
        expression = expressions.of(node)
        if expression is None or expression.has(sympy.floor, sympy.ceiling):
            continue
        for name, found in symbols.gradient(expression).items():
            ours = expression.diff(next(each for each in expression.free_symbols if each.name == name))
            if found is not None and not ours.has(sympy.DiracDelta):
                assert str(found) == str(ours)


LENGTHS = [
    ("(1 + x)**3/7 - 123456789*x", "x=0.3"),
    ("x**(-12) - x**(-1/2) + 1/x", "x=0.3"),
    ("where(x > 1/1000, -x, log(x))", "x=0.3"),
    ("laguerre(30, x)", "x=0.3"),
]


@pytest.mark.parametrize(("text", "at"), [*EXAMPLES, *LENGTHS])
def test_the_least_length_is_no_more_than_the_text(text: str, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what is refused before it is printed would be too long."""
    problem = prepare(text, at)
    assert problem.lowered is not None
    nodes = [node for nodes in problem.lowered.outputs for node in nodes]
    expressions = symbols.Expressions(problem.lowered.tape, nodes)
    for node in nodes:
        printed = symbols.text(expressions.of(node))
        if printed is not None:
            monkeypatch.setattr(symbols, "MOST_CHARACTERS", len(printed))
            assert symbols.text(expressions.of(node)) == printed
            monkeypatch.setattr(symbols, "MOST_CHARACTERS", len(printed) - 1)
            assert symbols.text(expressions.of(node)) is None


def test_formulas_far_too_long_are_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = prepare("laguerre(300, x)", "x=0.3")
    assert problem.lowered is not None
    (node,) = problem.lowered.outputs[0]
    expression = symbols.Expressions(problem.lowered.tape, [node]).of(node)
    monkeypatch.setattr(type(symbols._writer()), "doprint", lambda *args: pytest.fail("printed"))
    assert symbols.text(expression) is None


def test_signs_of_long_arguments_are_not_searched_for() -> None:
    x = sympy.Symbol("x", real=True)
    real_abs = symbols._real_functions()[0]
    short = sum(x**k for k in range(2, 6, 2))
    long = sum(x**k for k in range(2, 200, 2))
    assert real_abs(short) == short
    assert real_abs(long).func is real_abs
