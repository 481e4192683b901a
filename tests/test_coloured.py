"""Programs of arrays differentiated as wholes: patterns that miss nothing, colours that do not mix, lies caught."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jacli
from jacli.calculus import Exact
from jacli.errors import JacliError
from jacli.problem import prepare
from jacli.render import render
from jacli.result import Result
from jacli.sparse import arrays, colour, coloured, compare, reach, wires
from jacli.sparse.check import KINDS
from jacli.sparse.coloured import Coloured
from jacli.sparse.result import LargeResult

ROOT = Path(__file__).parent.parent

Array = np.ndarray[Any, Any]


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small, and whatever rows it has."""
    monkeypatch.setattr(arrays, "_entry_by_entry", lambda *_: None)
    monkeypatch.setattr(arrays.written, "families", lambda *_: None)


def laplacian(n: int) -> Array:
    """The second difference."""
    return np.diag(np.full(n, -2.0)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)


def matrix(result: LargeResult, values: Array | None = None) -> Array:
    """The entries of a Jacobian with its zeros, or something else that its entries have."""
    entries = result.quantities[0].entries
    assert entries is not None
    found = np.zeros(result.shape)
    found[entries.rows, entries.columns] = result.quantities[0].values if values is None else values
    return found


def small(text: str, at: Any, wrt: Any = None) -> tuple[Array, list[list[str]]]:
    """The Jacobian proved entry by entry, and the statuses."""
    result = jacli.jacobian(text, at, wrt=wrt)
    assert isinstance(result, Result)
    rows = result.block("jacobian").rows
    statuses = [["undecided" if "undecided" in (e.reason or "") else e.status for e in row] for row in rows]
    return np.array([[e.value for e in row] for row in rows]), statuses


def dependences(text: str, at: Any, wrt: Any = None) -> Array:
    """What each output entry is made of, in the program's single numbers."""
    exact = Exact(prepare(text, at, wrt=wrt))
    return np.array([[column in reached for column in exact.columns] for reached in exact.reached])


U = [[1, 2, 4, 3], [0.5, 3, 1, 7], [2, 1, 5, 2.5]]
D4 = laplacian(4).tolist()
D3 = laplacian(3).tolist()

#: Program, point, variables, and how many entries the pattern has.
PROGRAMS: list[tuple[str, dict[str, Any], str | None, int]] = [
    ("D@u + u@E4 + exp(u)", {"D": D3, "E4": D4, "u": U}, "u", 12 + 2 * 2 * 4 + 2 * 3 * 3),
    ("cumsum(x)", {"x": [1, 2, 3, 4]}, None, 10),
    ("cumsum(u, 1)", {"u": U}, None, 30),
    ("softmax(u, 1), logsumexp(u, 0)", {"u": U}, None, 48 + 12),
    ("u/reshape(norm(u, 1), 3, 1)", {"u": U}, None, 48),
    ("concat(x[1:], x[:1])*x - exp(x)", {"x": [1, 2, 3, 4]}, None, 8),
    ("y*x + D@x", {"x": [1, 2, 3, 4], "y": 3, "D": D4}, "x,y", 10 + 4),
    ("concat(D@x + y, [sum(x)])", {"x": [1, 2, 3, 4], "y": 3, "D": D4}, "x,y", 10 + 4 + 4),
    ("mean((x - mean(x))**2)*k", {"x": [1, 2, 3, 4], "k": 2}, None, 5),
    ("eye(3)@u, u.T[1:], zeros(3)*u[:,0]", {"u": U}, None, 12 + 9),
    ("solve(D, x), det(u[:,1:]), inv(u[:,1:])[0]", {"D": D4, "x": [1, 2, 3, 4], "u": U}, "x,u", 16 + 9 + 27),
    ("outer(x, [1, 0, 2]), dot(x, x), trace(outer(x, x))", {"x": [1, 2, 3]}, None, 6 + 3 + 3),
    ("where(u > 2.2, u**2, x), max(u), min(x), prod(u, 0)", {"u": U, "x": [1, 2, 3, 4]}, None, 24 + 12 + 4 + 12),
    ("{u[i+1,j] - u[i,j]**2*i for i in 0:2, j in 0:len(u, 1)}, stack(x, x), [x, x*2]", {"u": U, "x": [5, 7]}, None, 24),
    ("a @ b", {"a": U, "b": [1, 2, 3, 4]}, None, 12 + 12),
    ("c @ u.T", {"c": [U, U], "u": U}, None, 18 * 8),
    ("x @ x, x @ u, cross(x, [1, 2, y])", {"x": [1, 2, 3], "u": U, "y": 2}, None, 3 + 24 + 12),
    ("sum(x)", {"x": [1, 2, 3]}, None, 3),
    ("[2, 3]", {"x": [1, 2, 3]}, None, 0),
]


