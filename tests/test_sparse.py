"""Large programs: right sums, right places, lies caught, mistakes located, files that others read."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import jacli
from jacli.errors import JacliError
from jacli.render import render
from jacli.result import Result
from jacli.sparse import check
from jacli.sparse.equations import Equations, Shape
from jacli.sparse.pattern import Pattern
from jacli.sparse.result import LargeResult
from sparse_families import problem

ROOT = Path(__file__).parent.parent
PROBLEMS = [json.loads(line) for line in (Path(__file__).parent / "data" / "sparse.jsonl").read_text().splitlines()]
BY_SIZE = {n: [p for p in PROBLEMS if p["n"] in n] for n in [(1000, 1024), (10_000,), (99_856, 100_000)]}


def large(text: str, at: Any, **options: Any) -> LargeResult:
    result = jacli.jacobian(text, at, **options)
    assert isinstance(result, LargeResult)
    return result


def sparse(text: str, at: Any, **options: Any) -> LargeResult:
    """However small."""
    return jacli.sparse_jacobian(text, at, **options)


def dense(text: str, at: Any) -> np.ndarray[Any, Any]:
    result = jacli.jacobian(text, at)
    assert isinstance(result, Result)
    return np.array([[entry.value for entry in row] for row in result.block("jacobian").rows])


def weights(n: int) -> np.ndarray[Any, Any]:
    return np.array([((7 * i) % 11 - 5) / 4 or 0.5 for i in range(n)])


# ---- published families


def check_sums(published: dict[str, Any], result: LargeResult) -> None:
    entries = result.quantity("jacobian").values
    assert result.shape == (published["n"], published["n"])
    assert len(entries) == published["nnz"]
    sums = {
        "sum_f2": result.value @ result.value,
        "sum_J": entries.sum(),
        "sum_J2": entries @ entries,
        "sum_vjp2": result.quantity("vjp").values @ result.quantity("vjp").values,
    }
    for name, true in published["checksums"].items():
        assert sums[name] == pytest.approx(float(true), rel=1e-10)
    ends = published["first_three_and_last"]
    np.testing.assert_allclose(result.value[[0, 1, 2, -1]], [float(v) for v in ends["f"]], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        result.quantity("vjp").values[[0, 1, 2, -1]], [float(v) for v in ends["vjp"]], rtol=1e-12
    )


@pytest.mark.parametrize("published", BY_SIZE[(1000, 1024)] + BY_SIZE[(10_000,)], ids=lambda p: p["id"])
def test_published_families(published: dict[str, Any]) -> None:
    text, at = problem(published["family"], int(published["size_arg"]))
    check = "suspect" if published["n"] < 2000 and published["family"] != "discrete_bvp" else "none"
    result = large(text, at, weights=weights(published["n"]), check=check)
    check_sums(published, result)
    assert result.satisfied


@pytest.mark.parametrize("published", BY_SIZE[(99_856, 100_000)], ids=lambda p: p["id"])
def test_published_families_of_a_hundred_thousand(published: dict[str, Any]) -> None:
    text, at = problem(published["family"], int(published["size_arg"]))
    result = large(text, at, weights=weights(published["n"]), check="none")
    check_sums(published, result)
    assert result.verdict == "unchecked"


@pytest.mark.parametrize("family", ["broyden_tridiagonal", "discrete_bvp", "heat1d", "lorenz96", "bratu2d"])
def test_the_jacobian_of_ten_thousand_is_checked(family: str) -> None:
    text, at = problem(family, 100 if family == "bratu2d" else 10_000)
    result = large(text, at)
    assert result.counts == {"agree": len(result.quantity("jacobian").values)}
    assert result.proved > 0
    assert result.remarks == ()


@pytest.mark.parametrize("family", ["broyden_tridiagonal", "discrete_bvp", "bratu2d", "lorenz96"])
def test_large_and_small_agree(family: str) -> None:
    text, at = problem(family, 4)
    result = sparse(text, at, check="all")
    assert (result.to_coo().toarray() == dense(text, at)).all()
    assert result.verdict == "agree"
    assert result.proved == len(result.quantity("jacobian").values)
    n = result.shape[0]
    for name, argument in (("vjp", weights(n)), ("jvp", weights(n))):
        small = getattr(jacli, name)(text, at, argument)
        big = getattr(jacli, name)(text, at, argument, most_dense=0)
        assert isinstance(big, LargeResult)
        np.testing.assert_allclose(big.quantity(name).values, [e.value for e in small.block(name).rows[0]], rtol=1e-14)
        assert big.to_dict()[f"{name}_status"] == small.to_dict()[f"{name}_status"]


# ---- shapes


def test_exponents_are_part_of_a_shape() -> None:
    text = "x0**2, x1**3, x2**2, x3**-1, x4**(1/2), x5^2, x6**2.5"
    result = sparse(text, ",".join(["1/4"] * 7))
    assert sorted(len(family) for family in result.system.families) == [1, 1, 1, 1, 1, 2]
    assert (result.to_coo().toarray() == dense(text, ",".join(["1/4"] * 7))).all()
    assert result.verdict == "agree"


def test_degrees_and_functions_are_part_of_a_shape() -> None:
    text = "legendre(2, x0), legendre(3, x1), sin(x2), cos(x3), sin(x4), legendre(3, x5)"
    result = sparse(text, "1/2,1/3,1,2,3,1/5")
    assert sorted(len(family) for family in result.system.families) == [1, 1, 2, 2]
    assert (result.to_coo().toarray() == dense(text, "1/2,1/3,1,2,3,1/5")).all()


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("[x0, x1]*2, x0", "1,2"),
        ("[2, 3], x0", "1"),
        ("ones(3)*y, y", "2"),
        ("stack(y, z), z", "y=1,z=2"),
        ("sum([y, z]) + y, z", "y=1,z=2"),
        ("[sin((x)[0]), s]", "x=[1,2],s=2"),
    ],
)
def test_equations_of_arrays_are_no_rows(text: str, at: str) -> None:
    result = sparse(text, at)
    assert (result.to_coo().toarray() == dense(text, at)).all()


def test_a_name_may_be_a_function_and_a_variable() -> None:
    text, at = "gamma(x0)*gamma + x1, gamma(x1)*beta + x0, 2x0 + x1*gamma", "x0=1,x1=2,gamma=3,beta=4"
    result = sparse(text, at)
    np.testing.assert_allclose(result.to_coo().toarray()[:, [0, 1, 3, 2]], dense(text, at)[:, [0, 1, 3, 2]], rtol=1e-14)
    assert result.verdict == "agree"


def test_variables_of_definitions_are_not_those_of_equations() -> None:
    text, at = "h = x0/3; x0*h + x1, x1*h + x2, x2*h + x0, x0*x1 + h", "x0=1,x1=2,x2=3"
    result = sparse(text, at)
    assert (result.to_coo().toarray() == dense(text, at)).all()
    assert result.verdict == "agree"


def test_rows_without_a_value_are_undefined() -> None:
    result = sparse("x0 + log(x1), x1 + log(x2), x2 + log(x0)", "1,-2,3")
    assert result.counts == {"agree": 4, "undefined": 2}


def test_constants_are_gathered() -> None:
    text = "2*x0 + 0.5*x1, 3*x1 + 0.25*x2, 7*x2 + 1e-3*x0"
    result = sparse(text, "1,2,3")
    assert len(result.system.families) == 1
    assert (result.to_coo().toarray() == dense(text, "1,2,3")).all()


def test_equal_variables_are_one_slot() -> None:
    text = "x0*x1 + x1, x1*x1 + x0, x1*x0 + x0"
    result = sparse(text, "2,3")
    assert sorted(len(family) for family in result.system.families) == [1, 2]
    assert (result.to_coo().toarray() == dense(text, "2,3")).all()


def test_definitions_products_and_constants() -> None:
    text = "h = 1/4; s = a*h\n2a*s + pi, 3b*s + E # a comment\nb/s,\n(a +\n b)*s; a"
    result = sparse(text, "a=2,b=3")
    assert (result.to_coo().toarray() == dense(text, "a=2,b=3")).all()
    assert result.verdict == "agree"


def test_entries_of_arrays() -> None:
    text = "x[0]*x[1] - y[0, 1], x[1]*x[2] - y[1, 0], x[2]*x[0] - y[1,1]"
    at = "x=[1,2,3], y=[[4,5],[6,7]]"
    result = sparse(text, at)
    assert len(result.system.families) == 1
    assert (result.to_coo().toarray() == dense(text, at)).all()
    for text in ("x[0]**2 + x[1], x[1]**2 + x[2], x[2]", "{x[i]**2 + x[i+1] for i in 0:len(x)-1}"):
        assert (sparse(text, "1,2,3").to_coo().toarray()[0] == [2, 1, 0]).all()  # plain values are its entries


def test_choices_and_kinks() -> None:
    rows = [f"where(x{k} > 1, log(x{k} - 1), x{k}**2) + abs(x{k + 1})" for k in range(6)]
    text, at = ", ".join(rows), "0,2,1,-1,3,1,0"
    large_, small = sparse(text, at), jacli.jacobian(text, at)
    where = large_.quantity("jacobian")
    kinds = {
        (int(i), int(j)): k
        for i, j, k in zip(where.entries.rows, where.entries.columns, where.verdicts.kinds, strict=True)
    }
    from jacli.sparse.check import KINDS

    for (i, j), kind in kinds.items():
        assert KINDS[kind] == small.block("jacobian").rows[i][j].status
    assert large_.verdict == small.verdict != "agree"


def test_cancellation_is_looked_at() -> None:
    text = ", ".join(f"((1 + x{k})**2 - 1 - 2*x{k})*y" for k in range(3))
    result = sparse(text, "x0=1e-9,x1=1e-9,x2=1,y=1")
    assert result.counts["rounding"] == 4
    assert result.verdict == "rounding"


def test_wrt_and_fixed_variables() -> None:
    text = "a*x0 + x1, a*x1 + x0, b*x0"
    result = sparse(text, "a=2,b=3,x0=1,x1=1", wrt="x1,b")
    assert result.column_names == ("x1", "b")
    assert (result.to_coo().toarray() == [[1, 0], [2, 0], [0, 1]]).all()


# ---- lies


def test_a_lying_shape_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were equations gathered wrongly, the sample that is read alone would not agree."""
    honest = Equations._shape

    def lying(self: Equations, *given: Any) -> Shape:
        shape = honest(self, *given)
        names = list(shape.entries)
        if len(names) > 1:
            shape.entries.update({names[0]: shape.entries[names[1]], names[1]: shape.entries[names[0]]})
        return shape

    monkeypatch.setattr(Equations, "_shape", lying)
    result = sparse(*problem("lorenz96", 40))
    assert result.verdict == "disagree"


