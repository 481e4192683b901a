"""``check``: every witness, every claim, and lying readings: each lie is caught and blamed on the liar."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import jacli
from jacli.checks import differences
from jacli.cli import run
from jacli.functions import ROWS, TABLE
from jacli.readings import germs, symbols

PAIR = "x0**2+x1, x1**3+2*x0"

# ---- witnesses


def test_every_witness_side_by_side() -> None:
    document = jacli.check(PAIR, "2,4").to_dict()
    assert document["command"] == "check"
    assert document["jacobian"] == [[4.0, 1.0], [2.0, 48.0]]
    assert document["symbolic"] == [["2*x0", "1"], ["2", "3*x1**2"]]
    assert document["exact"] == [["4", "1"], ["2", "48"]]
    said = document["witnesses"]
    assert said["reverse"] == said["forward"] == document["jacobian"]
    assert said["sympy"] == said["proved"] == document["exact"]
    for i, row in enumerate(said["differences"]):
        for j, value in enumerate(row):
            assert value == pytest.approx(document["jacobian"][i][j], abs=10 * said["errors"][i][j])
            assert math.frexp(said["steps"][i][j])[0] == 0.5
    assert said["blamed"] == [[[], []], [[], []]]
    assert document["verdict"] == "agree"


def test_sympy_is_evaluated_to_thirty_digits_at_the_exact_point() -> None:
    third = jacli.check("exp(x)*y", "1/3,1").to_dict()["witnesses"]
    assert third["sympy"] == [["1.3956124250860895286281253196"] * 2]  # exp(1/3), its 30th digit a zero
    assert third["proved"][0][0].startswith("1.3956124250860895286")
    assert third["radius"][0][0] == "1e-19"


@dataclass(frozen=True)
class Singular:
    expr: str
    at: str
    status: str
    sympy: str | None
    forward: float | None
    difference: float | None


SINGULAR = [
    Singular("x**2/x", "0", "undefined", "1", None, 1.0),  # sympy/sympy#25263: the parser cancels
    Singular("abs(x)", "0", "kink", "0", 0.0, 0.0),
    Singular("sqrt(x)", "0", "edge", None, None, None),
    Singular("(exp(x)-1)/x", "0", "undefined", None, None, 0.5),
]


@pytest.mark.parametrize("case", SINGULAR, ids=lambda case: case.expr)
def test_witnesses_where_there_is_no_derivative(case: Singular) -> None:
    document = jacli.check(case.expr, case.at).to_dict()
    assert document["status"] == [[case.status]]
    said = document["witnesses"]
    assert said["sympy"] == [[case.sympy]]
    assert said["forward"] == [[case.forward]]
    if case.difference is None:
        assert said["differences"] == [[None]]
    else:
        assert said["differences"][0][0] == pytest.approx(case.difference, abs=1e-9)
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_arrays_have_witnesses_too() -> None:
    document = jacli.check("inv(a) @ v", "a=[[2,1],[1,3]], v=[1,2]").to_dict()
    assert document["verdict"] == "agree"
    assert document["witnesses"]["forward"] == [pytest.approx(row, rel=1e-12) for row in document["jacobian"]]


def test_one_undefined_output_spoils_no_other_witness() -> None:
    said = jacli.check("x0**2, sqrt(x1)", "1,-1").to_dict()["witnesses"]
    assert said["forward"] == [[2.0, 0.0], [0.0, None]]
    assert said["proved"][0] == ["2", "0"]


@pytest.mark.parametrize("row", [row for row in TABLE if row.example[0]], ids=lambda row: row.name)
def test_all_witnesses_know_every_function_of_the_table(row: Any) -> None:
    result = jacli.check(*row.example)
    assert result.verdict == "agree"
    assert result.findings is not None
    for witnesses in result.findings.witnesses:
        for said in witnesses:
            assert said.blamed == ()
            assert said.sympy is not None
            assert said.forward is not None
            assert said.difference is not None


@pytest.mark.parametrize(
    ("expr", "at", "column", "told"),
    [
        ("x**y", "0,2", 0, "SymPy's formula gives nan here; the proved value is 0"),
        (
            "Piecewise(((exp(x) - 1)/x, Ne(x, 0)), (1, True))",
            "0",
            0,
            "SymPy's formula gives 0; the proved value is 0.5",
        ),
    ],
)
def test_sympy_is_sometimes_exactly_wrong(expr: str, at: str, column: int, told: str) -> None:
    result = jacli.check(expr, at)
    assert result.findings is not None
    assert "sympy" in result.findings.witnesses[0][column].blamed
    assert told in str(result.blocks[0].rows[0][column].reason)


# ---- differences


@pytest.mark.parametrize(
    ("function", "at", "slope"),
    [
        (math.sin, 1.0, math.cos(1.0)),
        (lambda x: x**3, 1e4, 3e8),
        (math.exp, -20.0, math.exp(-20.0)),
        (lambda x: math.sin(1e5 * x), 0.7, 1e5 * math.cos(7e4)),
        (lambda x: math.log(x) if x > 0 else math.nan, 1e-6, 1e6),
    ],
)
def test_differences_are_as_good_as_they_say(function: Callable[[float], float], at: float, slope: float) -> None:
    (found,) = differences.column(lambda point: [function(point[0])], [at], 0)
    assert abs(found.value - slope) <= 10 * found.error
    assert found.error <= 1e-5 * abs(slope)
    assert found.sides is None


def test_differences_see_a_kink_from_both_sides() -> None:
    (found,) = differences.column(lambda point: [max(point[0], 0.0)], [0.0], 0)
    assert found.sides == (0.0, 1.0)


# ---- lying readings


def lying_torch(t: Any, x: Any) -> Any:
    """sin with a backward pass that is off by a millionth."""

    class Lie(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: Any) -> Any:
            ctx.save_for_backward(value)
            return t.sin(value)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * t.cos(ctx.saved_tensors[0]) * (1 + 1e-6)

    return Lie.apply(x)


def test_a_torch_operation_with_a_wrong_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROWS, "sin", replace(ROWS["sin"], torch=lying_torch))
    document = jacli.check("x*sin(y), x+y", "2,1").to_dict()
    assert document["status"] == [["agree", "disagree"], ["agree", "agree"]]
    assert document["witnesses"]["blamed"] == [[[], ["reverse"]], [[], []]]
    reason = document["reasons"][0][1]
    assert reason.startswith("torch's reverse mode returned 1.0806")
    assert "so say SymPy's formula and central differences" in reason


def test_a_torch_operation_with_a_wrong_forward_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    from jacli.checks import witnesses

    honest = witnesses.forward_column

    def lying(*args: Any) -> list[float] | None:
        column = honest(*args)
        return None if column is None else [1.5 * value for value in column]

    monkeypatch.setattr(witnesses, "forward_column", lying)
    document = jacli.check("sin(x)", "1").to_dict()
    assert document["witnesses"]["blamed"] == [[["forward"]]]
    assert document["verdict"] == "disagree"
    assert document["reasons"][0][0].startswith("torch's forward mode returned")


def test_a_sympy_rule_off_by_a_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = symbols.gradient
    monkeypatch.setattr(symbols, "gradient", lambda e: {name: -slope for name, slope in honest(e).items()})
    document = jacli.check("sin(x)", "1").to_dict()
    assert document["status"] == [["agree"]]  # torch is right, and that is what a status says
    assert document["witnesses"]["blamed"] == [[["sympy"]]]
    assert document["reasons"][0][0].startswith("SymPy's formula gives -0.5403")


def test_a_sympy_formula_without_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    import sympy

    x = sympy.Symbol("x", real=True)
    monkeypatch.setattr(symbols, "gradient", lambda e: {"x": sympy.Mul(x - 1, 1 / (x - 1), evaluate=False)})
    document = jacli.check("x+1", "1").to_dict()
    assert "SymPy's formula gives nan here" in document["reasons"][0][0]
    assert document["witnesses"]["sympy"] == [[None]]


def test_a_derivative_rule_of_the_prover_that_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROWS, "sin", replace(ROWS["sin"], derivatives=("cos(x)*1000001/1000000",)))
    document = jacli.check("x*sin(y)", "2,1").to_dict()
    assert document["status"] == [["agree", "disagree"]]
    assert document["witnesses"]["blamed"] == [[[], ["proved"]]]
    assert "the proof is wrong" in document["reasons"][0][1]


@pytest.mark.parametrize("expr", ["x*abs(x) + sin(x)", "Piecewise((x*exp(x), x > 0), (sin(x), True))"])
def test_a_germ_that_is_off_in_the_second_coefficient(expr: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert jacli.check(expr, "0").verdict == "agree"

    def lying(count: int) -> tuple[Fraction | int, ...]:
        first, second, *others = honest(count)
        return (first, second * Fraction(11, 10), *others)

    honest = germs._SIN
    monkeypatch.setattr(germs, "_SIN", lying)
    document = jacli.check(expr, "0").to_dict()
    assert document["witnesses"]["blamed"] == [[["proved"]]]
    assert document["verdict"] == "disagree"


# ---- claims


@dataclass(frozen=True)
class Claimed:
    expr: str
    at: str
    claim: Any
    right: list[list[bool]]
    slip: str | None = None  # of the first wrong entry
    kind: str = "jacobian"
    weights: str | None = None


CLAIMS = [
    Claimed(PAIR, "2,4", "2*x0, 1; 2, 3*x1**2", [[True, True], [True, True]]),
    Claimed(PAIR, "2,4", "[[2*x0, 1], [2, 3*x1^2]]", [[True, True], [True, True]]),
    Claimed(PAIR, "2,4", "2x0, 1\n2, 3x1²\n", [[True, True], [True, True]]),
    Claimed(PAIR, "2,4", "Matrix([[2*x0, 1], [2, 3*x1**2]])", [[True, True], [True, True]]),
    Claimed(
        PAIR, "2,4", "tensor([[ 4.,  1.],\n        [ 2., 48.]], dtype=torch.float64)", [[True, True], [True, True]]
    ),
    Claimed(PAIR, "2,4", "[4 , 1; 2, 48]", [[True, True], [True, True]]),
    Claimed(PAIR, "2,4", '[["2*x0", "1"], ["2", "3*x1**2"]]', [[True, True], [True, True]]),
    Claimed(PAIR, "2,4", [[4, 1], [2, 48.0]], [[True, True], [True, True]]),
    Claimed(PAIR, "2,4", [["2*x0", 1], [2, "3*x1**2"]], [[True, True], [True, True]]),
    Claimed(PAIR, "2,4", "2*x0, -1; 2, 3*x1**2", [[True, False], [True, True]], "the sign is flipped"),
    Claimed(PAIR, "2,4", "x0, 1; 2, 3*x1**2", [[False, True], [True, True]], "a factor of 2 is missing"),
    Claimed(PAIR, "2,4", "2*x0, 1; 4, 3*x1**2", [[True, True], [False, True]], "a factor of 2 too much"),
    Claimed(PAIR, "2,4", "2*x0, 2; 1, 3*x1**2", [[True, False], [False, True]], "transposed"),
    Claimed(PAIR, "2,4", "2, 3*x1**2; 2*x0, 1", [[False, False], [False, False]], "rows f0 and f1 are swapped"),
    Claimed(PAIR, "2,4", "1, 2*x0; 3*x1**2, 2", [[False, False], [False, False]], "columns x0 and x1 are swapped"),
    Claimed(PAIR, "2,4", "2*x0, 1; 2, 12*x1", [[True, True], [True, False]], "right at this point, wrong at x0="),
    Claimed("x*y, y*z, z*x", "1,2,3", "0,z,y; z,0,x; y,x,0", [[False] * 3] * 3, "the rows are in the order f1, f2, f0"),
    Claimed("x*y, y*z, z*x", "1,2,3", "y,x,0; 0,z,y; z,0,x", [[True] * 3] * 3),
    Claimed("sin(2*x)", "1", "cos(2*x)", [[False]], "the derivative of the inner 2*x (2)", "grad"),
    Claimed("exp(x**2)", "x=1/3", "exp(x**2)", [[False]], "the derivative of the inner x**2", "grad"),
    Claimed(
        "exp(x**2)", "x=1/3", "4*x^2*exp(x^2)", [[False]], "the derivative of the inner x**2 is there twice", "grad"
    ),
    Claimed("sin(x)*y", "1,2", "sin(x), y*cos(x)", [[False, False]], "columns x and y are swapped", "grad"),
    Claimed("sin(x)*y", "1,2", "y*cos(x); sin(x)", [[True, True]], None, "grad"),  # a column is a gradient too
    Claimed("x**3", "2", "x**3", [[False]], "this is f0 itself", "grad"),
    Claimed("x**2*y", "1,2", "2*y, 2*x; 2*x, 0", [[True, True], [True, True]], None, "hessian"),
    Claimed("x**2*y", "1,2", "2*y, x; x, 0", [[True, False], [False, True]], "a factor of 2 is missing", "hessian"),
    Claimed(PAIR, "2,4", "2*x0+4, 1+6*x1**2", [[True, True]], None, "vjp", "1,2"),
    Claimed(PAIR, "2,4", "8, 97", [[True, True]], None, "vjp", "1,2"),
    Claimed(PAIR, "2,4", "8, 98", [[True, False]], None, "vjp", "1,2"),
    Claimed("r = sqrt(x^2+y^2); r, atan2(y, x)", "3,4", "x/r, y/r; -y/r^2, x/r^2", [[True, True], [True, True]]),
    Claimed("sqrt(x^2+y^2)", "3,4", "r = sqrt(x^2+y^2); x/r, y/r", [[True, True]], None, "grad"),
    Claimed("x/3", "1", "0.333", [[True]], "rounded to the 3 digits typed", "grad"),
    Claimed("x/3", "1", "0.334", [[False]], None, "grad"),
    Claimed("exp(x)", "1", "2.7183", [[True]], "rounded to the 5 digits typed", "grad"),
    Claimed("0.14*x", "1", "-0.1", [[False]], None, "grad"),  # too few digits to guess a slip from
    Claimed("exp(x)", "1", "3", [[False]], None, "grad"),  # a whole number is meant exactly
    Claimed("cos(x)", "pi/2", "-1", [[True]], None, "grad"),
    Claimed("sin(x)", "pi/2", "0", [[True]], None, "grad"),
    Claimed("abs(x)", "0", "sign(x)", [[False]], "there is no derivative here (kink)", "grad"),
    Claimed("abs(x)", "0", "x/abs(x)", [[True]], "no value here, and no derivative either", "grad"),
    Claimed("x**2", "0", "2*x**2/x", [[False]], "this has no value here", "grad"),
    Claimed("sum(a*a)", "a=[1,2]", "2*a", [[True, True]], None, "grad"),
    Claimed(
        "a @ [x, y]", "a=[[1,2],[3,4]], x=1, y=2", "x,y,0,0,a[0,0],a[0,1]; 0,0,x,y,a[1,0],a[1,1]", [[True] * 6] * 2
    ),
]


@pytest.mark.parametrize("case", CLAIMS, ids=lambda case: f"{case.expr}: {case.claim}")
def test_claims(case: Claimed) -> None:
    result = jacli.check(case.expr, case.at, claim=case.claim, weights=case.weights)
    claim = result.to_dict()["claim"]
    assert claim["kind"] == case.kind
    assert claim["right"] == case.right
    slips = [slip for row in claim["slip"] for slip in row if slip]
    if case.slip is None:
        assert not slips
    else:
        assert case.slip in slips[0]
    wrong = not all(map(all, case.right))
    assert claim["verdict"] == ("wrong" if wrong else "right")
    if wrong:
        assert result.verdict == "wrong"


def test_a_claim_tells_where_it_was_tried() -> None:
    claim = jacli.check("x**2", "2", claim="x+2", trials=3).to_dict()["claim"]
    assert claim["trials"]["asked"] == claim["trials"]["made"] == 3
    place = claim["trials"]["wrong_at"][0][0]
    slope = float(jacli.grad("x**2", place).to_dict()["grad"][0])
    assert slope != pytest.approx(float(place.removeprefix("x=")) + 2)
    again = jacli.check("x**2", "2", claim="x+2", trials=3).to_dict()["claim"]
    assert again == claim


def test_trials_stay_inside_the_domain() -> None:
    claim = jacli.check("log(x) + sqrt(1-x)", "0.5", claim="1/x - 1/(2*sqrt(1-x))").to_dict()["claim"]
    assert claim["verdict"] == "right"
    assert claim["trials"]["made"] == 5


def test_without_trials_a_claim_is_about_the_point_only() -> None:
    assert jacli.check("x**2", "2", claim="x+2", trials=0).verdict == "agree"


@pytest.mark.parametrize(
    ("expr", "claim", "told"),
    [
        (PAIR, "1, 2, 3", "the Jacobian is 2 x 2, but the claim is 1 x 3"),
        (PAIR, "1, 2; 3", "row 1 of the claim has 2 entries and row 2 has 1"),
        ("x0*x1", "1, 2; 3, 4; 5, 6", "the gradient is 1 x 2, but the claim is 3 x 2"),
        (PAIR, "q, 1; 2, 3", "q is neither a variable nor a statement"),
        (PAIR, "2*x0, 1; 2, 3*(x1", "is never closed"),
        (PAIR, "", "there is no expression"),
        (PAIR, ";;", "there is no expression"),
        (PAIR, "@nowhere.txt", "there is no file nowhere.txt"),
        (PAIR, "a, b = 1", ""),
        (PAIR, "__import__('os'); 1", ""),
    ],
)
def test_claims_that_are_refused(expr: str, claim: str, told: str) -> None:
    with pytest.raises(jacli.JacliError, match=None) as refused:
        jacli.check(expr, "2,4", claim=claim)
    assert told in refused.value.message


def test_an_error_in_a_claim_points_at_its_place() -> None:
    with pytest.raises(jacli.JacliError) as refused:
        jacli.check(PAIR, "2,4", claim="2*x0, 1; 2, 3*zz")
    error = refused.value
    assert error.text is not None
    assert error.span is not None
    assert error.text[error.span.start : error.span.stop] == "zz"


def test_claims_from_files_and_arrays(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    (tmp_path / "claim.txt").write_text("2*x0, 1  # the first row\n2, 3*x1**2\n")
    numpy.save(tmp_path / "claim.npy", numpy.array([[4.0, 1.0], [2.0, 48.0]]))
    for claim in (f"@{tmp_path / 'claim.txt'}", f"@{tmp_path / 'claim.npy'}", numpy.array([[4.0, 1.0], [2.0, 48.0]])):
        assert jacli.check(PAIR, "2,4", claim=claim).verdict == "agree"


# ---- functions of one's own

MODULE = """
import torch

