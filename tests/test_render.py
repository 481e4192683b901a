"""Every format against literal results, with the expected text in full."""

from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest

from jacli.render import FORMATS, Options, render
from jacli.render.formula import latex
from jacli.render.numbers import agreeing_digits, show_exact
from jacli.result import Block, Entry, Named, Result, Share


def scalar(name: str, value: float, read_as: str | None = None, exact: str | None = None) -> Named:
    return Named(name, (), (name,), (value,), read_as, (exact,) if exact else ())


def entry(value: float, symbolic: str | None, exact: str | None, status: str = "agree", **more: object) -> Entry:
    return Entry(value, symbolic, exact, status, **more)  # type: ignore[arg-type]


JACOBIAN = Result(
    command="jacobian",
    text="x0**2+x1, x1**3+2*x0",
    outputs=(scalar("f0", 8.0, "x0**2 + x1", "8"), scalar("f1", 68.0, "2*x0 + x1**3", "68")),
    variables=(scalar("x0", 2.0), scalar("x1", 4.0)),
    fixed=(),
    blocks=(
        Block(
            "jacobian",
            ("f0", "f1"),
            ("x0", "x1"),
            (
                (entry(4.0, "2*x0", "4"), entry(1.0, "1", "1")),
                (entry(2.0, "2", "2"), entry(48.0, "3*x1**2", "48")),
            ),
        ),
        Block("vjp", ("vjp",), ("x0", "x1"), ((entry(8.0, "2*x0 + 4", "8"), entry(97.0, "6*x1**2 + 1", "97")),), True),
    ),
    weights=(1.0, 2.0),
    shares=(Share("f0", 1.0, (4.0, 1.0)), Share("f1", 2.0, (4.0, 96.0))),
)

TROUBLE = Result(
    command="jacobian",
    text="abs(x)/3, log(y)*b[0]",
    outputs=(scalar("f0", 0.0, "Abs(x)/3", "0"), scalar("f1", math.nan, "b[0]*log(y)")),
    variables=(scalar("x", 0.0), Named("b", (1, 2), ("b[0,0]", "b[0,1]"), (1 / 3, 2.0))),
    fixed=(scalar("y", 0.0),),
    blocks=(
        Block(
            "jacobian",
            ("f0", "f1"),
            ("x", "b[0,0]", "b[0,1]"),
            (
                (
                    entry(0.0, "sign(x)/3", None, "kink", one_sided=("-0.5", "0.5"), reason="abs has a corner at 0"),
                    entry(0.1, "b[0,0]", "0.1", bound=1e-17),
                    entry(0.0, None, "0", reason="no formula in time"),
                ),
                (
                    entry(1e-05, "0", "0.00001000000001", "disagree"),
                    entry(-math.inf, "log(y)", None, "edge", one_sided=(None, "-oo")),
                    entry(0.0, "0", "0"),
                ),
            ),
        ),
    ),
    rtol=1e-6,
    atol=1e-12,
    notes=("log is the natural logarithm",),
)


def text(result: Result, name: str, **options: object) -> str:
    answer = render(result, name, Options(**options))  # type: ignore[arg-type]
    assert isinstance(answer, str)
    return answer


def test_table() -> None:
    assert text(JACOBIAN, "table") == (
        """\
variables   x0 = 2.0, x1 = 4.0
weights     f0: 1.0, f1: 2.0

Outputs
┌────────┬──────────────┬───────┬───────┐
│ output │ read as      │ value │ exact │
├────────┼──────────────┼───────┼───────┤
│ f0     │ x0**2 + x1   │   8.0 │     8 │
│ f1     │ 2*x0 + x1**3 │  68.0 │    68 │
└────────┴──────────────┴───────┴───────┘

Jacobian, 2 × 2: rows are outputs, columns are variables
┌────┬─────┬──────┐
│    │  x0 │   x1 │
├────┼─────┼──────┤
│ f0 │ 4.0 │  1.0 │
│ f1 │ 2.0 │ 48.0 │
└────┴─────┴──────┘

Jacobian, entry by entry
┌─────────┬─────────┬───────┬───────┬──────────┬────────┬─────────┐
│ entry   │ formula │ torch │ exact │ off by ≈ │ digits │ verdict │
├─────────┼─────────┼───────┼───────┼──────────┼────────┼─────────┤
│ ∂f0/∂x0 │ 2*x0    │   4.0 │     4 │        0 │    all │ agree   │
│ ∂f0/∂x1 │ 1       │   1.0 │     1 │        0 │    all │ agree   │
│ ∂f1/∂x0 │ 2       │   2.0 │     2 │        0 │    all │ agree   │
│ ∂f1/∂x1 │ 3*x1**2 │  48.0 │    48 │        0 │    all │ agree   │
└─────────┴─────────┴───────┴───────┴──────────┴────────┴─────────┘

VJP = weights · Jacobian: what each output contributes
┌────────┬────────┬─────┬──────┐
│ output │ weight │  x0 │   x1 │
├────────┼────────┼─────┼──────┤
│ f0     │    1.0 │ 4.0 │  1.0 │
│ f1     │    2.0 │ 4.0 │ 96.0 │
├────────┼────────┼─────┼──────┤
│ total  │        │ 8.0 │ 97.0 │
└────────┴────────┴─────┴──────┘

VJP = weights · Jacobian, entry by entry
┌────────┬─────────────┬───────┬───────┬──────────┬────────┬─────────┐
│ entry  │ formula     │ torch │ exact │ off by ≈ │ digits │ verdict │
├────────┼─────────────┼───────┼───────┼──────────┼────────┼─────────┤
│ vjp x0 │ 2*x0 + 4    │   8.0 │     8 │        0 │    all │ agree   │
│ vjp x1 │ 6*x1**2 + 1 │  97.0 │    97 │        0 │    all │ agree   │
└────────┴─────────────┴───────┴───────┴──────────┴────────┴─────────┘

verdict: agree (6 agree; relative tolerance 1e-09)
"""
    )