@pytest.mark.usefixtures("whole")
@pytest.mark.parametrize(("text", "at", "wrt", "count"), PROGRAMS)
@pytest.mark.parametrize("check", ["suspect", "all"])
def test_products_give_every_entry(text: str, at: dict[str, Any], wrt: str | None, count: int, check: str) -> None:
    result = jacli.sparse_jacobian(text, at, wrt=wrt, check=check)
    assert isinstance(result.system, Coloured)
    true, statuses = small(text, at, wrt)
    np.testing.assert_allclose(matrix(result), true, rtol=1e-12, atol=1e-13)
    assert len(result.quantities[0].values) == count
    assert {status for row in statuses for status in row} <= {"agree"}
    assert result.verdict == "agree"
    if check == "all":
        assert result.proved == len(result.quantities[0].values)


@pytest.mark.usefixtures("whole")
@pytest.mark.parametrize(("text", "at", "wrt", "count"), PROGRAMS)
def test_patterns_miss_nothing_and_add_little(text: str, at: dict[str, Any], wrt: str | None, count: int) -> None:
    found = jacli.sparsity(text, at, wrt=wrt)
    pattern = matrix(found) != 0
    assert not (pattern & ~dependences(text, at, wrt)).any() or "cross" in text
    assert ((small(text, at, wrt)[0] != 0) <= pattern).all()
    assert pattern.sum() == count


@pytest.mark.usefixtures("whole")
def test_zeros_of_what_is_held_fixed_are_named() -> None:
    at = {"D": D4, "x": [1, 2, 3, 4]}
    held = jacli.sparsity("D@x", at, wrt="x")
    assert held.remarks == ("the zeros of D, which is held fixed, are taken for zeros of the Jacobian",)
    assert len(held.quantities[0].values) == 10
    free = jacli.sparsity("D@x", at)
    assert free.remarks == ()
    assert len(free.quantities[0].values) == 16 + 16
    typed = jacli.sparsity("[[1, 0], [0, 1]]@x", {"x": [1, 2]})
    assert typed.remarks == ()
    assert len(typed.quantities[0].values) == 2
    made = jacli.sparsity("D@x", "x=[1,2,3], D=2*eye(3)", wrt="x")
    assert len(made.quantities[0].values) == 3


def test_a_program_with_zeros_held_fixed_is_a_whole_whatever_its_size() -> None:
    at = {"D": D4, "x": [1, 2, 3, 4]}
    assert isinstance(jacli.sparsity("D@x", at, wrt="x").system, Coloured)
    assert not isinstance(jacli.sparsity("D@x", at).system, Coloured)
    assert not isinstance(jacli.sparsity("x[1:]*x[:-1]", at).system, Coloured)


def test_many_different_rows_are_a_whole() -> None:
    x = np.linspace(0, 1, 2500).reshape(50, 50)
    result = jacli.jacobian("softmax(x, 1)", {"x": x})
    assert isinstance(result, LargeResult)
    assert isinstance(result.system, Coloured)
    assert result.counts == {"agree": 50**3}


# ---- any program

SHAPES = {"x": (4,), "u": (3, 4), "s": ()}
HELD = {"D": D4, "M": D3}

Typed = tuple[str, tuple[int, ...]]


@st.composite
def expressions(draw: Any, depth: int = 3) -> Typed:
    """A program of arrays, and the shape of its result."""
    if depth == 0:
        name = draw(st.sampled_from([*SHAPES, "x", "u"]))
        return name, SHAPES[name]
    text, shape = draw(expressions(depth=depth - 1))
    step = draw(st.sampled_from(STEPS))
    return step(draw, text, shape, depth)


def _function(draw: Any, text: str, shape: tuple[int, ...], _: int) -> Typed:
    form = draw(st.sampled_from(["sin({})", "exp({}/4)", "abs({})", "relu({})", "sqrt(1+({})**2)", "-({})", "({})**2"]))
    return form.format(text), shape


