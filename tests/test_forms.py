"""Formulas that are equal look alike as polynomials, and formulas that look alike are equal."""

from __future__ import annotations

import random

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

import jacli
from jacli.readings.balls import Balls
from jacli.readings.exact import ball
from jacli.readings.forms import forms_of, is_zero_formula
from jacli.readings.zeros import is_proved_zero
from proving import prepare

IDENTITIES = [
    "exp(x)*exp(-x) - 1",
    "exp(x/3)**3 - exp(x)",
    "exp(2*x)/E - exp(2*x - 1)",
    "sigmoid(x) + sigmoid(-x) - 1",
    "tanh(x) - 2*sigmoid(2*x) + 1",
    "tanh(x + y)*(1 + tanh(x)*tanh(y)) - tanh(x) - tanh(y)",
    "cosh(x)**2 - sinh(x)**2 - 1",
    "sin(2*x) - 2*sin(x)*cos(x)",
    "sin(x + y) - sin(x)*cos(y) - cos(x)*sin(y)",
    "cos(x/2)**2 - (1 + cos(x))/2",
    "tan(x + y)*(1 - tan(x)*tan(y)) - tan(x) - tan(y)",
    "sin(x)**2 + cos(x)**2 - 1",
    "exp(2*log(x + exp(y))) - (x + exp(y))**2",
    "1/(x + sqrt(y)) - (x - sqrt(y))/(x**2 - y)",
    "1/(1 + 1/(1 + exp(x))) - (1 + exp(x))/(2 + exp(x))",
    "(exp(x) + exp(y))/(2*exp(x) + 2*exp(y)) - 1/2",
    "(x + exp(y))**(-2)*(x + exp(y)) - 1/(x + exp(y))",
    "log(exp(x) + exp(y)) - log(exp(x) + exp(y))",
]


def nodes_of(text: str, at: str) -> tuple[Balls, list[int]]:
    """The balls of a program at a point, and the nodes of its output, values of variables first."""
    prepared = prepare(text, at)
    tape, output = prepared.tape, prepared.outputs[0]
    wanted = tape.needed((output,))
    values = tape.needed([tape.bound[node] for node in wanted if node in tape.bound])
    return Balls(tape), [*values, *(node for node in wanted if node not in set(values))]


@pytest.mark.parametrize("text", IDENTITIES)
def test_an_identity_is_seen(text: str) -> None:
    assert is_zero_formula(*nodes_of(text, "x=0.7,y=2.5"))


@pytest.mark.parametrize("text", IDENTITIES)
def test_what_is_nearly_one_is_not(text: str) -> None:
    assert not is_zero_formula(*nodes_of(f"{text} + exp(-x*1000)", "x=0.7,y=2.5"))


LONG = [0.1, 0.2, 0.3, 1, 2, 3, 1.5, 2.5]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("sum(softmax(x))", {"x": LONG}),
        ("softmax(x + s)", {"x": LONG, "s": 2}),
        ("logsumexp(x + s) - s", {"x": LONG, "s": 2}),
        ("norm(x/norm(x))", {"x": LONG}),
        ("x@softmax(x)/sum(x*softmax(x))", {"x": LONG}),
        ("(x + s - mean(x + s))/std(x + s)", {"x": LONG, "s": 2}),
    ],
)
def test_what_does_not_move_has_no_slope(text: str, at: dict) -> None:
    wrt = "s" if "s" in at else "x"
    rows = jacli.jacobian(text, at, wrt=wrt).blocks[0].rows
    assert {entry.exact for row in rows for entry in row} == {"0"}


LEAVES = ("x", "y", "2", "1/3", "pi", "E")
ONE = "exp({}) sin({}) cos({}) tanh({}) sinh({}) cosh({}) sqrt({}) log({}) -({}) ({})**2 ({})**(-1)".split()
TWO = ("({})+({})", "({})-({})", "({})*({})", "({})/({})")


def formula(chance: random.Random, depth: int) -> str:
    """A random formula of x and y."""
    if not depth or chance.random() < 0.15:
        return chance.choice(LEAVES)
    if chance.random() < 0.5:
        return chance.choice(ONE).format(formula(chance, depth - 1))
    return chance.choice(TWO).format(formula(chance, depth - 1), formula(chance, depth - 1))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9))
def test_what_looks_alike_is_equal(seed: int) -> None:
    chance = random.Random(seed)
    text = " + ".join(f"({formula(chance, 3)})" for _ in range(3))
    balls, order = nodes_of(text + " + 0*x*y", "x=0.7,y=2.5")
    values = {node: balls.value(node) for node in order}
    forms = forms_of(balls, order)
    alike: dict[frozenset, list[int]] = {}
    for node, value in values.items():
        if isinstance(value, arb):
            alike.setdefault(frozenset(forms[node].items()), []).append(node)
    with ctx.workprec(200):
        for first, *others in alike.values():
            for other in others:
                assert ball(values[first]).overlaps(ball(values[other])), text
        for place, node in enumerate(order):
            if isinstance(values[node], arb) and 0 not in values[node]:
                assert not is_zero_formula(balls, order[: place + 1]), text


@pytest.mark.parametrize(
    "text",
    ["abs(sin(2*x) - 2*sin(x)*cos(x))", "abs(exp(x)*exp(-x) - 1)", "relu(sin(x + 1) - sin(x)*cos(1) - cos(x)*sin(1))"],
)
def test_what_is_zero_all_along_has_no_kink(text: str) -> None:
    proof = prepare(text, "x=0.7").gradient()["x"]
    assert (proof.kind, proof.exact) == ("smooth", "0")


def test_proofs_of_zero_use_it() -> None:
    balls, order = nodes_of("exp(x)*exp(-x)*y/y - 1", "x=0.7,y=2.5")
    assert is_proved_zero(balls, order[-1])