def test_plain_with_kinks_shapes_and_footnotes() -> None:
    assert text(TROUBLE, "plain") == (
        """\
variables   x = 0.0
variables   b = [[0.3333333333333333, 2.0]]  (shape 1x2)
held fixed  y = 0.0

Outputs
output  read as      value  exact
f0      Abs(x)/3       0.0      0
f1      b[0]*log(y)    nan      -

Jacobian, 2 x 3: rows are outputs, columns are variables
-       x  b[0,0]  b[0,1]
f0    0.0     0.1     0.0
f1  1e-05    -inf     0.0

Jacobian, entry by entry
entry        formula    torch             exact  off by ~  digits  verdict
df0/dx       sign(x)/3    0.0              none         -       -  kink [1]
df0/db[0,0]  b[0,0]       0.1               0.1   5.6e-18      16  agree
df0/db[0,1]  none         0.0                 0         0     all  agree [2]
df1/dx       0          1e-05  0.00001000000001  -1.0e-14       9  disagree
df1/db[0,0]  log(y)      -inf              none         -       -  edge [3]
df1/db[0,1]  0            0.0                 0         0     all  agree

[1] abs has a corner at 0
[2] no formula in time
[3] slope from the left none, from the right -oo
log is the natural logarithm

verdict: disagree (3 agree, 1 kink, 1 edge, 1 disagree; relative tolerance 1e-06, absolute 1e-12)
"""
    )


def test_markdown() -> None:
    answer = text(TROUBLE, "markdown", digits=3)
    assert (
        """\
**Jacobian, 2 × 3: rows are outputs, columns are variables**

|  | x | b[0,0] | b[0,1] |
| :-- | --: | --: | --: |
| `f0` | 0 | 0.1 | 0 |
| `f1` | 1e-05 | -inf | 0 |
"""
        in answer
    )
    assert "| `∂f1/∂x` | `0` | 1e-05 | 1e-05 | -1.0e-14 | 9 | `disagree` |" in answer
    assert answer.endswith("; relative tolerance 1e-06, absolute 1e-12)**\n")


def test_markdown_keeps_pipes_inside_their_cell() -> None:
    piped = Result("grad", "", (scalar("f0", 1.0, "a | b"),), (scalar("x", 1.0),), (), ())
    assert r"| `f0` | `a \| b` | 1.0 |  |" in text(piped, "markdown")


def test_latex() -> None:
    assert text(JACOBIAN, "latex", digits=3) == (
        r"""% jacli jacobian; verdict: agree; needs \usepackage{amsmath}
\[ x_{0} = 2, x_{1} = 4 \]
\[ f_{0} = x_{0}^{2} + x_{1} \]
\[ f_{1} = 2 x_{0} + x_{1}^{3} \]
\[
J = \begin{pmatrix}
  2 x_{0} & 1 \\
  2 & 3 x_{1}^{2}
\end{pmatrix}
= \begin{pmatrix}
  4 & 1 \\
  2 & 48
\end{pmatrix}
\]
\[
w^{\mathsf{T}} J = \begin{pmatrix}
  2 x_{0} + 4 & 6 x_{1}^{2} + 1
\end{pmatrix}
= \begin{pmatrix}
  8 & 97
\end{pmatrix}
\]
"""
    )


