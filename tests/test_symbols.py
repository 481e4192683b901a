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
