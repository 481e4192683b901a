"""Reverse sweeps: one rule of arithmetic serves those that write derivatives on a tape."""

from __future__ import annotations

import pytest

from jacli.readings import adjoint, derive
from jacli.readings.balls import Balls
from jacli.readings.paths import path
from jacli.sparse.plan import _share as share
from proving import prepare

# text, point, the derivatives by the variables in their order
SLOPES = [
    ("x + y", "x=2,y=3", ["1", "1"]),
    ("x - y", "x=2,y=3", ["1", "-1"]),
    ("-x*y", "x=2,y=3", ["-3", "-2"]),
    ("x/y", "x=2,y=4", ["1/4", "-1/8"]),
    ("x/(y - x)", "x=2,y=4", ["1", "-1/2"]),
    ("x*x - y/x", "x=2,y=4", ["5", "-1/2"]),
    ("max(x, y)*y", "x=2,y=3", ["0", "6"]),
    ("where(x < y, x*y, x)", "x=2,y=3", ["3", "2"]),
    ("x**3*y", "x=2,y=3", ["36", "8"]),
]


@pytest.mark.parametrize(("text", "at", "slopes"), SLOPES)
def test_the_sweeps_agree(text: str, at: str, slopes: list[str]) -> None:
    prepared = prepare(text, at)
    tape, output = prepared.tape, prepared.outputs[0]
    balls = Balls(tape)
    zero = tape.number(0)
    taken = adjoint.gradient(balls, path(balls, output), output, prepared.wrt)
    for nodes in (
        [taken.get(variable, zero) for variable in prepared.wrt],
        derive.gradient(tape, output, prepared.wrt),
    ):
        assert [str(balls.value(node)) for node in nodes] == slopes


@pytest.mark.parametrize(
    ("op", "slopes"), [("add", [7, 7]), ("sub", [7, -7]), ("mul", [28, 14]), ("div", [1.75, -0.875])]
)
def test_the_rule_of_arithmetic(op: str, slopes: list[float]) -> None:
    prepared = prepare("x + y", "x=2,y=4")
    tape, (x, y) = prepared.tape, prepared.wrt
    node, bar = tape.add(op, x, y), tape.number(7)
    links = [adjoint.link(tape, node, position).written(tape, bar) for position in (0, 1)]
    for pulled in (links, [share(tape, node, position, x, bar) for position in (0, 1)]):
        values = [Balls(tape).value(each) for each in pulled]
        assert [float(int(value.p)) / int(value.q) for value in values] == slopes  # type: ignore[union-attr]
