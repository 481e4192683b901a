"""Programs too long to be proved: a second reading in doubles, and what it does when autograd lies."""

from __future__ import annotations

from typing import Any

import pytest

import jacli
from jacli import mirror, problem
from jacli.errors import JacliError
from jacli.language.parser import read
from jacli.readings import floats

#: Programs of every array rule, with shapes in which a transpose would not fit.
PROGRAMS: list[tuple[str, dict[str, tuple[int, ...]]]] = [
    ("a @ w", {"a": (3, 4), "w": (4, 2)}),
    ("a @ w", {"a": (3, 4), "w": (4,)}),
    ("a @ w", {"a": (4,), "w": (4, 2)}),
    ("a @ w", {"a": (2, 3, 4), "w": (4, 2)}),
    ("a @ w", {"a": (2, 3, 4), "w": (4,)}),
    ("a @ w", {"a": (4,), "w": (4,)}),
    ("sin(a)*b + a[0]/b[1:2] - -b**2.5", {"a": (3, 4), "b": (4,)}),
    ("softmax(a, 1), softmax(b)", {"a": (3, 4), "b": (2,)}),
    ("cumsum(a, 1), norm(a, 0)*mean(a, 0), norm(a)", {"a": (3, 4)}),
    ("inv(a)*trace(a), sum(a, 1), mean(a), a.T", {"a": (3, 3)}),
    ("concat(a, b), outer(a[0], b[1])", {"a": (3, 4), "b": (2, 4)}),
    ("[a, b], stack(b, a), dot(a, b), reshape(a, 3, 1)", {"a": (3,), "b": (3,)}),
    ("sigmoid(a @ b.T) + max(a[0,0], b)[0,0]", {"a": (3, 2), "b": (4, 2)}),
    ("prod(a, 1), prod(b), max(a), min(b), logsumexp(a, 0), var(a), std(b)", {"a": (3, 4), "b": (4,)}),
    ("det(a), solve(a, b), solve(a, c), cross(b, c[:,0])", {"a": (3, 3), "b": (3,), "c": (3, 2)}),
    ("where(a > 0.9, a**2, b), Piecewise((a, a < 0.7), (b*a, a < 1.1), (a**3, True))", {"a": (3, 4), "b": (4,)}),
    ("{a[i+1,j]*a[i,j+1]*i + b[j] for i in 0:2, j in 0:len(b)-1}", {"a": (3, 4), "b": (4,)}),
    ("a**(1/2) + a**b + abs(a - 1), softmax(a, 0)/b + E*pi, a @ a.T, outer(b, b)", {"a": (3, 4), "b": (4,)}),
]