def _binary(draw: Any, text: str, shape: tuple[int, ...], depth: int) -> Typed:
    other, second = draw(expressions(depth=depth - 1))
    try:
        both = np.broadcast_shapes(shape, second)
    except ValueError:
        return f"({text})*s", shape
    form = draw(st.sampled_from(["({})+({})", "({})-({})", "({})*({})", "({})/(2+({})**2)", "max({}, {})"]))
    if draw(st.booleans()):
        return f"where(({text}) > ({other}), {text}, {other})", both
    return form.format(text, other), both


def _reduced(draw: Any, text: str, shape: tuple[int, ...], _: int) -> Typed:
    if not shape:
        return f"[{text}, s]", (2,)
    name = draw(st.sampled_from("sum mean norm logsumexp prod softmax cumsum max".split()))
    if name == "max":
        return f"max({text})", ()
    axis = draw(st.sampled_from([*range(len(shape)), None]))
    if name in ("softmax", "cumsum"):
        return f"{name}({text}, {axis or 0})", shape
    if axis is None:
        return f"{name}({text})", ()
    return f"{name}({text}, {axis})", shape[:axis] + shape[axis + 1 :]


def _moved(draw: Any, text: str, shape: tuple[int, ...], _: int) -> Typed:
    if not shape:
        return f"stack({text}, s, {text})", (3,)
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return f"concat({text}, {text})", (2 * shape[0], *shape[1:])
    if kind == 1:
        return f"({text}).T", shape[::-1]
    if kind == 2 and shape[0] > 1:
        return f"({text})[1:]", (shape[0] - 1, *shape[1:])
    if kind == 3:
        return f"({text})[0]", shape[1:]
    return f"reshape({text}, -1)", (int(np.prod(shape)),)


def _multiplied(draw: Any, text: str, shape: tuple[int, ...], _: int) -> Typed:
    if shape and shape[0] == 4:
        return f"D@({text})", shape
    if shape and shape[0] == 3:
        return f"M@({text})", shape
    if shape and shape[-1] == 4:
        return f"({text})@D", shape
    return f"outer({text}, x)", (int(np.prod(shape)), 4)


STEPS = [_function, _binary, _reduced, _moved, _multiplied]


@pytest.mark.usefixtures("whole")
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    expressions(),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, -1.25, 2.0, 3.7]), min_size=17, max_size=17),
)
def test_any_program(typed: Typed, numbers: list[float]) -> None:
    text, shape = typed
    if np.prod(shape) > 60:
        return
    at = {"x": numbers[:4], "u": np.reshape(numbers[4:16], (3, 4)).tolist(), "s": numbers[16], **HELD}
    result = jacli.sparse_jacobian(text, at, wrt="x,u,s")
    true, statuses = small(text, at, "x,u,s")
    agree = matrix(result, result.quantities[0].verdicts.kinds == KINDS.index("agree"))
    pattern = matrix(result, np.ones(len(result.quantities[0].values))) != 0
    assert (np.where(np.isnan(true), 1, true)[~pattern] == 0).all()
    for (i, j), value in np.ndenumerate(matrix(result)):
        if agree[i, j]:
            assert statuses[i][j] in ("agree", "undecided")
            assert value == pytest.approx(true[i, j], rel=1e-9, abs=1e-300)


# ---- colours


@pytest.mark.parametrize(
    ("text", "at", "wrt", "reverse", "forward"),
    [
        ("D@x", {"D": laplacian(50), "x": np.ones(50)}, "x", 3, 0),
        ("y*x + D@x", {"D": laplacian(50), "x": np.ones(50), "y": 1}, "x,y", 3, 1),
        ("concat(D@x, [sum(x)])", {"D": laplacian(50), "x": np.ones(50)}, "x", 4, 0),
        ("concat(D@x + y, [sum(x)])", {"D": laplacian(50), "x": np.ones(50), "y": 1}, "x,y", 4, 1),
        ("u@ones(4)", {"u": np.ones((40, 4))}, None, 1, 0),
        ("outer(x, ones(60))", {"x": np.ones(40)}, None, 0, 1),
    ],
)
@pytest.mark.usefixtures("whole")
def test_products_are_few(text: str, at: Any, wrt: Any, reverse: int, forward: int) -> None:
    result = jacli.sparse_jacobian(text, at, wrt=wrt, check="none")
    assert isinstance(result.system, Coloured)
    assert (len(result.system.plan.reverse), len(result.system.plan.forward)) == (reverse, forward)
    np.testing.assert_allclose(matrix(result), small(text, at, wrt)[0], rtol=1e-13)