def test_a_lying_autograd_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from jacli.sparse import derive

    honest = derive.floats.gradient

    def lying(*given: Any, **more: Any) -> Any:
        found = honest(*given, **more)
        found[0] = found[0].clone()
        found[0][-1] *= 1 + 1e-8
        return found

    monkeypatch.setattr(derive.floats, "gradient", lying)
    assert sparse(*problem("bratu2d", 5)).verdict == "disagree"


# ---- errors


@pytest.mark.parametrize(
    ("wrong", "message", "blamed"),
    [
        ("x7 +* x8", "cannot stand here", "*"),
        ("foo(x7)", "no function", "foo"),
        ("x7 x8", "no operator", "x7 x8"),
        ("x7)", "closes nothing", ")"),
        ("x7**", "ends after", None),
        ("x7, ,x8", "nothing between the commas", None),
        ("1e999 + x7", "range of doubles", "1e999"),
        ("sin(x7, 2)", "1 argument", "sin(x7, 2)"),
        ("x7 > 2", "comparison", "x7 > 2"),
        ("z9 + x7", "no value", "z9"),
    ],
)
def test_mistakes_are_located(wrong: str, message: str, blamed: str | None) -> None:
    text, at = problem("broyden_tridiagonal", 4000)
    lines = text.split("\n")
    lines[321] = wrong
    names = ",".join(f"x{k}={value}" for k, value in enumerate(at.split(",")))
    with pytest.raises(JacliError) as caught:
        jacli.jacobian("\n".join(lines), names)
    error = caught.value
    assert message in error.message
    if blamed is not None:
        assert error.text is not None
        assert error.span is not None
        assert error.text[error.span.start : error.span.stop] == blamed
        assert error.text.count("\n", 0, error.span.start) == 321