class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * torch.cos(x) * {factor}

def lying(x, y):
    print("heard")
    return Sine.apply(x) * y, x + y

def honest(x, y):
    return torch.sin(x) * y, x + y

def another(x, y):
    return torch.sin(2 * x) * y, x + y

def kinked(x):
    return torch.relu(x)

def failing(x):
    raise ValueError("no\\nway")

def backward_failing(x):
    class Boom(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            raise RuntimeError("not here")

    return Boom.apply(x)

def leaving(x):
    raise SystemExit(0)

def no_tensor(x):
    return "text"

def random(x):
    return x * torch.rand(())

def matrix(a, v):
    return a @ v
"""


@pytest.fixture
def module(tmp_path: Path) -> Callable[[str], str]:
    file = tmp_path / "mine.py"
    file.write_text(MODULE.replace("{factor}", "(1 + 1e-6)"))
    return lambda name: f"{file}:{name}"


SINE = "sin(x)*y, x+y"


def test_a_wrong_backward_pass_is_caught_by_the_expression(module: Callable[[str], str]) -> None:
    document = jacli.check(SINE, "x=1,y=2", torch=module("lying")).to_dict()
    assert document["status"] == [["disagree", "agree"], ["agree", "agree"]]
    assert document["witnesses"]["blamed"][0][0] == ["reverse"]
    assert document["reasons"][0][0].startswith("the backward pass of lying returned")
    assert jacli.check(SINE, "x=1,y=2", torch=module("honest")).verdict == "agree"


def test_a_wrong_backward_pass_is_caught_by_its_own_differences(module: Callable[[str], str]) -> None:
    document = jacli.check(None, "1,2", torch=module("lying")).to_dict()
    assert document["variables"] == ["x", "y"]
    assert document["status"] == [["disagree", "agree"], ["agree", "agree"]]
    assert document["exact"] == [[None, None], [None, None]]
    assert jacli.check(None, "1,2", torch=module("honest")).verdict == "agree"


def test_a_function_that_computes_something_else(module: Callable[[str], str]) -> None:
    result = jacli.check(SINE, "x=1,y=2", torch=module("another"))
    assert result.findings is not None
    assert result.findings.witnesses[0][0].blamed == ("function",)
    assert "another does not compute the expression" in str(result.blocks[0].rows[0][0].reason)
    assert any("where the expression is" in remark for remark in result.remarks)


def test_a_kink_is_no_mistake(module: Callable[[str], str]) -> None:
    assert jacli.check(None, "0", torch=module("kinked")).verdict == "kink"
    assert jacli.check("max(x, 0)", "0", torch=module("kinked")).verdict == "kink"


def test_arrays_are_tensors(module: Callable[[str], str]) -> None:
    document = jacli.check(None, "a=[[1,2],[3,4]], v=[5,6]", torch=module("matrix"), wrt="v").to_dict()
    assert document["jacobian"] == [[1.0, 2.0], [3.0, 4.0]]
    assert document["verdict"] == "agree"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("failing", "failing failed: ValueError: no way, line"),
        ("backward_failing", "backward_failing failed: RuntimeError: not here, line"),
        ("leaving", "leaving failed: SystemExit"),
        ("no_tensor", "no_tensor returns a str, not a torch tensor"),
        ("random", "random gives other values when it is called again"),
        ("nobody", "has no function nobody"),
        ("matrix", "matrix failed: TypeError"),
    ],
)
def test_errors_of_the_users_code_are_told_plainly(module: Callable[[str], str], name: str, told: str) -> None:
    with pytest.raises(jacli.JacliError) as refused:
        jacli.check(None, "1", torch=module(name))
    assert told in refused.value.message


@pytest.mark.parametrize(
    ("spec", "source", "told"),
    [
        ("{dir}/broken.py:f", "def f(x)\n    return x\n", "SyntaxError"),
        ("{dir}/raising.py:f", "1/0\n", "ZeroDivisionError: division by zero, line 1"),
        ("{dir}/missing.py:f", None, "there is no file"),
        ("nothing", None, "names no function"),
        ("no_such_module_anywhere:f", None, "ModuleNotFoundError"),
    ],
)
def test_files_that_cannot_be_loaded(tmp_path: Path, spec: str, source: str | None, told: str) -> None:
    spec = spec.format(dir=tmp_path)
    if source is not None:
        Path(spec.partition(":")[0]).write_text(source)
    with pytest.raises(jacli.JacliError) as refused:
        jacli.check(None, "1", torch=spec)
    assert told in refused.value.message


# ---- the command line


def test_exit_statuses(capfdbinary: pytest.CaptureFixture[bytes], module: Callable[[str], str]) -> None:
    words = ["check", PAIR, "--at", "2,4"]
    assert run([*words, "--claim", "2*x0, 1; 2, 3*x1**2"]) == 0
    assert run([*words, "--claim", "2*x0, 1; 2, 3*x1"]) == 1
    assert run([*words, "--claim", "1"]) == 2
    assert run([*words, "--trials", "many", "--claim", "2*x0, 1; 2, 3*x1**2"]) == 2
    assert run(["check", "--torch", module("failing"), "--at", "1"]) == 2
    assert run(["check", "--torch", module("lying"), "--at", "1,2"]) == 1
    assert run(["check", "--at", "1,2"]) == 2
    captured = capfdbinary.readouterr()
    assert b"Traceback" not in captured.err
    assert b"heard" not in captured.out


@pytest.mark.parametrize("form", ["table", "plain", "markdown", "latex", "csv", "tsv", "json", "jsonl"])
def test_every_format_draws_a_check(form: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(["check", PAIR, "--at", "2,4", "--claim", "2*x0, 1; 2, 3*x1", "--format", form]) == 1
    said = capfdbinary.readouterr().out.decode()
    assert "3*x1" in said or form == "latex"