@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_no_two_of_a_colour_meet(places: set[tuple[int, int]]) -> None:
    rows, columns = np.array(sorted(places)).T
    found = colour.plan(rows, columns, (10, 10))
    for product, items, others in [
        *((product, rows, columns) for product in found.reverse),
        *((product, columns, rows) for product in found.forward),
    ]:
        assert len(set(others[product.entries].tolist())) == len(product.entries)
        assert set(items[product.entries].tolist()) == set(product.items.tolist())
    every = np.concatenate([product.entries for product in (*found.reverse, *found.forward)])
    assert sorted(every.tolist()) == list(range(len(rows)))


def test_too_many_colours_and_places_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(colour, "MOST_COLOURS", 20)
    with pytest.raises(JacliError, match="more than 20 products"):
        colour.plan(*np.divmod(np.arange(900), 30), (30, 30))
    monkeypatch.setattr(reach, "MOST_PLACES", 10_000)
    with pytest.raises(JacliError, match="1,000,000 entries of the Jacobian"):
        jacli.jacobian("x*sum(x)", {"x": np.ones(1000)})
    assert jacli.vjp("x*sum(x)", {"x": np.ones(1000)}, np.ones(1000), most_dense=0).verdict == "agree"


def test_long_rows_are_full_and_need_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "MOST_PLACES", 3_000)
    monkeypatch.setattr(reach, "LONG_ROW", 100)
    result = jacli.jacobian("y*mean((x - mean(x))**2), x[0]", {"x": np.linspace(0, 1, 500), "y": 2}, most_dense=0)
    assert isinstance(result, LargeResult)
    assert result.verdict == "agree"
    assert len(result.quantities[0].values) == 502


# ---- lies


def example() -> LargeResult:
    n = 30
    at = {"D": laplacian(n), "x": np.linspace(0.5, 1.5, n)}
    return jacli.sparse_jacobian("exp(D@x)*x", at, wrt="x")


@pytest.mark.usefixtures("whole")
def test_a_lying_autograd_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = coloured.Products.rows_added
    monkeypatch.setattr(coloured.Products, "rows_added", lambda self, rows: honest(self, rows) * (1 + 1e-8))
    assert example().verdict == "disagree"


@pytest.mark.usefixtures("whole")
def test_a_lying_mirror_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = compare.Comparer._vjp
    monkeypatch.setattr(compare.Comparer, "_vjp", lambda self, *given: honest(self, *given) * (1 + 1e-8))
    result = example()
    assert result.verdict == "agree"
    assert result.proved == len(result.quantities[0].values)


@pytest.mark.usefixtures("whole")
def test_colours_that_mix_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = colour.colours

    def lying_colours(*given: Any) -> Any:
        found = honest(*given)
        return np.where(found == 1, 0, found)

    monkeypatch.setattr(colour, "colours", lying_colours)
    assert example().verdict == "disagree"


@pytest.mark.usefixtures("whole")
def test_a_pattern_that_misses_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = wires._Drawing.matmul

    def lying_matmul(self: Any, index: int) -> Any:
        left, (hop,) = honest(self, index)
        kept = hop.sources >= hop.targets
        return left, [wires.Hop(hop.sources[kept], hop.targets[kept], hop.size)]

    monkeypatch.setitem(wires._RULES, "matmul", lying_matmul)
    with pytest.raises(AssertionError, match="the pattern misses"):
        example()


@pytest.mark.usefixtures("whole")
@pytest.mark.parametrize("check", ["suspect", "all"])
@pytest.mark.parametrize(
    ("text", "count"),
    [("Z[0]*min(x, 1) + s", 4), ("Z@(min(x, 1)*Z[1]) + s", 3), ("cumsum(x*Z[0]*s)*s", 1 + 3)],
)
def test_a_pattern_may_know_of_more_zeros(text: str, count: int, check: str) -> None:
    at = {"x": [0, 3, 4], "s": 2, "Z": [[0, 0, 2], [1, 0, 0]]}
    result = jacli.sparse_jacobian(text, at, wrt="x,s", check=check)
    assert len(result.quantities[0].values) == count
    np.testing.assert_allclose(matrix(result), small(text, at, "x,s")[0])