def test_counts_that_do_not_fit_are_refused() -> None:
    text, at = problem("broyden_tridiagonal", 4000)
    with pytest.raises(JacliError, match="4000 variables but the point has 3999"):
        jacli.jacobian(text, at.rpartition(",")[0])
    with pytest.raises(JacliError, match="4,000 entries but 2 numbers"):
        jacli.vjp(text, at, [1, 2])


@pytest.mark.parametrize("absurd", ["9**9**9**9*x7", "x7**9**9**9", "cos(exp(exp(exp(3))))*x7"])
def test_absurd_constants_are_refused_or_answered(absurd: str) -> None:
    text, at = problem("broyden_tridiagonal", 4000)
    with contextlib.suppress(JacliError):
        assert large(text.replace("2*x9 ", f"{absurd} "), at).verdict in ("undefined", "rounding")


# ---- arrays


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("x[2:] - 2*x[1:-1] + x[:-2]**2", "x=[1,2,3,4,5]"),
        ("x[0]-1, {x[i+1] - 2*x[i]**2 + x[i-1]*i for i in 1:len(x)-1}, x[3]", "x=[1,2,3,4]"),
        ("n = 3; {u[i,j]*u[j,i] + i/n for i in 0:n, j in 0:2}", "u=[[1,2,3],[4,5,6],[7,8,9]]"),
        ("sum({x[i]*x[Mod(i+1,len(x))] for i in 0:len(x)}) - mean(x**2)", "x=[1,2,3,4]"),
        ("concat([x[0]], x[1:]*x[:-1], [y*x[2]])", "x=[1,2,3,4],y=2"),
        ("exp(u[1:-1,1:-1])*k + u[2:,1:-1]", "u=[[1,2,3],[4,5,6],[7,8,9]],k=2"),
        ("a@x, cumsum(x), solve(a, x)*k", "x=[1,2],a=[[1,2],[3,5]],k=2"),
        ("reshape(x, 2, 2)*y", "x=[1,2,3,4],y=[[1,2],[3,4]]"),
    ],
)
def test_arrays_large_and_small_agree(text: str, at: str) -> None:
    result = sparse(text, at, check="all")
    np.testing.assert_allclose(result.to_coo().toarray(), dense(text, at), rtol=1e-14, atol=1e-16)
    assert result.verdict == "agree"


