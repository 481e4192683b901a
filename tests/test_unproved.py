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
        assert t.allclose(bars[name], leaf.grad, rtol=1e-13, atol=1e-14)


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
    at = {"a": [[1, 2, 3], [4, 5, 7]], "w": [[1, 2], [3, 4], [5, 6]]}
    text, more = ("sum(a @ w)", ()) if command == "grad" else ("a @ w", ([1] * (12 if command == "jvp" else 4),))
    assert getattr(jacli, command)(text, at, *more).verdict == "undefined"


@pytest.mark.usefixtures("short")
def test_what_has_no_rule_is_refused() -> None:
    with pytest.raises(JacliError, match="too long"):
        jacli.grad("sum(where(a > 0, a, 0) @ a)", {"a": [1, 2, 3, 4, 5, 6]})


def test_a_long_program_is_not_begun() -> None:
    assert problem.prepare("a @ w", "a=ones(200,200), w=ones(200,200)").lowered is None