@pytest.mark.usefixtures("whole")
def test_a_column_that_is_missed_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = coloured.reach

    def lying_reach(*given: Any) -> Any:
        rows, columns = honest(*given).places()
        kept = columns != 11
        return SimpleNamespace(places=lambda: (rows[kept], columns[kept]))

    monkeypatch.setattr(coloured, "reach", lying_reach)
    monkeypatch.setattr(compare, "sample", lambda _: [])
    with pytest.raises(AssertionError, match=r"the pattern misses x\[11\]"):
        example()


# ---- switching points, rounding, what has no value


@pytest.mark.usefixtures("whole")
@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("cumsum(abs(x))", "x=[1,0,2]"),
        ("D@max(x, 0)", "x=[1,0,2],D=[[1,2,0],[0,1,2],[0,0,1]]"),
        ("D@sqrt(x)", "x=[1,0,2],D=[[1,2,0],[0,1,2],[0,0,1]]"),
        ("concat(sqrt(x), x**2)", "x=[1,0,2]"),
        ("cumsum(1 - cos(x))/x**2", "x=[1e-4,1e-4,1]"),
        ("max(x)*x", "x=[1,2,2]"),
        ("norm(u, 1)*x", "u=[[0,0],[1,2],[3,4]],x=[1,2,3]"),
        ("where(x > 1, cumsum(x), x**2)", "x=[1,2,0]"),
        ("cumsum(floor(x)*x)", "x=[1,1.5,2.5]"),
        ("cumsum(log(x))", "x=[1,2,-1]"),
        ("cumsum(x)/x[2]", "x=[1,2,0]"),
        ("D@x + 2*x", "x=[1,2,3],D=[[-2,1,0],[1,-2,1],[0,1,-2]]"),
        ("sigmoid(u**(-2))@x", "u=[[0,1],[1,2]],x=[1,2]"),
        ("x[0]*std(atan2(x, y))", "x=[0,1,2],y=[0,1,1]"),
        ("solve(D, D@x)", "x=[1,1,1],D=[[-2,1,0],[1,-2,1],[0,1,-2]]"),
        ("D@(s*solve(D, x))", "s=2,x=[0,1,4],D=[[-2,1,0],[1,-2,1],[0,1,-2]]"),
    ],
)
@pytest.mark.parametrize("check", ["suspect", "all"])
def test_verdicts_are_those_of_the_small_program(
    text: str, at: str, check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "sample", lambda _: [])
    result = jacli.sparse_jacobian(text, at, check=check)
    _, statuses = small(text, at)
    entries, kinds = result.quantities[0].entries, result.quantities[0].verdicts.kinds
    assert entries is not None
    for i, j, kind in zip(entries.rows, entries.columns, kinds, strict=True):
        assert KINDS[kind] == statuses[i][j]
    assert result.verdict != "unchecked"


@pytest.mark.usefixtures("whole")
def test_a_kink_does_not_make_its_neighbours_doubtful() -> None:
    """torch gives half to each side of a tie, the mirror all to both: only the rows with ties are left out of sums."""
    x = np.linspace(0.5, 1.5, 400)
    result = jacli.sparse_jacobian("d = concat(x[1:], x[:1]) - x; where(d > 0, d**2, x) - max(x[0], x)", {"x": x})
    assert result.counts == {"agree": len(result.quantities[0].values)}
    assert result.proved <= 17


@pytest.mark.usefixtures("whole")
def test_proofs_look_at_simple_factors_first() -> None:
    """Behind a row of four steps of a stencil there are few numbers, if zeros are met before what they multiply."""
    n = 40
    steps = "; ".join(f"u{k + 1} = u{k} + (D@u{k} + u{k}@D)/10 - u{k}**3/100" for k in range(3))
    at = {"D": laplacian(n), "u0": np.linspace(0, 1, n * n).reshape(n, n)}
    result = jacli.sparse_jacobian(f"{steps}; u3", at, wrt="u0")
    assert result.counts == {"agree": len(result.quantities[0].values)}
    assert result.proved == 16


@pytest.mark.usefixtures("whole")
def test_what_cannot_be_proved_is_no_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "MOST_BEHIND_ONE", 3)
    result = jacli.sparse_jacobian("cumsum(abs(x))", "x=[1,0,2,3]")
    assert result.counts == {"agree": 7, "unchecked": 3}
    assert result.verdict == "unchecked"
    assert not result.satisfied
    assert result.remarks == (
        "3 doubtful entries were not proved; --check all proves every one that few numbers stand behind",
    )