@pytest.mark.parametrize(
    ("formula", "typeset"),
    [
        ("-x/2", r"-\frac{x}{2}"),
        ("2*x*y/3", r"\frac{2 x y}{3}"),
        ("-2*x*exp(-x**2)", r"-2 x e^{-x^{2}}"),
        ("sin(x)**2", r"\sin^{2}\left(x\right)"),
        ("exp(x)**2", r"\left(e^{x}\right)^{2}"),
        ("x - (y - z)", r"x - \left(y - z\right)"),
        ("x*(-1 + y)", r"x \left(-1 + y\right)"),
        ("3*2**x", r"3 \cdot 2^{x}"),
        ("(x**y)**z", r"\left(x^{y}\right)^{z}"),
        ("(-x)**2", r"\left(-x\right)^{2}"),
        ("1/(2*sqrt(x))", r"\frac{1}{2 \sqrt{x}}"),
        ("theta2*lambda", r"\theta_{2} \lambda"),
        ("a[0, 1]*foo", r"a_{0,1} \mathrm{foo}"),
        ("erf(x)*gamma(y)", r"\operatorname{erf}\left(x\right) \Gamma\left(y\right)"),
        ("Abs(x) + Max(0, y)", r"\left|x\right| + \max\left(0, y\right)"),
        (
            "Piecewise((x**2, x > 0), (0, True))",
            r"\begin{cases} x^{2} & \text{if } x > 0 \\ 0 & \text{otherwise} \end{cases}",
        ),
        ("1.5e-7*x", r"1.5 \cdot 10^{-7} x"),
        ("f(x)(y)", r"\mathtt{f(x)(y)}"),
        ("x $ y_1", r"\mathtt{x\ \$\ y\_1}"),
    ],
)
def test_formulas_in_latex(formula: str, typeset: str) -> None:
    assert latex(formula) == typeset


def test_latex_of_hostile_formulas_is_verbatim() -> None:
    for formula in ("(" * 5000 + "x" + ")" * 5000, "-" * 9000 + "x", "__import__('os').system('touch /tmp/x')"):
        assert latex(formula).startswith(r"\mathtt{")


def test_json_has_the_documented_keys_and_is_strict() -> None:
    document = json.loads(text(TROUBLE, "json"), parse_constant=pytest.fail)
    assert document["jacobian"] == [[0.0, 0.1, 0.0], [1e-05, None, 0.0]]
    assert document["exact"][1] == ["0.00001000000001", None, "0"]
    assert document["one_sided"][0][0] == ["-0.5", "0.5"]
    assert document["value"] == [0.0, None]
    assert document["verdict"] == "disagree"
    assert json.loads(text(TROUBLE, "jsonl")) == document
    assert text(TROUBLE, "jsonl").count("\n") == 1


def test_csv_has_a_row_an_entry_and_leaves_absent_numbers_empty() -> None:
    rows = list(csv.DictReader(io.StringIO(text(TROUBLE, "csv"))))
    assert len(rows) == 6
    assert rows[0] == {
        "quantity": "jacobian", "row": "f0", "column": "x", "value": "0.0", "symbolic": "sign(x)/3", "exact": "",
        "status": "kink", "difference": "", "bound": "", "left_slope": "-0.5", "right_slope": "0.5",
        "reason": "abs has a corner at 0",
    }  # fmt: skip
    assert rows[1]["column"] == "b[0,0]"
    assert rows[2]["symbolic"] == ""
    assert list(csv.reader(io.StringIO(text(TROUBLE, "tsv")), delimiter="\t"))[1] == list(rows[0].values())


def test_npy_has_the_full_shape() -> None:
    matrix = np.load(io.BytesIO(render(JACOBIAN, "npy")))  # type: ignore[arg-type]
    assert matrix.tolist() == [[4.0, 1.0], [2.0, 48.0]]
    cells = tuple(tuple(entry(float(4 * i + j), "0", "0") for j in range(2)) for i in range(3))
    output, variable = (
        Named("f", (3,), ("f[0]", "f[1]", "f[2]"), (0.0,) * 3),
        Named("b", (1, 2), ("c", "d"), (0.0,) * 2),
    )
    block = Block("jacobian", output.entries, variable.entries, cells)
    arrays = Result("jacobian", "", (output,), (variable,), (), (block,))
    loaded = np.load(io.BytesIO(render(arrays, "npy")))  # type: ignore[arg-type]
    assert loaded.shape == (3, 1, 2)
    assert loaded.dtype == np.float64
    assert loaded[2, 0, 1] == 9.0


def wide(columns: int) -> Result:
    names = tuple(f"x{i}" for i in range(columns))
    values = tuple(i + 0.123456789 for i in range(columns))
    cells = tuple(entry(2 * value, f"2*{name}", f"{2 * value:.9f}") for name, value in zip(names, values, strict=True))
    block = Block("jacobian", ("f0",), names, (cells,))
    return Result("jacobian", "", (scalar("f0", 1.0, "x0"),), tuple(map(scalar, names, values)), (), (block,))


