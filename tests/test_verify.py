"""Verdicts on floats: what agrees, what rounding explains, and what nothing explains."""

from __future__ import annotations

import json
import math
import time
from decimal import Decimal
from pathlib import Path

import pytest

import jacli
from jacli.verify import Proof, Prover, judge, prove_gradient, prove_value
from proving import prepare

NAN, INF = math.nan, math.inf

# text, point, variable, what torch might say, status, words of the reason
VERDICTS = [
    ("x**2", "x=3", "x", 6.0, "agree", ""),
    ("x**2", "x=3", "x", 6.0000000001, "agree", ""),
    ("x**2", "x=3", "x", 6.000001, "disagree", "torch returned 6.000001"),
    ("x**2", "x=3", "x", -6.0, "disagree", ""),
    ("x**2", "x=3", "x", NAN, "disagree", "torch returned nan"),
    ("cos(x)", "x=pi/2", "x", -1.0, "agree", ""),
    ("x*cos(pi/2)", "x=3", "x", 6.123233995736766e-17, "agree", ""),
    ("x*cos(pi/2)", "x=3", "x", 6e-15, "disagree", ""),
    ("(0.1 + 0.2 - 0.3)*x", "x=1", "x", 5.551115123125783e-17, "agree", ""),
    ("x*100000000000000000000001 - x*100000000000000000000000", "x=1", "x", 0.0, "rounding", "typed numbers"),
    ("tan(1e308*x)", "x=1", "x", 1.2587615746940944e308, "rounding", "moves this number beyond the range of doubles"),
    ("cos(1e300*x)", "x=1", "x", 8.178819121159085e299, "rounding", "no digit is right"),
    ("cos(pi*1e20 + pi/2)*x", "x=1", "x", 0.5, "rounding", "typed numbers to doubles moves this number by about"),
    ("log(p/(1 - p))", "p=1-1e-17", "p", NAN, "rounding", "typed numbers"),
    ("logit(sigmoid(x))", "x=40", "x", INF, "rounding", "loses all digits, most of them in sigmoid(x)"),
    ("cot(exp(x))", "x=100", "x", -2.69e43, "rounding", "most of them in exp(x)"),
    ("Mod(x, 0.1)*y", "x=0.9,y=2", "y", 0.09999999999999998, "rounding", "Mod(x, 0.1) switches within rounding"),
    ("Mod(x, 0.1)*y", "x=0.9+1e-25,y=2", "y", 0.09999999999999998, "rounding", "Mod(x, 0.1) switches within rounding"),
    ("Mod(x, 0.1)*y", "x=0.95,y=2", "y", 0.09999999999999998, "disagree", ""),
    ("Mod(x, 0.5)*y", "x=1,y=2", "y", 0.5, "disagree", ""),
    ("max(0.3*x, (0.1 + 0.2)*x + 1e-30*y)", "x=1,y=1", "y", 0.0, "rounding", "switches within rounding"),
    ("where(0.1*x + 0.2 > 0.3, 5*y, y)", "x=1,y=1", "y", 5.0, "rounding", "switches within rounding"),
    ("where(0.1*x + 0.2 > 0.3 + 1e-30, 5*y, y)", "x=1,y=1", "y", 5.0, "rounding", "switches within rounding"),
    ("acosh(x)", "x=1e200", "x", 0.0, "rounding", "the derivative of acosh(x) is too large for doubles"),
    ("legendre(300, x)", "x=0.3", "x", 6.504672679343075, "agree", ""),
    ("legendre(9, x)", "x=0.3", "x", -1.2, "disagree", ""),
    ("laguerre(9, x)", "x=0.3", "x", -5.0, "disagree", ""),
    ("cbrt(x)", "x=8", "x", 0.0833333333, "agree", ""),
    ("gelu(x)", "x=-708", "x", 0.0, "agree", ""),
    ("1 + tanh(x)", "x=-1e8", "x", 0.0, "agree", ""),
    ("erf(exp(x))", "x=30", "x", 0.0, "agree", ""),
    ("erf(exp(x))", "x=30", "x", 1e-300, "disagree", "from 1.751702861617724453e-49596750768968755367537270"),
    ("exp(-1e300*x)", "x=1", "x", -0.0, "agree", ""),
    ("exp(exp(x))", "x=60", "x", INF, "rounding", "too large for doubles"),
    ("(1 - cos(x))/x**2", "x=1e-8", "x", 99999999.99999999, "rounding", "most of them in cos(x)"),
    ("(1 - cos(x))/x**2", "x=1e-8", "x", 1e12, "disagree", ""),
    ("sqrt(x + 1) - sqrt(x)", "x=1e15", "x", -6.617444900424222e-24, "rounding", "sqrt"),
    ("exp(x)/(exp(x) + exp(2))", "x=1000", "x", NAN, "rounding", "exp(x) is too large for doubles"),
    ("1/(1 + exp(-x))", "x=-700", "x", 0.0, "rounding", "no digit is right"),
    ("x*exp(-800)*exp(800)", "x=1", "x", NAN, "rounding", "exp(800) is too large"),
    ("x*1e-200*1e-200*1e200*1e200", "x=1", "x", 0.0, "rounding", "1e-200"),
    ("exp(-x)", "x=800", "x", 0.0, "agree", ""),
    ("sqrt(x**2 + y**2)", "x=0,y=0", "x", NAN, "kink", "torch returned nan"),
    ("abs(x)", "x=0", "x", 0.0, "kink", "torch returned 0.0"),
    ("sqrt(x)", "x=0", "x", INF, "edge", "torch returned inf"),
    ("x**2/x", "x=0", "x", NAN, "undefined", "division by zero"),
    ("Piecewise((x, x < 1), (x + 1, True))", "x=1", "x", 1.0, "undefined", "a jump"),
    ("Piecewise((x*sin(1/x), Ne(x, 0)), (0, True))", "x=0", "x", 0.0, "undefined", "oscillates"),
    ("Piecewise(((exp(x) - 1)/x, Ne(x, 0)), (1, True))", "x=0", "x", 0.0, "rounding", "switches"),
    ("max(x, 0) - max(-x, 0)", "x=0", "x", 1.0, "agree", ""),
    ("max(x, 0) - max(-x, 0)", "x=0", "x", 2.0, "rounding", "switches"),
    ("x**(1/3)", "x=-8", "x", NAN, "undefined", "cbrt(x)"),
    ("sin(x) + 0*y", "x=1,y=1", "y", 0.0, "agree", ""),
]