def tensors(shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    t = floats.torch()
    generator = t.Generator().manual_seed(7)
    return {name: t.rand(s, dtype=t.float64, generator=generator) + 0.5 for name, s in shapes.items()}


@pytest.mark.parametrize(("text", "shapes"), PROGRAMS)
def test_the_second_reading_is_autograds(text: str, shapes: dict[str, tuple[int, ...]]) -> None:
    t = floats.torch()
    program, values = read(text, shapes), tensors(shapes)
    leaves = {name: value.clone().requires_grad_() for name, value in values.items()}
    evaluated = floats.evaluate(program.nodes, program.outputs, leaves)
    outputs = [evaluated[node] for node in program.outputs]
    cotangents = [t.linspace(1, 2, o.numel(), dtype=t.float64).reshape(o.shape) for o in outputs]
    sum((o * c).sum() for o, c in zip(outputs, cotangents, strict=True)).backward()
    bars = mirror.vjp(program, values, cotangents)
    for name, leaf in leaves.items():
        assert t.allclose(bars[name], leaf.grad, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("text", "shapes"), PROGRAMS)
def test_the_second_reading_is_the_same_forwards(text: str, shapes: dict[str, tuple[int, ...]]) -> None:
    """``u · (J t)`` is ``(u · J) t``, in both gaits, which are not the same."""
    t = floats.torch()
    values = tensors(shapes)
    first = mirror.Mirror(read(text, shapes), values)
    tangents = {name: t.linspace(-1, 2, v.numel(), dtype=t.float64).reshape(v.shape) for name, v in values.items()}
    for gait, rtol in ((first, 1e-12), (first.second, 1e-5)):
        dots = gait.jvp(tangents)
        u = [t.linspace(1, 3, dot.numel(), dtype=t.float64).reshape(dot.shape) for dot in dots]
        bars = first.vjp(u)
        ahead = sum(float((u * dot).sum()) for u, dot in zip(u, dots, strict=True))
        back = sum(float((bars[name] * tangents[name]).sum()) for name in values)
        assert ahead == pytest.approx(back, rel=rtol)
    assert not first.switching()


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the shortest programs count as provable."""
    monkeypatch.setattr(problem, "MOST_OPERATIONS", 10)


@pytest.mark.usefixtures("short")
def test_long_programs_are_compared_and_say_so() -> None:
    at = {"a": [[1, 2, 3], [4, 5, 7]], "w": [[1, 2], [3, 4], [5, 6]]}
    for result in (
        jacli.vjp("sin(a @ w)", at, [[1, 2], [3, 4]]),
        jacli.jvp("sin(a @ w)", at, [1.0] * 12),
        jacli.grad("sum(sin(a @ w))", at),
    ):
        assert result.verdict == "agree"
        assert any("not proved" in note for note in result.notes)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("command", ["vjp", "jvp", "grad"])
def test_a_rule_that_lies_is_noticed(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(mirror._RULES, "matmul", lambda bar, _, a, b: (bar @ b.T, (1 + 1e-6) * (a.T @ bar)))
    monkeypatch.setitem(mirror._PRODUCTS, "matmul", lambda t, a, b: (1 + 1e-6) * (a @ b))
    at = {"a": [[1, 2, 3], [4, 5, 7]], "w": [[1, 2], [3, 4], [5, 6]]}
    text, more = ("sum(a @ w)", ()) if command == "grad" else ("a @ w", ([1] * (12 if command == "jvp" else 4),))
    assert getattr(jacli, command)(text, at, *more).verdict == "undefined"


@pytest.mark.usefixtures("short")
def test_what_has_no_rule_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(mirror._RULES, "cumsum")
    with pytest.raises(JacliError, match="too long"):
        jacli.grad("sum(where(a > 0, cumsum(a), 0) @ a)", {"a": [1, 2, 3, 4, 5, 6]})


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("text", "at", "turning"),
    [
        ("sum(abs(a) + a**2)", [1, 0, 3, 4], [1]),
        ("sum(max(a[1:], a[:-1])*a[0])", [1, 2, 2, 4], [2, 1]),
        ("max(a)**2 + sum(a)", [1, 4, 4, 2], [0, 1, 2, 3]),
        ("sum(floor(a)*a)", [1.5, 2, 2.5, 3.5], [1]),
        ("sum(relu(a))", [1e-300, 1, 2, -0.0], [3]),
    ],
)
def test_switching_points_are_no_agreement(text: str, at: list[float], turning: list[int]) -> None:
    found = jacli.grad(text, {"a": at}).block("grad").rows[0]
    assert [k for k, entry in enumerate(found) if entry.status != "agree"] == sorted(turning)
    along = jacli.jvp(text, {"a": at}, [1.0, 0, 0, 0]).block("jvp").rows[0][0]
    assert (along.status == "agree") == (0 not in turning)


@pytest.mark.usefixtures("short")
def test_an_output_that_stands_there_twice_has_both_weights() -> None:
    found = jacli.vjp("b = cumsum(abs(a)); b, b", {"a": [0, 1, 2, 3]}, [1] * 4 + [0] * 4).block("vjp").rows[0]
    assert [entry.status for entry in found] == ["undefined", "agree", "agree", "agree"]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("inner", ["a**(-2)", "1/a", "atan2(a, a)"])
def test_what_has_no_value_has_no_slope_whatever_moves(inner: str) -> None:
    """Its own value may be finite: that of sigmoid(1/0) is 1 in doubles."""
    text, at = f"s*sigmoid(cumsum({inner}))", {"a": [1, 1, 0, 1], "s": 2}
    along = jacli.jvp(text, at, [1.0], wrt="s").block("jvp").rows[0]
    assert [entry.status for entry in along] == ["agree", "agree", "undefined", "undefined"]
    (back,) = jacli.vjp(text, at, [1, 1, 0, 0], wrt="s").block("vjp").rows[0]
    assert back.status == "agree"
    (back,) = jacli.vjp(text, at, [1, 1, 0, 1], wrt="s").block("vjp").rows[0]
    assert back.status == "undefined"


def test_a_long_program_is_not_begun() -> None:
    assert problem.prepare("a @ w", "a=ones(200,200), w=ones(200,200)").lowered is None