def test_slices_of_a_hundred_thousand() -> None:
    x = np.linspace(0, 1, 100_000)
    result = large("x[0], x[2:] - 2*x[1:-1]**2 + x[:-2], x[-1]", {"x": x})
    found = result.to_coo().tocsr()
    assert found.nnz == 3 * (len(x) - 2) + 2
    assert found[500, 500] == -4 * x[500]
    assert result.verdict == "agree"
    assert result.row_names[1] == "f1[0]"


@pytest.mark.parametrize(
    ("text", "x"),
    [
        ("mean(sqrt(x))", [-1, 4, 9]),
        ("sum(1/(1/x))", [0, 4]),
        ("sum(x[1:]*sqrt(x[:-1]))", [4, 9, -1, 5]),
        ("sum(floor(x))", [1, 4.5]),
    ],
)
def test_a_sum_with_a_term_that_has_no_value_has_no_derivatives(text, x) -> None:
    large = jacli.sparse_jacobian(text, {"x": x}).quantity("jacobian")
    small = jacli.jacobian(text, {"x": x}).blocks[0].rows[0]
    assert [check.KINDS[kind] for kind in large.verdicts.kinds] == [entry.status for entry in small]
    product = jacli.vjp(text, {"x": x}, [2.0], most_dense=0)
    assert product.quantity("vjp").verdicts.kinds.tolist() == large.verdicts.kinds.tolist()
    along = [0.0] + [1.0] * (len(x) - 1)
    moved = jacli.jvp(text, {"x": x}, along, most_dense=0).quantity("jvp").verdicts.kinds
    assert [check.KINDS[kind] for kind in moved] == [jacli.jvp(text, {"x": x}, along).verdict]