# command, text, point, tangent, words of the reason where torch is off; nothing may be called a disagreement
BEYOND_FIRST_ORDER = [
    ("jacobian", "inv(a)@a", "a=[[1,2],[3,4]]", None, ""),
    ("jacobian", "a@inv(a)", "a=[[1,2],[3,4]]", None, ""),
    ("jacobian", "a@solve(a, [1, 2])", "a=[[1,2],[3,4]]", None, ""),
    ("grad", "cos(pi*x)", "1e12+0.5", None, "7 digits are right"),
    ("grad", "sin(pi*x)", "1e15", None, "1 digit is right"),
    ("grad", "cos(2*pi*x)", "1e15+0.25", None, "digits are right"),
    ("grad", "x*cos(1e17*(y-0.1-0.2))", "1,0.3", None, "no digit is right"),
    ("jvp", "sqrt(x)+y", "0,1", "0,1", "the slope of sqrt(x) is infinite here"),
    ("jvp", "asin(x)+y", "1,1", "0,1", "the slope of asin(x) is infinite here"),
    ("jvp", "cbrt(x)+y", "0,1", "0,1", "the slope of cbrt(x) is infinite here"),
]


@pytest.mark.parametrize(("command", "text", "at", "tangent", "words"), BEYOND_FIRST_ORDER)
def test_no_alarm_beyond_first_order(command: str, text: str, at: str, tangent: str | None, words: str) -> None:
    more = {"tangent": tangent} if tangent else {}
    rows = getattr(jacli, command)(text, at, **more).blocks[0].rows
    entries = [entry for row in rows for entry in row]
    assert {entry.status for entry in entries} <= {"agree", "rounding"}
    assert words in " ".join(entry.reason or "" for entry in entries)


