"""Exact values at a point, zeros that are proved, correctly rounded doubles, constants that are refused."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import mpmath
import pytest
from flint import arb, ctx, fmpq

from jacli.errors import JacliError
from jacli.language.parser import read
from jacli.readings.balls import PRECISIONS, Balls, Unknown
from jacli.readings.decimals import decimal
from jacli.readings.exact import OPERATIONS, WITH_ORDER, Angle
from jacli.readings.lowering import lower, lower_constant
from jacli.readings.tape import PRIMITIVES, Tape
from jacli.verify import double, refuse_absurd
from proving import mp_value, prepare

VALUES = [
    ("0.1 + 0.2 - 0.3", "0"),
    ("1/3", "0.33333333333333333333"),
    ("3/8", "0.375"),
    ("2**100", "1.2676506002282294015e+30"),
    ("1e-30", "1e-30"),
    ("-12345678901234567890", "-12345678901234567890"),
    ("cos(pi/2)", "0"),
    ("sin(2*pi*168/12)", "0"),
    ("sin(7*pi/6)", "-0.5"),
    ("cos(5*pi/3)", "0.5"),
    ("tan(3*pi/4)", "-1"),
    ("asin(1/2) - pi/6", "0"),
    ("acos(-1) - pi", "0"),
    ("4*atan(1) - pi", "0"),
    ("atan2(0, -1) - pi", "0"),
    ("atan2(-2, -2)*4/pi", "-3"),
    ("8**(1/3)", "2"),
    ("(4/9)**(-3/2)", "3.375"),
    ("(-2)**3", "-8"),
    ("0**0", "1"),
    ("(-1)**(10**30)", "1"),
    ("gamma(6)", "120"),
    ("gamma(-1/2)", "-3.5449077018110320546"),
    ("lgamma(-1/2)", "1.2655121234846453965"),
    ("digamma(1)", "-0.57721566490153286061"),
    ("polygamma(1, 1)", "1.6449340668482264365"),
    ("besseli0(2)", "2.2795853023360672674"),
    ("erf(1)", "0.84270079294971486934"),
    ("floor(-1/2)", "-1"),
    ("ceil(-1/2)", "0"),
    ("Mod(-7, 3)", "2"),
    ("sinc(0)", "1"),
    ("max(1/3, 0.333)", "0.33333333333333333333"),
    ("Piecewise((log(-1), 1 > 2), (5, True))", "5"),
    ("Piecewise((1, And(1 > 2, log(-1) > 0)), (2, True))", "2"),
    ("exp(-1e6)", "3.296831478088558579e-434295"),
]

UNDEFINED = [
    ("1/0", "division by zero"),
    ("0**(-1)", "division by zero"),
    ("log(0)", "the logarithm of zero"),
    ("log(-2)", "the logarithm of a negative number"),
    ("sqrt(-1)", "the square root of a negative number"),
    ("(-8)**(1/3)", "complex"),
    ("asin(2)", "asin outside -1 to 1"),
    ("acosh(0)", "acosh below 1"),
    ("atanh(1)", "atanh outside"),
    ("tan(pi/2)", "tangent of an odd multiple of pi/2"),
    ("gamma(0)", "gamma has a pole at 0"),
    ("digamma(-3)", "digamma has a pole at -3"),
    ("atan2(0, 0)", "the angle of the origin"),
    ("Piecewise((1, 1 > 2))", "no case of the Piecewise holds"),
    ("1/(sqrt(2)**2 - 2)", "division by zero"),
]

#: Zeros that no precision settles, and what proves them.
ZEROS = [
    ("sqrt(2)**2 - 2", "algebraic"),
    ("sqrt(2) + sqrt(3) - sqrt(5 + 2*sqrt(6))", "algebraic"),
    ("cos(2*pi/7) + cos(4*pi/7) + cos(6*pi/7) + 1/2", "algebraic"),
    ("sin(pi/3)**2 - 3/4", "algebraic"),
    ("5**(1/3)*25**(1/3) - 5", "algebraic"),
    ("exp(1) - E", "SymPy"),
    ("log(6) - log(2) - log(3)", "SymPy"),
    ("sin(1)**2 + cos(1)**2 - 1", "SymPy"),
    ("gamma(1/2) - sqrt(pi)", "SymPy"),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_value(text: str, value: str) -> None:
    proof = prepare(text, {}).value()
    assert (proof.kind, proof.exact) == ("smooth", value)


@pytest.mark.parametrize(("text", "reason"), UNDEFINED)
def test_undefined(text: str, reason: str) -> None:
    proof = prepare(text, {}).value()
    assert proof.kind == "undefined"
    assert proof.exact is None
    assert reason in (proof.reason or "")
    assert proof.place is not None


@pytest.mark.parametrize(("text", "by"), ZEROS)
def test_zero_is_proved(text: str, by: str) -> None:
    assert prepare(text, {}).value().exact == "0"


@pytest.mark.parametrize(("text", "by"), [zero for zero in ZEROS if zero[1] == "algebraic"])
def test_nearly_zero_is_not(text: str, by: str) -> None:
    assert prepare(f"{text} + 1e-300", {}).value().exact == "1e-300"


def test_what_cannot_be_decided_is_not_guessed() -> None:
    proof = prepare("floor(1 + besseli0(1)/besseli1(1)*besseli1(1) - besseli0(1) + exp(-exp(20)))", {}).value()
    assert proof.exact is None
    assert proof.kind == "undecided"
    assert "digits, in floor" in (proof.reason or "")


def test_every_primitive_has_an_exact_form() -> None:
    structural = {"number", "variable", "select"}
    assert set(PRIMITIVES) - structural == set(OPERATIONS) | set(WITH_ORDER)


@pytest.mark.parametrize("precision", PRECISIONS[:3])
def test_balls_contain_the_truth(precision: int) -> None:
    text = "exp(sin(x)*log(y)) + atan2(x, y)**3 - sqrt(x + y)*tanh(x)/gamma(y) + erf(x)*asinh(y) + x**y"
    prepared = prepare(text, "x=0.7,y=2.3")
    point = Balls(prepared.tape).point(precision)
    point.evaluate(prepared.outputs)
    value = point.values[prepared.outputs[0]]
    with mpmath.workdps(1000):
        at = {node: mp_value(prepared.tape, prepared.tape.bound[node], {}) for node in prepared.wrt}
        truth = mpmath.nstr(mp_value(prepared.tape, prepared.outputs[0], at), 990)
    with ctx.workprec(4000):
        assert isinstance(value, arb)
        assert value.contains(arb(truth))


def test_precision_rises_until_the_digits_are_there() -> None:
    proof = prepare("(1 + x) - 1 - x + x**40 + exp(x) - exp(x) + sin(x) - sin(x)", "x=1e-30").value()
    assert proof.exact == "1e-1200"


# ---- doubles


def constant(text: str) -> tuple[Tape, int]:
    tape = Tape()
    return tape, lower_constant(read(text), tape)[1][0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", 0.1),
        ("1/3", 1 / 3),
        ("pi/6", 0.5235987755982988730771072305465838),
        ("-1e-8", -1e-8),
        ("sqrt(2)", math.sqrt(2)),
        ("sqrt(2)**2 - 2", 0.0),
        ("1e-200*1e-200", 0.0),
        ("9007199254740993", 9007199254740992.0),
    ],
)
def test_double(text: str, value: float) -> None:
    assert double(*constant(text)) == value


@pytest.mark.parametrize(("text", "words"), [("1e400", "range of doubles"), ("log(-1)", "not a real"), ("1/0", "zero")])
def test_no_double(text: str, words: str) -> None:
    with pytest.raises(JacliError, match=words):
        double(*constant(text))


def test_a_double_is_correctly_rounded() -> None:
    for numerator in range(1, 200):
        tape, node = constant(f"{numerator}*pi/7")
        with mpmath.workdps(60):
            assert double(tape, node) == float(numerator * mpmath.pi / 7)


# ---- refusals


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x + 9**9**9", "the constant 9**9**9 has about 3.7e8 digits"),
        ("x*cos(exp(exp(exp(3))))", "the constant exp(exp(exp(3))) has about 2.3e8 digits"),
        ("x + 9**9**9**9", "the constant 9**9**9 has about"),
        ("x + exp(exp(exp(10)))", "more digits than can be counted"),
        ("x + gamma(gamma(20))", "the constant gamma(gamma(20)) has"),
        ("Piecewise((x, x > 0), (2**2**2**2**2**2, True))", "the constant"),
    ],
)
def test_absurd_constants_are_refused_at_once(text: str, words: str) -> None:
    program = read(text)
    lowered = lower(program, {"x": ()}, 1000)
    start = time.perf_counter()
    with pytest.raises(JacliError) as caught:
        refuse_absurd(lowered.tape, [lowered.outputs[0][0]])
    assert time.perf_counter() - start < 1
    assert words in caught.value.message
    assert caught.value.kind == "limit"
    assert caught.value.span is not None


@pytest.mark.parametrize("text", ["x + 10**400", "x*exp(1000)*exp(-1000)", "x + 2**1000000", "x*exp(-exp(exp(3)))"])
def test_large_constants_are_computed(text: str) -> None:
    prepared = prepare(text, "x=1")
    refuse_absurd(prepared.tape, prepared.outputs)
    assert prepared.gradient()["x"].exact is not None


def test_absurd_variables_end() -> None:
    start = time.perf_counter()
    proof = prepare("cos(exp(exp(exp(x))))", "x=3").gradient()["x"]
    assert time.perf_counter() - start < 5
    assert proof.kind == "undecided"


def test_numbers_are_rationals_and_angles_while_they_can_be() -> None:
    prepared = prepare("x/3 + 1, 2*pi*y, sqrt(2)*x", "x=1/7,y=5/4")
    values = Balls(prepared.tape).values(prepared.outputs)
    assert values[0] == fmpq(22, 21)
    assert values[1] == Angle(fmpq(5, 2))
    assert isinstance(values[2], arb)
    assert not any(isinstance(value, Unknown) for value in values)
    assert decimal(fmpq(22, 21)) == f"{Fraction(22, 21).__float__():.16f}"[:5] + decimal(fmpq(22, 21))[5:]