def test_thirty_columns_without_a_terminal_are_whole() -> None:
    answer = text(wide(30), "table")
    assert "…" not in answer
    assert "\x1b" not in answer
    header = next(line for line in answer.splitlines() if "x29" in line and "│" in line)
    assert header.replace("│", " ").split() == [f"x{i}" for i in range(30)]
    for i in range(30):
        assert repr(2 * (i + 0.123456789)) in answer


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 132])
def test_narrow_terminals_fold_and_lose_nothing(width: int) -> None:
    for result in (wide(12), TROUBLE, JACOBIAN):
        answer = text(result, "table", width=width)
        assert "…" not in answer
        assert max(map(len, answer.splitlines())) <= width
        if width >= 40:
            for e in (e for block in result.blocks for row in block.rows for e in row):
                assert repr(e.value) in answer


def test_a_long_formula_wraps_on_a_terminal_and_a_huge_one_is_a_footnote() -> None:
    long = " + ".join(f"sin({i}*x)" for i in range(30))
    huge = " + ".join(f"sin({i}*x)" for i in range(3000))
    cells = (entry(1.0, long, "1"), entry(2.0, huge, "2"))
    block = Block("jacobian", ("f0",), ("x", "y"), (cells,))
    result = Result("jacobian", "", (scalar("f0", 1.0, "x"),), (scalar("x", 1.0), scalar("y", 2.0)), (), (block,))
    assert long in text(result, "table")
    folded = text(result, "table", width=100)
    assert max(map(len, folded.splitlines())) <= 100
    assert "sin(29*x)" in folded
    assert f"({len(huge)} characters) [1]" in folded
    assert "[1] formulas too long to draw; --format json has them whole" in folded
    assert json.loads(text(result, "json"))["symbolic"][0][1] == huge


def test_a_large_result_says_what_it_does_not_draw() -> None:
    names = tuple(f"x{i}" for i in range(60))
    rows = [[entry(1.0, "1", "1") for _ in names] for _ in names]
    rows[3][4] = entry(2.0, "1", "1", "disagree")
    block = Block("jacobian", names, names, tuple(map(tuple, rows)))
    outputs = tuple(scalar(name, 1.0, name) for name in names)
    answer = text(Result("jacobian", "", outputs, outputs, (), (block,)), "plain")
    assert "the 1 of 3600 that do not agree (--format csv or json has all, --format npy the array)" in answer
    assert "dx3/dx4" in answer
    assert "dx3/dx5" not in answer


def test_markup_in_names_is_text() -> None:
    tricky = Result("grad", "", (scalar("f0", 1.0, "[bold]x[/bold] :smile:"),), (scalar("x", 1.0),), (), ())
    assert "[bold]x[/bold] :smile:" in text(tricky, "table")


def test_colour_is_not_the_only_carrier() -> None:
    import re

    coloured = text(TROUBLE, "table", color=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == text(TROUBLE, "table")


def test_output_does_not_depend_on_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    before = text(JACOBIAN, "table")
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": "30", "TERM": "xterm-256color", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
        assert text(JACOBIAN, "table") == before


def test_digits_round_floats_and_exact_values_alike() -> None:
    answer = text(TROUBLE, "plain", digits=2)
    assert "b = [[0.33, 2]]" in answer
    assert show_exact("123456.789", 3) == "1.23e+05"
    assert show_exact("100", 3) == "100"
    assert show_exact("1.5e-400", 1) == "2E-400"
    assert show_exact("-9.996e-1000000", 3) == "-1.00E-999999"
    assert show_exact("1.751702861617724453e-49596750768968755367537270", 5) == "1.7517E-49596750768968755367537270"
    assert show_exact("1.5e+4342944819032518276511", 4) == "1.5E+4342944819032518276511"
    assert show_exact("-oo", 3) == "-oo"
    assert show_exact(None, 3) == ""


@pytest.mark.parametrize(
    ("value", "exact", "digits"),
    [
        (4.0, "4", "all"),
        (1 / 3, "0.33333333333333333333", "16"),
        (1.0, "-1", "0"),
        (1e-20, "0", "0"),
        (1.0, "1e400", "0"),
    ],
)
def test_digits_that_agree(value: float, exact: str, digits: str) -> None:
    assert agreeing_digits(entry(value, None, exact)) == digits


def test_differences_of_numbers_far_apart_take_no_time() -> None:
    assert entry(1.0, None, "1e999999999").difference == -math.inf
    assert entry(1.0, None, "1e-999999999").difference == 1.0


def test_every_format_is_registered_and_ends_its_last_line() -> None:
    dense = ("table", "plain", "json", "jsonl", "csv", "tsv", "markdown", "latex", "npy")
    assert tuple(FORMATS) == (*dense, "mtx", "npz", "coo")
    for name in dense:
        entry_ = FORMATS[name]
        answer = render(JACOBIAN, name)
        assert isinstance(answer, bytes if entry_.binary else str)
        assert entry_.binary or str(answer).endswith("\n")