# text, point, variable, a wrong slope: what is beyond the first order must not forgive it
WRONG = [
    ("cos(pi*x)", "x=1e12+1/2", "x", -3.14),
    ("cos(pi*x)", "x=1/2", "x", -3.1415926),
    ("sqrt(x*y)", "x=2,y=3", "x", NAN),
    ("sqrt(x)*y", "x=4,y=1", "x", 0.2500001),
    ("x**3*y", "x=2,y=3", "y", 8.000001),
]


@pytest.mark.parametrize(("text", "at", "variable", "value"), WRONG)
def test_a_wrong_float_is_still_an_alarm(text: str, at: str, variable: str, value: float) -> None:
    assert judge(value, prepare(text, at).gradient()[variable])[0] == "disagree"


def test_a_quotient_of_exact_numbers_is_no_typed_number() -> None:
    result = jacli.grad("mean(x^2) - mean(x)^2", "x=[1e9,1e9+1,1e9+2]")
    assert [entry.status for entry in result.blocks[0].rows[0]] == ["rounding"] * 3
    assert prepare("x**2/3 - 1/3*x**2", "x=1e9").gradient()["x"].input_bound == 0
    assert prepare("x**2*0.1", "x=1e9").gradient()["x"].input_bound > 0


@pytest.mark.parametrize(("text", "at", "variable", "value", "status", "words"), VERDICTS)
def test_verdict(text: str, at: str, variable: str, value: float, status: str, words: str) -> None:
    proof = prepare(text, at).gradient()[variable]
    found, reason = judge(value, proof)
    assert found == status, (reason, proof)
    assert words in (reason or "")
    assert math.isfinite(proof.input_bound)


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_what_is_not_finite_never_agrees(value: float) -> None:
    for text, at in (("x**2", "x=3"), ("abs(x)", "x=0"), ("exp(x)/exp(x)", "x=1000"), ("max(x,0)-max(-x,0)", "x=0")):
        assert judge(value, prepare(text, at).gradient()["x"], rtol=INF)[0] != "agree"


def test_tolerances_are_used() -> None:
    proof = prepare("x**2", "x=3").gradient()["x"]
    assert judge(6.1, proof, rtol=0.1)[0] == "agree"
    assert judge(6.1, proof, atol=0.2)[0] == "agree"
    assert judge(6.0 + 1e-12, proof, rtol=0.0)[0] == "disagree"


def test_the_habits_of_torch_are_named() -> None:
    status, reason = judge(0.0, prepare("x**y", "x=2,y=0").hessian()[0][1])
    assert status == "disagree"
    assert "0.5: torch takes the slope of a power with exponent 0 for a constant 0" in (reason or "")
    singular = jacli.jacobian("det(a)", "a=[[1,2],[2,4]]").blocks[0].rows[0]
    assert {entry.status for entry in singular} == {"disagree"}
    assert all("singular" in (entry.reason or "") for entry in singular)


@pytest.mark.parametrize("matrix", ["[[1,2,3],[4,5,6],[7,8,10]]", "[[1e6,2,3],[4,5e-3,6],[7,8,1/3]]"])
def test_factoring_a_matrix_loses_digits_of_the_largest_entry(matrix: str) -> None:
    for result in (
        jacli.hessian("det(a)", f"a={matrix}"),
        jacli.jacobian("inv(a)", f"a={matrix}"),
        jacli.jacobian("solve(a, [1, 0, 2])", f"a={matrix}"),
    ):
        assert {entry.status for row in result.blocks[0].rows for entry in row} <= {"agree", "rounding"}
    proof = prepare("x*y - z", "x=2,y=3,z=6").gradient()["z"]
    assert judge(-1.0000001, proof)[0] == "disagree"


# ---- bounds


def test_numbers_that_doubles_hold_cost_nothing() -> None:
    proof = prepare("x**3 + 0.5*x", "x=3").gradient()["x"]
    assert proof.input_bound == 0
    assert prepare("x**3 + 0.1*x", "x=3").gradient()["x"].input_bound == pytest.approx(0.1 * 2**-53)
    assert prepare("x**3", "x=1/3").gradient()["x"].input_bound == pytest.approx(6 * (1 / 3) ** 2 * 2**-53)


