"""What ``backward`` leaves in ``.grad``: the experiments as data, refusals, and numbers that must multiply."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings

import jacli
from jacli import JacliError
from jacli.cli import run as run_words
from jacli.render import Options, render
from jacli.result import Result
from test_arrays import Array, Scalars, both, nested, programs

SYMMETRIC = "2*[a[0]**2 + a[1], a[1]**3 + a[0]]"
GENERAL = "2*[a[0]**2 + a[1], a[1]**3 + 2*a[0]]"
POINT = "a=[2,4]"
MATRICES = "a=[[2,3],[1,2]], w=[[0],[0]]"


@dataclass(frozen=True)
class Case:
    """One request and every ``.grad`` it must leave, call by call."""

    text: str
    at: str
    after: tuple[dict[str, Any], ...]
    gradients: tuple[str, ...] = ()
    value: list[float] | None = None
    jacobian: list[list[float]] | None = None
    options: dict[str, Any] = field(default_factory=dict)


TWICE = {"retain_graph": True}
EXPERIMENTS = {
    "1, a scalar": Case("b = a + 3; c = b*3; mean(c)", "a=[2,3]", ({"a": [1.5, 1.5]},), value=[16.5]),
    "2, zeros summed away": Case(
        "2*[a[0]**2, a[1]**3]", POINT, ({"a": [8.0, 96.0]},), ("1,1",), jacobian=[[8.0, 0.0], [0.0, 96.0]]
    ),
    "3, ones": Case(SYMMETRIC, POINT, ({"a": [10.0, 98.0]},), ("1,1",), [16.0, 132.0]),
    "4, a symmetric Jacobian": Case(
        SYMMETRIC, POINT, ({"a": [12.0, 194.0]},), ("1,2",), jacobian=[[8.0, 2.0], [2.0, 96.0]]
    ),
    "5, a row on the left": Case(GENERAL, POINT, ({"a": [16.0, 194.0]},), ("1,2",), jacobian=[[8.0, 2.0], [4.0, 96.0]]),
    "6, row by row": Case(
        GENERAL, POINT, ({"a": [8.0, 2.0]}, {"a": [4.0, 96.0]}), ("1,0", "0,1"), options=TWICE | {"zero_grad": True}
    ),
    "7, calls add up": Case(GENERAL, POINT, ({"a": [8.0, 2.0]}, {"a": [12.0, 98.0]}), ("1,0", "0,1"), options=TWICE),
    "8, one weight a sample": Case(
        "a @ w", MATRICES, ({"a": [[0.0, 0.0], [0.0, 0.0]], "w": [[3.0], [5.0]]},), ("[[1],[1]]",)
    ),
    "8, by w alone": Case("a @ w", MATRICES, ({"w": [[3.0], [5.0]]},), ("1,1",), options={"wrt": "w"}),
    "9, two samples, three outputs": Case(
        "a @ w",
        "a=[[2,3],[1,2]], w=[[1,2,3],[4,5,6]]",
        ({"a": [[1.0, 4.0], [5.0, 11.0]], "w": [[2.0, 1.0, 1.0], [3.0, 2.0, 2.0]]},),
        ("[[1,0,0],[0,1,1]]",),
    ),
    "10, the chain": Case(
        "sum(a*a)",
        "a=[[8.4251,-1.6011],[-22.3855,-0.5603]]",
        ({"a": [[16.8502, -3.2022], [-44.771, -1.1206]]},),
    ),
    "10, both steps": Case("b = (a*3)/(a-1); sum(b*b)", "a=[[2,4]]", ({"a": [[-36.0, -8 / 3]]},), value=[52.0]),
    "several outputs": Case(
        "x*y, [x, y]**2",
        "x=2,y=3",
        ({"x": 3.4, "y": 20.0}, {"x": 13.4, "y": 30.0}),
        ("1,0.1,3", "f0=2, f1=[1,1]"),
        options=TWICE,
    ),
    "a variable the output lacks": Case("x**2", "x=3,y=1", ({"x": 6.0, "y": None},)),
    "an output that lacks every variable": Case("x**2, 5", "x=3", ({"x": 6.0},), ("1,1",)),
    "a weight for a scalar": Case("x**2", "3", ({"x": 12.0},), ("2",)),
    "one entry is a scalar to torch": Case("[x**2]", "3", ({"x": 6.0},)),
    "an output that is a variable": Case("x", "x=[1,2]", ({"x": [3.0, 4.0]},), ("3,4",)),
}


def run(case: Case, **more: Any) -> Result:
    return jacli.backward(case.text, case.at, gradients=case.gradients, **case.options, **more)


@pytest.mark.parametrize("case", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_experiments(case: Case) -> None:
    result = run(case)
    document = result.to_dict()
    for call, after in zip(document["calls"], case.after, strict=True):
        assert call["after"].keys() == after.keys()
        for name, grad in after.items():
            assert close(call["after"][name], grad)
    assert document["grad"] == document["calls"][-1]["after"]
    if case.value is not None:
        assert document["value"] == case.value
    if case.jacobian is not None:
        assert document["jacobian"] == case.jacobian
    assert result.verdict == "agree"
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def close(a: Any, b: Any) -> bool:
    if isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    return a is b if b is None else math.isclose(a, b, rel_tol=1e-14)


@pytest.mark.parametrize("case", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_each_call_adds_the_weighted_rows(case: Case) -> None:
    result = run(case)
    assert result.backward is not None
    for call in result.backward.calls:
        for weight, row, scaled in zip(call.gradient, result.backward.jacobian, call.rows, strict=True):
            assert scaled == tuple(weight * slope for slope in row)
        before = [number for held in call.before for number in held.values or [0.0] * math.prod(held.shape)]
        after = [number for held in call.after for number in held.values or [0.0] * math.prod(held.shape)]
        assert after == pytest.approx([a + b for a, b in zip(before, call.total, strict=True)], rel=1e-14)


@pytest.mark.parametrize("case", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_the_steps_multiply_to_the_gradient(case: Case) -> None:
    assert_steps_multiply(run(case, explain=True))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_the_steps_of_any_array_program_multiply(program: tuple[Array, Scalars]) -> None:
    array, _ = program
    whole, _ = both(*program)
    gradient = [nested([str(0.5 + i) for i in range(len(array.entries))], array.shape)]
    at = {v.name: nested([repr(x) for x in v.doubles], v.shape) for v in whole.variables}
    result = jacli.backward(array.text, at, gradients=gradient, explain=True)
    assert_steps_multiply(result)
    right = ("agree", "rounding")  # a slope that cancels to 0 is 1e-17 in doubles
    assert result.verdict in right or "det(" in array.text  # of a singular matrix torch has no right gradient


def assert_steps_multiply(result: Result) -> None:
    """Incoming gradient times local derivative is what is passed on; what is passed on adds up at its target."""
    assert result.backward is not None
    for call in result.backward.calls:
        arrived: dict[int | str, list[float]] = {}
        for number, step in enumerate(call.steps, start=1):
            incoming = step.gradient.values
            assert incoming is not None
            if number in arrived:
                assert incoming == pytest.approx(arrived[number], rel=1e-9, abs=1e-12)
            for passed in step.passes:
                assert passed.step is None or passed.step > number
                expected = product(incoming, passed.derivative, passed.entrywise)
                assert passed.gradient.values == pytest.approx(expected, rel=1e-9, abs=1e-12)
                total = arrived.setdefault(passed.step or passed.to, [0.0] * math.prod(passed.gradient.shape))
                total[:] = [a + b for a, b in zip(total, passed.gradient.values or (), strict=True)]
        if call.steps:
            collected = [x for held in call.before for x in arrived.get(held.name, [0.0] * math.prod(held.shape))]
            assert collected == pytest.approx(call.total, rel=1e-9, abs=1e-12)


def product(incoming: tuple[float, ...], rows: tuple[tuple[float, ...], ...], entrywise: bool) -> list[float]:
    if entrywise:
        return [g * d for g, d in zip(incoming, rows[0], strict=True)]
    return [sum(g * row[j] for g, row in zip(incoming, rows, strict=True)) for j in range(len(rows[0]))]


def test_the_steps_come_in_the_order_of_the_backward_pass() -> None:
    steps = jacli.backward("b = a + 3; c = b*3; mean(c)", "a=[2,3]", explain=True).to_dict()["steps"]
    assert [(s["node"], s["source"], s["value"], s["gradient"]) for s in steps] == [
        ("mean(c)", "mean(c)", 16.5, 1.0),
        ("c", "b*3", [15.0, 18.0], [0.5, 0.5]),
        ("b", "a + 3", [5.0, 6.0], [1.5, 1.5]),
    ]
    assert [s["passes"] for s in steps] == [
        [{"to": "c", "step": 2, "entrywise": False, "derivative": [[0.5, 0.5]], "gradient": [0.5, 0.5]}],
        [{"to": "b", "step": 3, "entrywise": True, "derivative": [3.0, 3.0], "gradient": [1.5, 1.5]}],
        [{"to": "a", "step": None, "entrywise": True, "derivative": [1.0, 1.0], "gradient": [1.5, 1.5]}],
    ]


def test_only_the_branch_taken_is_told() -> None:
    steps = jacli.backward("where(x > 0, x, log(x))", "x=2", explain=True).to_dict()["steps"]
    assert [(s["node"], [p["to"] for p in s["passes"]]) for s in steps] == [("where(x > 0, x, log(x))", ["x"])]


def test_it_is_the_same_as_torch() -> None:
    a = torch.tensor([[0.3, -1.2], [2.5, 0.7], [1.1, -0.4]], dtype=torch.float64, requires_grad=True)
    w = torch.tensor([[0.9, 0.2, -0.5], [1.5, -2.0, 0.1]], dtype=torch.float64, requires_grad=True)
    weights = torch.arange(9, dtype=torch.float64).reshape(3, 3) / 7
    torch.tanh(a @ w).backward(weights)
    result = jacli.backward("tanh(a @ w)", {"a": a.detach(), "w": w.detach()}, gradients=[weights])
    assert a.grad is not None
    assert w.grad is not None
    assert result.to_dict()["grad"] == {"a": a.grad.tolist(), "w": w.grad.tolist()}
    assert result.verdict == "agree"


# ---------------------------------------------------------------- row or column


@pytest.mark.parametrize(
    ("text", "gradient", "symmetric", "column", "words"),
    [
        (GENERAL, "1,2", False, [12.0, 196.0], "a row on the left of J; J · weights would be [12.0, 196.0]"),
        (SYMMETRIC, "1,2", True, [12.0, 194.0], "this example cannot tell a row on the left of J from a column"),
        (GENERAL, "0,0", False, [0.0, 0.0], "J · weights happens to be the same for these weights"),
        ("[a[0]*a[1], a[0], a[1]]", "1,2,3", None, None, None),
    ],
)
def test_row_or_column(text: str, gradient: str, symmetric: bool | None, column: Any, words: str | None) -> None:
    result = jacli.backward(text, POINT, gradients=[gradient])
    document = result.to_dict()
    assert document["symmetric"] is symmetric
    assert document["calls"][0]["column"] == column
    drawn = render(result, "table", Options())
    assert isinstance(drawn, str)
    assert ("torch computed" in drawn) == (words is not None)
    assert words is None or words in drawn


# ---------------------------------------------------------------- intermediate results


def test_show_holds_what_retain_grad_would() -> None:
    text = "b = a + 3; c = b*3; unused = log(a); mean(c)"
    shown = jacli.backward(text, "a=[2,3]", show="c,b,unused").to_dict()["shown"]
    assert [(s["name"], s["source"], s["value"], s["gradient"]) for s in shown[:2]] == [
        ("c", "b*3", [15.0, 18.0], [0.5, 0.5]),
        ("b", "a + 3", [5.0, 6.0], [1.5, 1.5]),
    ]
    assert shown[2]["value"] == [math.log(2), math.log(3)]
    assert shown[2]["gradient"] is None


def test_kept_gradients_accumulate_like_the_leaves() -> None:
    text, calls = "b = 2*x; [b**2, b]", {"gradients": ["1,0", "0,1"], "retain_graph": True, "show": "b"}
    assert jacli.backward(text, "x=3", **calls).shown[0].gradient.values == (13.0,)
    assert jacli.backward(text, "x=3", **calls, zero_grad=True).shown[0].gradient.values == (1.0,)


@pytest.mark.parametrize(
    ("result", "gradient"),
    [
        (lambda: jacli.vjp("b = x*y; [b**2, x + b]", [2, 3], [1, 10], show="b"), (22.0,)),
        (lambda: jacli.jacobian("b = x*y; [b**2, x + b]", [2, 3], weights=[1, 10], show="b"), (22.0,)),
        (lambda: jacli.jacobian("b = x*y; [b**2, x + b]", [2, 3], show="b"), None),
        (lambda: jacli.grad("b = x*y; b**2", [2, 3], show="b"), (12.0,)),
        (lambda: jacli.grad("b = x*y; x**2", [2, 3], show=["b"]), None),
    ],
)
def test_show_in_other_commands(result: Any, gradient: tuple[float, ...] | None) -> None:
    (shown,) = result().shown
    assert (shown.value.values, shown.gradient.values) == ((6.0,), gradient)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("text", "at", "arguments", "message", "hint"),
    [
        (
            SYMMETRIC,
            POINT,
            {},
            "the output has 2 entries (shape 2), so backward needs a gradient",
            "--gradient 1,1 for",
        ),
        ("w[1:1]", "w=[1,2]", {}, "the output has no entries", None),
        ("x*y, x", "2,3", {}, "the 2 outputs have 2 entries, so backward needs a gradient", "--gradient 1,0 for"),
        ("a @ a", "a=[[1,2,3],[4,5,6],[7,8,9]]", {}, "(shape 3x3)", "one number for each entry, or make one number"),
        (SYMMETRIC, POINT, {"gradients": ["1,0", "0,1"]}, "2 calls of backward need the graph", "--retain-graph"),
        (
            "a @ w",
            "a=[[2,3],[1,2]], w=[[0,0,0],[0,0,0]]",
            {"gradients": ["[[1,1],[1,1],[1,1]]"]},
            "the output has 6 entries (shape 2x3) but 6 numbers (shape 3x2) were given as gradient",
            "in the shape 2x3",
        ),
        (
            "a @ w",
            "a=[[2,3],[1,2]], w=[[0,0,0],[0,0,0]]",
            {"gradients": ["1,1"]},
            "the output has 6 entries (shape 2x3) but 2 numbers (shape 2) were given as gradient",
            "in the shape 2x3",
        ),
        ("x**2", "3", {"gradients": ["1,1"]}, "the output has 1 entry but 2 numbers (shape 2) were given", None),
        ("5", "x=3", {}, "the output does not depend on x here", "jacobian"),
        ("where(x > 0, 1, x)", "x=3", {}, "the output does not depend on x here", "jacobian"),
        ("b = x; b**2", "3", {"show": "c"}, "--show names c, which no statement gives a value", "the statements are b"),
        ("x**2", "3", {"show": "x"}, "--show names x, which is a variable", "statements"),
        ("x**2", "3", {"show": "b"}, "--show names b", "name a part of the expression"),
        ("x**2", "3", {"gradients": [1] * 1001, "retain_graph": True}, "1001 calls of backward are too many", None),
        ("+".join(["sin(x)"] * 400), "3", {"explain": True}, "too long to read", "--show"),
    ],
)
def test_refusals(text: str, at: str, arguments: dict[str, Any], message: str, hint: str | None) -> None:
    with pytest.raises(JacliError) as caught:
        jacli.backward(text, at, **arguments)
    assert message in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")


def test_a_nan_that_torch_leaves_is_shown_and_judged() -> None:
    result = jacli.backward("[x**2, sqrt(y)]", "x=1,y=0", gradients=["1,0"])
    assert result.to_dict()["grad"] == {"x": 2.0, "y": None}
    assert result.to_dict()["backward_status"] == ["agree", "rounding"]
    assert "0 times one that is not finite is nan" in (result.blocks[0].rows[0][1].reason or "")


def test_too_many_rows_are_not_listed_and_still_right() -> None:
    result = jacli.backward("a*2", {"a": list(range(60))}, gradients=[[3] * 60])
    document = result.to_dict()
    assert document["jacobian"] is None
    assert document["calls"][0]["rows"] is None
    assert document["calls"][0]["sum"] == document["grad"]["a"] == [6.0] * 60
    assert isinstance(render(result, "table", Options()), str)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ([SYMMETRIC, "--at", POINT, "--gradient", "1,2"], 0),
        ([SYMMETRIC, "--at", POINT], 2),
        ([SYMMETRIC, "--at", POINT, "--gradient", "1,0", "--gradient", "0,1"], 2),
        ([SYMMETRIC, "--at", POINT, "--gradient", "1,0", "--gradient", "0,1", "--retain-graph"], 0),
        (["[x**2, sqrt(y)]", "--at", "x=1,y=0", "--gradient", "1,0"], 1),
    ],
)
def test_exit_status(words: list[str], status: int) -> None:
    assert run_words(["backward", *words, "--quiet"]) == status