def test_products_of_sums_of_arrays() -> None:
    x = np.linspace(0.5, 1.5, 2000)
    text = "sum((x[1:] - x[:-1]**2)**2)"
    tangent = np.sin(np.arange(len(x)))
    slope, curve = jacli.grad(text, {"x": x}, most_dense=0), jacli.hvp(text, {"x": x}, tangent, most_dense=0)
    assert isinstance(slope, LargeResult)
    assert isinstance(curve, LargeResult)
    r = x[1:] - x[:-1] ** 2
    true = np.concatenate([[0], 2 * r]) - np.concatenate([4 * r * x[:-1], [0]])
    np.testing.assert_allclose(slope.quantity("grad").values, true, rtol=1e-9, atol=1e-14)
    step = 1e-6
    ahead, behind = (jacli.grad(text, {"x": x + s * tangent}, most_dense=0, check="none") for s in (step, -step))
    moved = (ahead.quantity("grad").values - behind.quantity("grad").values) / (2 * step)
    np.testing.assert_allclose(curve.quantity("hvp").values, moved, rtol=1e-6, atol=1e-6)
    assert curve.verdict == "agree"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{x[i+1] for i in 0:len(x)}", "runs from 1 to 4"),
        ("{x for i in 0:2}", "needs an index"),
        ("{sum(x[i]) for i in 0:2}", "go around the braces"),
        ("{x[i] for i in 0:y}", "whole numbers"),
        ("{x[i] for i 0:3}", "i in start:stop"),
        ("{x[i] for x in 0:3}", "no other meaning"),
        ("{x[i] for i in 3:3}", "is empty"),
        ("{{x[i] for i in 0:2} for j in 0:2}", "inside another"),
    ],
)
def test_families_that_are_wrong(text: str, message: str) -> None:
    with pytest.raises(JacliError, match=message):
        jacli.jacobian(text, "x=[1,2,3,4],y=2")


def test_newton_in_the_documents_converges_quadratically() -> None:
    page = (ROOT / "docs" / "large.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {}
    exec(code.group(1), names)
    steps = names["steps"][1:5]
    assert all(after <= before**2 for before, after in itertools.pairwise(steps))


# ---- patterns and files


def test_patterns() -> None:
    entries = jacli.sparsity(problem("bratu2d", 20)[0]).quantity("sparsity").entries
    assert entries is not None
    pattern = Pattern((400, 400), entries.rows, entries.columns)
    assert pattern.bandwidth == (20, 20)
    assert (pattern.per_row.min(), pattern.per_row.max()) == (3, 5)
    assert 5 <= pattern.forward_colours <= 9
    assert pattern.picture(10, 5)[0].startswith("⠻⣦")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("{y*x[i]**2.5 for i in 0:3}", "x=[-1,0,2],y=2"),
        ("{y*(x[i]**2)**(4/3) + sqrt(x[i])**3 for i in 0:3}", "x=[0,1,2],y=2"),
        ("{sigmoid(x[i]**(-2))*y for i in 0:3}", "x=[0,1,2],y=2"),
        ("{y*exp(-1/abs(x[i])) for i in 0:3}", "x=[0,1,2],y=2"),
        ("{y**x[i] for i in 0:3}", "x=[0,1,2],y=0"),
        ("{acos(x[i])**2*y for i in 0:3}", "x=[1,-1,0],y=2"),
        ("{where(x[i] > 0, max(log(x[i]), 0), y) for i in 0:4}", "x=[1,-1,0,2],y=2"),
    ],
)
def test_edges_and_what_has_no_value_are_seen_without_a_sample(
    text: str, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "sample", lambda _: [])
    result, true = sparse(text, at).quantity("jacobian"), jacli.jacobian(text, at)
    assert isinstance(true, Result)
    assert result.entries is not None
    rows = true.block("jacobian").rows
    for i, j, kind in zip(result.entries.rows, result.entries.columns, result.verdicts.kinds, strict=True):
        assert check.KINDS[kind] == rows[i][j].status


