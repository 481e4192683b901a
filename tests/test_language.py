"""Reading: what a text means, and what is said of a text that means nothing."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jacli
from jacli.errors import JacliError, Span
from jacli.functions import TABLE
from jacli.language.parser import MOST_NESTED, exact, read
from jacli.language.points import read_point
from jacli.language.shapes import infer
from jacli.language.syntax import natural_key

#: Each text with itself fully bracketed, or written another way: both must be the same program.
SAME = [
    ("-x**2", "-(x**2)"),
    ("2**-x", "2**(-x)"),
    ("x**y**z", "x**(y**z)"),
    ("x**-y**2", "x**(-(y**2))"),
    ("3*x^2 + 2^y", "(3*(x**2)) + (2**y)"),
    ("-2**2*x", "(-(2**2))*x"),
    ("a - b - c", "(a - b) - c"),
    ("a/b/c", "(a/b)/c"),
    ("a/b*c", "(a/b)*c"),
    ("a @ b * c", "(a @ b) * c"),
    ("--x + +y", "(-(-x)) + y"),
    ("2x + 3(x + 1)", "2*x + 3*(x + 1)"),
    ("2x**2", "2*(x**2)"),
    ("x² − 2·x×y", "x**2 - 2*x*y"),
    ("x² · 2π", "x**2*(2*pi)"),
    ("x₀ + x₁", "x0 + x1"),
    ("ln(x)", "log(x)"),
    ("arcsin(x) + Abs(y)", "asin(x) + abs(y)"),
    ("Max(x, y, z)", "max(max(x, y), z)"),
    ("Piecewise((x, x > 0), (-x, True))", "where(x > 0, x, -x)"),
    ("where(0 < x < 1, x, 1)", "where(0 < x and x < 1, x, 1)"),
    ("where(And(x > 0, Not(y == 1)), x, 1)", "where(x > 0 and not (y == 1), x, 1)"),
    ("sum(a, axis=0)", "sum(a, 0)"),
    ("reshape(a, [2, 3])", "reshape(a, 2, 3)"),
    ("a.T", "transpose(a)"),
    ("x0**2 + x1,\n  x1  # the second\n", "x0**2+x1, x1"),
    ("u = x + 1\nu*u, u", "u = x + 1; u*u, u"),
    (".5*x + 2.", "0.5*x + 2"),
]


def meaning(text: str) -> object:
    program = read(text)
    nodes = [(n.op, n.args, Fraction(n.value) if n.op == "number" else n.value) for n in program.nodes]

    def tree(index: int) -> object:
        op, args, value = nodes[index]
        return (op, tuple(tree(arg) for arg in args), str(value))

    return [tree(output) for output in program.outputs]


@pytest.mark.parametrize(("text", "other"), SAME)
def test_two_spellings_of_one_program(text: str, other: str) -> None:
    assert meaning(text) == meaning(other)


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("S*E + I*N - Q*O*C", ["C", "I", "N", "O", "Q", "S"]),
        ("x10 + x2 + x1", ["x1", "x2", "x10"]),
        ("b + A + a + B", ["A", "a", "B", "b"]),
        ("beta*gamma + zeta + lambda", ["beta", "gamma", "lambda", "zeta"]),
        ("gamma(x) + gamma", ["gamma", "x"]),
        ("pi*x + E", ["x"]),
        ("u = x*y; u**2", ["x", "y"]),
    ],
)
def test_variables(text: str, variables: list[str]) -> None:
    assert list(read(text).variables) == variables


def test_pi_and_e_are_variables_when_bound() -> None:
    assert list(read("E*I + pi", ["E", "pi", "I"]).variables) == ["E", "I", "pi"]


REFUSED = [
    ("", "no expression"),
    ("   # only a comment", "no expression"),
    ("x0,,x1", "nothing between the commas"),
    ("x0, x1,", "ends after ','"),
    ("(x", "never closed"),
    ("x)", "closes nothing"),
    ("(x]", "closed by ']'"),
    ("x +", "ends after '+'"),
    ("x y", "no operator between 'x' and 'y'"),
    ("1/2x", "not clear how far"),
    ("y(x + 1)", "no function 'y'"),
    ("sine(x)", "no function 'sine'"),
    ("sin(x, y)", "takes 1 argument, not 2"),
    ("sin()", "takes 1 argument, not 0"),
    ("x.y", "'.' in column 2"),
    ("'x'", "' in column 1"),
    ("import os", "'import' is not part"),
    ("x if x > 0 else y", "'if' is not part"),
    ("x = 1; x = 2; x", "already has a value"),
    ("f = x", "no output"),
    ("x + y = 3", "only a name can be given a value"),
    ("x > 1", "a comparison can only be a condition"),
    ("x + (y > 1)", "a comparison can only be a condition"),
    ("where(x, 1, 2)", "a condition is needed"),
    ("Piecewise(x, y)", "each piece is (value, condition)"),
    ("Piecewise((x, True), (y, x > 1))", "no piece can follow"),
    ("a[]", "an index is missing"),
    ("a[x]", "constant whole number"),
    ("a[0.5]", "constant whole number"),
    ("a[::-1]", "step must be at least 1"),
    ("[]", "needs at least one entry"),
    ("1e999", "beyond the range"),
    ("1e309*x", "beyond the range"),
    ("x/1e-400", "beyond the range"),
    ("eˣ", "cannot be part of a name"),
    ("9" * 2000, "too long"),
    ("1_000*x", "digits are written together"),
    ("0x1F", "digits are written together"),
    ("x % 2", "'%' in column 3"),
    ("x!", "'!' in column 2"),
    ("|x|", "'|' in column 1"),
    ("\\frac{1}{x}", "'\\\\' in column 1"),
    ("∞", "'∞' in column 1"),
    ("x \x00", "U+0000"),
    ("x + 1.2(3)", "may be a product or an uncertainty"),
    ("[x; y]", "'[' is not closed before ';'"),
    ("x \udcff", "not valid UTF-8"),
    ("(" * 10_000 + "x" + ")" * 10_000, "nested too deeply"),
    ("-" * 10_000 + "x", "nested too deeply"),
    ("x" + "**x" * 10_000, "nested too deeply"),
    ("+".join(["x"] * 250_000), "too long"),
    ("legendre(x, 2)", "constant whole number"),
    ("legendre(-1, x)", "whole number from 0"),
    ("besseli(3, x)", "no function 'besseli'"),
]


@pytest.mark.parametrize(("text", "said"), REFUSED, ids=[repr(text)[:30] for text, _ in REFUSED])
def test_refused_with_the_place(text: str, said: str) -> None:
    with pytest.raises(JacliError) as caught:
        read(text)
    assert said in caught.value.message
    span = caught.value.span
    assert span is None or 0 <= span.start <= span.stop <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "ones(10**9)",
        "ones(10**8), ones(10**8), ones(10**8)",
        "reshape(x, 1, 1000) + ones(10**6, 1)",
        "reshape(x, 1000, 1) @ ones(1, 10**6)",
        "outer(ones(10**5), ones(10**5))",
        "{i for i in 0:1000000000000}",
        "{x[Mod(i + j, 1000)] for i in 0:100000, j in 0:100000}",
    ],
)
def test_arrays_too_large_are_refused_before_they_are_made(text: str) -> None:
    with pytest.raises(JacliError, match="is too large: the arrays of a program may have") as caught:
        infer(read(text), {"x": (1000,)})
    assert caught.value.kind == "limit"


@pytest.mark.parametrize(
    "index", ["i*4611686018427387904*4", "i + 10000000000000000000", "Mod(i, 10000000000000000000)"]
)
def test_indices_do_not_wrap_around(index: str) -> None:
    with pytest.raises(JacliError, match=r"whole numbers up to 2\*\*62"):
        infer(read(f"{{x[{index}] for i in 0:3}}"), {"x": (3,)})


def test_a_long_text_without_a_word_is_refused() -> None:
    with pytest.raises(JacliError, match="nested too deeply"):
        jacli.grad("[" * 60_000, 1)


def test_nesting_up_to_the_limit_is_read() -> None:
    depth = MOST_NESTED - 5
    assert len(read("sin(" * depth + "x" + ")" * depth).nodes) == depth + 1


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("sin^2(x)", "type sin(x)^2"),
        ("sin²(x)", "type sin(…)²"),
        ("sin^-1(x)", "the inverse of sin is asin"),
        ("1 + sin x", "type sin(x)"),
        ("x^2(y + 1)", "for a product type *"),
        ("np.sin(x)", "without a module: sin"),
        ("torch.nn.functional.relu(x)", "without a module: relu"),
        ("x.sum()", "as a function: sum(…)"),
        ("x.^2", "entry by entry: type ^"),
        ("d/dx sin(x)", "type the expression alone"),
        ("d^2/dx^2 sin(x)", "type the expression alone"),
        ("∂f/∂x", "type the expression alone"),
        ("diff(x^2, x)", "type the expression alone"),
        ("f(x, y) = x*y", "type f = …; f"),
        ("dS/dt = -beta*S*I", "or name it: dS = …; dS"),
        ("x' + y", "type dx"),
        ("x_{12}^2", "type x_12"),
        ("e^{-x}", "type ^(-x)"),
        (r"\frac{x}{2}", "as (a)/(b)"),
        (r"\alpha*x", "type alpha without the backslash"),
        ("lambda x: x^2", "names need no declaration"),
        ("x -> x^2", "names need no declaration"),
        ("x := 2; x", "type x = …"),
        ("x += 2", "another name"),
        ("if(x > 0, x, -x)", "type where(condition, a, b)"),
        ("[x; y]", "rows are typed [[a, b], [c, d]]"),
        ("[1 2]", "separated by commas"),
        ("1.2345(67)*x", "a value is typed alone: 1.2345"),
        ("x（1）", "type ("),
        ("x.y", "attribute access"),
    ],
)
def test_other_notations_are_refused_with_what_to_type(text: str, instead: str) -> None:
    error = refusal(text)
    assert error is not None
    assert instead in (error.hint or "")


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("2 3", "separated by commas", "type 2,3"),
        ("x=2 y=3", "separated by commas", "type x=2,y=3"),
        ("x: 2, y: 3", "joined by =", "type x=2"),
        ("x==2", "joined by =", "type x=2"),
        ("(2, 3)", "group one value", "type 2, 3"),
        ("x=(2, 3)", "group one value", "type x=[2, 3]"),
        ("x[0]=2", "x[0] is not a variable name", "x=[…]"),
        ("2, 1.5±0.1", "'±' in column 7", "without its uncertainty"),
        ("1;\n 'a'", "in column 2", "quoted strings"),
    ],
)
def test_points_in_other_notations_are_refused_with_what_to_type(text: str, said: str, hint: str) -> None:
    with pytest.raises(JacliError) as caught:
        read_point(text)
    assert said in caught.value.message
    assert hint in (caught.value.hint or "")
    assert caught.value.text == text


def test_a_number_beyond_doubles_is_shown_where_it_stands() -> None:
    with pytest.raises(JacliError) as caught:
        read_point("2,1e400")
    assert caught.value.span == Span(2, 7)


@pytest.mark.parametrize(
    ("text", "at", "hint"),
    [
        ("xy + z", "1,2,3", "xy is one name, and x*y a product"),
        ("exp -x", "1", "the function is called: exp(…)"),
        ("exp -x", "x=1", "the function is called: exp(…)"),
        ("x*y", "[2,3]", "need no brackets"),
    ],
)
def test_counts_that_do_not_fit_say_why(text: str, at: str, hint: str) -> None:
    with pytest.raises(JacliError) as caught:
        jacli.grad(text, at)
    assert hint in (caught.value.hint or "")


def test_did_you_mean_comes_from_the_table() -> None:
    with pytest.raises(JacliError) as caught:
        read("sqr(x)")
    assert "sqrt" in (caught.value.hint or "")


@given(st.integers(-(10**30), 10**30), st.integers(-60, 60))
def test_numbers_are_exact(digits: int, power: int) -> None:
    assert exact(f"{abs(digits)}e{power}") == abs(digits) * Fraction(10) ** power


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    error = refusal(text)
    assert error is None or (error.text == text and error.message)


def refusal(text: str) -> JacliError | None:
    try:
        read(text)
    except JacliError as error:
        return error
    return None


@given(st.text(alphabet="x01.+-*/^@()[]{},;:=<> \nsinEπ²", max_size=60))
def test_any_arithmetic_is_read_or_refused(text: str) -> None:
    try:
        program = read(text)
    except JacliError:
        return
    for index, node in enumerate(program.nodes):
        assert all(arg < index for arg in node.args)
        assert 0 <= node.span.start < node.span.stop <= len(text)


def test_spans_cover_what_was_typed() -> None:
    program = read("2*[a[0]**2 + a[1], (a[1])**3]")
    sources = {program.source(i) for i in range(len(program.nodes))}
    assert {"a[0]**2 + a[1]", "(a[1])**3", "a[0]**2"} <= sources


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_every_function_is_read_by_all_its_names(row: object) -> None:
    for name in (row.name, *row.aliases):  # type: ignore[attr-defined]
        text = row.example[0]  # type: ignore[attr-defined]
        if text:
            again = text.replace(row.name + "(", name + "(", 1)  # type: ignore[attr-defined]
            assert meaning(again) == meaning(text)


def test_natural_order() -> None:
    names = ["x10", "x2", "X2", "b", "A", "a", "x1y10", "x1y9"]
    assert sorted(names, key=natural_key) == ["A", "a", "b", "x1y9", "x1y10", "X2", "x2", "x10"]


def test_reading_imports_no_number_library() -> None:
    code = (
        "import sys; from jacli.language.parser import read; read('sin(x)*a@b'); "
        "print([m for m in ('torch', 'sympy', 'numpy', 'flint') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