def test_the_input_bound_is_the_second_derivative() -> None:
    """Where cancellation hides it from doubles, too: the curvature of (1 - cos x)/x**2 near 0 is -1/12."""
    for point in ("1e-8", "1e-12", "1e-3"):
        proof = prepare("(1 - cos(x))/x**2", f"x={point}").gradient()["x"]
        assert proof.input_bound == pytest.approx(float(point) / 12 * 2**-53, rel=0.02)


def test_bounds_hold_what_rounding_does() -> None:
    """The value in doubles, in the order typed, lies within the bounds of its proof."""
    cases = [
        ("(x - 1)**3", "x=1.0000001", lambda x: (x - 1) ** 3),
        ("sin(x)*1e8", "x=pi", lambda x: math.sin(x) * 1e8),
        ("exp(x) - exp(1/x)", "x=1.1", lambda x: math.exp(x) - math.exp(1 / x)),
        ("log(1 + x)/x", "x=1e-10", lambda x: math.log(1 + x) / x),
    ]
    for text, at, function in cases:
        proof = prepare(text, at).value()
        value = function(math.pi if at == "x=pi" else float(at[2:]))
        assert proof.exact is not None
        assert abs(Decimal(value) - Decimal(proof.exact)) <= 2 * Decimal(proof.operations_bound)


def test_an_overflow_is_named_and_forgives_nothing() -> None:
    proof = prepare("x*exp(-800)*exp(800) + 0*exp(x)", "x=1").gradient()["x"]
    assert proof.effect.leaves == "overflow"
    assert proof.worst_source == "exp(800)"
    assert math.isfinite(proof.operations_bound)


def test_the_place_that_loses_most() -> None:
    prepared = prepare("y + (x + 1e10) - 1e10 + x*y", "x=1/3,y=2")
    proof = Prover(prepared.tape).value(prepared.outputs[0])
    assert proof.worst_source == "y + (x + 1e10)"
    assert proof.worst is not None


# ---- published problems

DATA = Path(__file__).parent / "data" / "published.jsonl"
PROBLEMS = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]


def close(a: str, b: str) -> bool:
    left, right = Decimal(a), Decimal(b)
    return abs(left - right) <= Decimal("1e-18") * abs(right)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p["id"])
def test_published_problem(problem: dict[str, object]) -> None:
    at = {**problem["at"], **problem.get("params", {})}  # type: ignore[dict-item, attr-defined]
    prepared = prepare(", ".join(problem["exprs"]), at)  # type: ignore[arg-type]
    prover = Prover(prepared.tape)
    for output, truths in zip(prepared.outputs, problem["jacobian"], strict=True):  # type: ignore[call-overload]
        names = [name for name in problem["vars"] if name in prepared.variables]  # type: ignore[attr-defined]
        row = dict(zip(names, prover.gradient(output, [prepared.variables[n] for n in names]), strict=True))
        for name, truth in zip(problem["vars"], truths, strict=True):  # type: ignore[call-overload]
            proof = row.get(name, Proof("smooth", "0"))
            if problem["id"] == "dyn-edge-sinc-zero":
                assert proof.kind == "undefined"
                assert f"the slope {Decimal(truth).normalize()}" in (proof.reason or "")
            else:
                assert proof.exact is not None
                assert close(proof.exact, truth)


# ---- the shape of the work


def test_long_programs_are_walked_without_recursion() -> None:
    text = "a = x\n" + "\n".join(f"a{k + 1} = sin(a{k}) + x*a{k}" for k in range(1, 2000))
    text = text.replace("a = x", "a1 = x") + "\na2000"
    start = time.perf_counter()
    proof = prepare(text, "x=0.5").gradient()["x"]
    assert proof.kind == "smooth"
    assert time.perf_counter() - start < 20


def test_the_functions_are_the_prover() -> None:
    prepared = prepare("x**2*y", "x=2,y=3")
    assert [p.exact for p in prove_gradient(prepared.tape, prepared.outputs[0], prepared.wrt)] == ["12", "4"]
    assert prove_value(prepared.tape, prepared.outputs[0]).exact == "12"