# ---- products


@pytest.mark.usefixtures("whole")
@pytest.mark.parametrize(("text", "at", "wrt", "count"), PROGRAMS)
def test_products_with_vectors(text: str, at: dict[str, Any], wrt: str | None, count: int) -> None:
    true, _ = small(text, at, wrt)
    row, column = np.linspace(-1, 2, len(true)), np.linspace(1, -3, true.shape[1])
    for found, product in (
        (jacli.vjp(text, at, row, wrt=wrt, most_dense=-1), row @ true),
        (jacli.jvp(text, at, column, wrt=wrt, most_dense=-1), true @ column),
    ):
        assert isinstance(found, LargeResult)
        assert found.verdict == "agree"
        np.testing.assert_allclose(found.quantities[0].values, product, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("whole")
def test_products_never_build_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "MOST_PLACES", 0)
    at = {"x": np.linspace(0, 1, 50)}
    assert jacli.vjp("x*sum(x)", at, np.ones(50), most_dense=0).verdict == "agree"
    assert jacli.jvp("x*sum(x)", at, np.ones(50), most_dense=0).verdict == "agree"
    assert jacli.grad("sum(x*cumsum(x))", at, most_dense=0).verdict == "agree"
    curve = jacli.hvp("sum(x*cumsum(x))", at, np.arange(50.0), most_dense=0)
    assert isinstance(curve, LargeResult)
    np.testing.assert_allclose(curve.quantities[0].values, np.arange(50.0) + np.arange(50.0).sum())
    assert curve.verdict == "unchecked"
    assert "nothing compared" in str(render(curve, "table"))
    assert curve.remarks == (
        "second derivatives of a program that is too long to be written out are compared with nothing",
    )


@pytest.mark.usefixtures("whole")
def test_kinks_on_the_way_of_products() -> None:
    at = "x=[1,0,2,3]"
    row = jacli.vjp("cumsum(abs(x))", at, [1, 0, 0, 0], most_dense=-1)
    assert row.verdict == "agree"  # nothing of x[1] in f0[0]
    row = jacli.vjp("cumsum(abs(x))", at, [0, 0, 0, 1], most_dense=-1)
    assert isinstance(row, LargeResult)
    assert [KINDS[k] for k in row.quantities[0].verdicts.kinds] == ["agree", "kink", "agree", "agree"]
    column = jacli.jvp("cumsum(abs(x))", at, [0, 1, 0, 0], most_dense=-1)
    assert isinstance(column, LargeResult)
    assert [KINDS[k] for k in column.quantities[0].verdicts.kinds] == ["agree", "kink", "kink", "kink"]


# ---- the process


@pytest.fixture
def heat(tmp_path: Path) -> Path:
    np.save(tmp_path / "D.npy", laplacian(48))
    np.save(tmp_path / "u.npy", np.linspace(0, 1, 48 * 48).reshape(48, 48))
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jacli", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_the_process(heat: Path) -> None:
    program = ["D@u + u@D + exp(u)", "--at", "D=@D.npy,u=@u.npy", "--wrt", "u"]
    done = run(heat, "jacobian", *program, "--format", "npz", "--output", "j.npz")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "note: the zeros of D, which is held fixed, are taken for zeros of the Jacobian\n"
    found = scipy.sparse.load_npz(heat / "j.npz")
    line, one = scipy.sparse.csr_array(laplacian(48)), scipy.sparse.eye_array(48)
    true = (
        scipy.sparse.kron(line, one)
        + scipy.sparse.kron(one, line)
        + scipy.sparse.diags_array(np.exp(np.load(heat / "u.npy").ravel()))
    )
    assert abs(found - true).max() < 1e-13
    assert json.loads(np.load(heat / "j.npz")["names"].tobytes())["verdict"] == "agree"
    summary = run(heat, "jacobian", *program)
    assert "every entry compared with a second reading, 16 proved" in summary.stdout
    assert "computed    by 7 VJPs" in summary.stdout
    assert "11,328" in summary.stdout
    pattern = run(heat, "sparsity", *program, "--format", "coo")
    assert pattern.stdout.splitlines()[0] == "0 0 1.0 unchecked"
    assert len(pattern.stdout.splitlines()) == 11_328