def test_colours_are_enough() -> None:
    entries = jacli.sparsity(problem("lorenz96", 30)[0]).quantity("sparsity").entries
    assert entries is not None
    pattern = Pattern((30, 30), entries.rows, entries.columns)
    assert 4 <= pattern.forward_colours <= 8
    assert 4 <= pattern.reverse_colours <= 8


def test_explicit_zeros_are_kept_and_structural_ones_are_not() -> None:
    result = sparse("x0*x1, x1*x1, x2", "0,0,1")
    assert len(result.quantity("jacobian").values) == 4
    assert "% rows: f0 f1 f2\n% columns: x0 x1 x2\n3 3 4\n1 1 0.0\n1 2 0.0\n2 2 0.0\n3 3 1.0\n" in render(result, "mtx")


def test_files_that_scipy_reads(tmp_path: Path) -> None:
    result = sparse(*problem("bratu2d", 6))
    true = result.to_coo().toarray()
    assert (scipy.io.mmread(io.StringIO(str(render(result, "mtx")))).toarray() == true).all()
    data = render(result, "npz")
    assert isinstance(data, bytes)
    (tmp_path / "j.npz").write_bytes(data)
    assert (scipy.sparse.load_npz(tmp_path / "j.npz").toarray() == true).all()
    names = json.loads(np.load(tmp_path / "j.npz")["names"].tobytes())
    assert names["variables"][:2] == ["x0", "x1"]
    lines = [line.split() for line in str(render(result, "coo")).splitlines()]
    assert [int(lines[1][0]), int(lines[1][1])] == [0, 1]
    assert {line[3] for line in lines} == {"agree"}


def test_every_format_of_a_large_result() -> None:
    result = sparse("x0**2 + x1, x1", "1,2")
    document = json.loads(str(render(result, "json")))
    assert document["entries"] == [[0, 0, 2.0, "agree"], [0, 1, 1.0, "agree"], [1, 1, 1.0, "agree"]]
    assert document["exact"][0] == [0, 0, "2"]
    assert str(render(result, "csv")).splitlines()[1] == "jacobian,f0,x0,2.0,2,agree,"
    for name in ("table", "plain", "markdown"):
        text = str(render(result, name))
        assert "2 outputs × 2 variables".replace("×", "x" if name == "plain" else "×") in text
        assert "agree" in text
    with pytest.raises(JacliError, match="latex cannot hold"):
        render(result, "latex")
    with pytest.raises(JacliError, match="every zero"):
        render(result, "npy")


def test_the_process(tmp_path: Path) -> None:
    text, at = problem("broyden_tridiagonal", 2000)
    (tmp_path / "f.txt").write_text(text)
    (tmp_path / "at.txt").write_text(at)
    words = ["jacobian", "--file", "f.txt", "--at", "@at.txt", "--format", "mtx", "--output", "j.mtx"]
    done = subprocess.run(
        [sys.executable, "-m", "jacli", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert scipy.io.mmread(tmp_path / "j.mtx").sum() == 3 + 4 * 2000
