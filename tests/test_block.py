"""Blocks of derivatives, beside the same derivatives written on the tape one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import jacli
from jacli import prove
from jacli.problem import prepare
from jacli.prove import Proof, Prover
from jacli.readings import adjoint, block
from jacli.readings.adjoint import Link
from jacli.verify import judge

MATRIX = "a=[[3,1/7,0.1],[2,-5,1],[0.3,1,4]]"

# text, point
PROGRAMS = [
    ("inv(a)", MATRIX),
    ("det(a)", MATRIX),
    ("solve(a, [1, 0.1, 2])", MATRIX),
    ("a@a + a", MATRIX),
    ("softmax(x)", "x=[0.1,1,-2,0.7]"),
    ("x/y, y/x, x - y, -x*y, x*x", "x=0.1,y=3"),
    ("max(x, y)*x, where(x < y, x**2, y), min(x, 2)/y", "x=1/3,y=3"),
    ("x**y, atan2(x, y), sqrt(x)*log(y), tanh(x*y)", "x=0.7,y=1.3"),
    ("x**0*y, x**3, (x - 1)**2", "x=0.5,y=3"),
    ("exp(-0.1*x) - 0.1*x, 1/(1 + exp(-x))", "x=10"),
    ("(1 - cos(x))/x**2, x", "x=1e-4"),
    ("x, x*y, y, 3", "x=2,y=5"),
]

SECOND = [
    ("det(a)", MATRIX),
    ("log(-det(a))", MATRIX),
    ("sum(softmax(x)**2)", "x=[0.1,1,-2,0.7]"),
    ("sin(x*y) + x**3/y", "x=0.7,y=1.3"),
    ("x**2 + y**3*0.1", "x=1,y=2"),
]


def proofs(text: str, at: str) -> list[Proof]:
    """Every entry of the Jacobian."""
    problem = prepare(text, at)
    assert problem.lowered is not None
    outputs = [node for nodes in problem.lowered.outputs for node in nodes]
    return [proof for row in Prover(problem.lowered.tape).jacobian(outputs, problem.column_nodes) for proof in row]


def second(text: str, at: str) -> list[Proof]:
    """Every entry of the Hessian."""
    problem = prepare(text, at)
    assert problem.lowered is not None
    rows = Prover(problem.lowered.tape).hessian(problem.lowered.outputs[0][0], problem.column_nodes)
    return [proof for row in rows for proof in row]


def assert_same(ours: list[Proof], theirs: list[Proof], *, blame: bool = True) -> None:
    """The same proofs, but for the last digits of bounds; with ``blame`` the same place loses most."""
    for our, their in zip(ours, theirs, strict=True):
        assert (our.kind, our.exact, our.at_switch) == (their.kind, their.exact, their.at_switch)
        assert our.input_bound == pytest.approx(their.input_bound, rel=1e-6, abs=1e-30)
        assert our.operations_bound == pytest.approx(their.operations_bound, rel=0.5, abs=1e-30)
        assert not blame or our.worst_source == their.worst_source


@pytest.fixture
def settled(monkeypatch: Any) -> list[int]:
    """Everything is put to blocks; how many entries each of them settles."""
    counts: list[int] = []
    settle = block.settle

    def counted(*args: Any) -> Any:
        found = settle(*args)
        counts.append(len(found))
        return found

    monkeypatch.setattr(block, "settle", counted)
    monkeypatch.setattr(block, "_REPEATS", 0)
    monkeypatch.setattr(prove, "_BLOCK", 0)
    return counts


def on_the_tape(monkeypatch: Any, prove_all: Callable[[str, str], list[Proof]], text: str, at: str) -> list[Proof]:
    with monkeypatch.context() as patch:
        patch.setattr(prove, "_BLOCK", 1 << 60)
        return prove_all(text, at)


@pytest.mark.parametrize(("text", "at"), PROGRAMS)
def test_a_block_says_what_the_tape_says(monkeypatch: Any, settled: list[int], text: str, at: str) -> None:
    ours = proofs(text, at)
    assert sum(settled) > 0
    assert_same(ours, on_the_tape(monkeypatch, proofs, text, at))


@pytest.mark.parametrize(("text", "at"), SECOND)
def test_second_derivatives_in_a_block(monkeypatch: Any, settled: list[int], text: str, at: str) -> None:
    ours = second(text, at)
    assert sum(settled) > 0
    theirs = on_the_tape(monkeypatch, second, text, at)
    assert_same(ours, theirs, blame=False)
    for our, their in zip(ours, theirs, strict=True):
        if our.excuse is not None and their.excuse is not None:
            assert our.excuse().loosely == pytest.approx(their.excuse().loosely)


# text, point, how many entries of all a block can settle
LEFT = [
    ("(sqrt(2)*x)**2 + y - x*(sqrt(8)*sqrt(x))*sqrt(x)/sqrt(2)", "x=3,y=1", 1),  # the slope by x is proved zero
    ("abs(x) + y", "x=0,y=1", 0),  # the row has a kink
    ("x*1e-200*1e-200*y, x", "x=1,y=1", 1),  # a row leaves the range of doubles
    ("exp(x), exp(exp(y))", "x=1,y=7", 1),
    ("x/y, y", "x=1,y=0", 1),
]


@pytest.mark.parametrize(("text", "at", "count"), LEFT)
def test_what_a_block_leaves_to_the_tape(monkeypatch: Any, settled: list[int], text: str, at: str, count: int) -> None:
    ours = proofs(text, at)
    assert sum(settled) == count
    assert_same(ours, on_the_tape(monkeypatch, proofs, text, at))


@pytest.mark.parametrize("most", [1, 60, 500])
def test_a_block_in_parts(monkeypatch: Any, settled: list[int], most: int) -> None:
    whole = proofs("inv(a)", MATRIX)
    monkeypatch.setattr(block, "_MOST_WEIGHTS", most)
    assert_same(proofs("inv(a)", MATRIX), whole)
    assert sum(settled) == 2 * 81


def test_long_rationals_become_balls(monkeypatch: Any, settled: list[int]) -> None:
    """Where terms cancel exactly, only the rationals can tell."""
    text, at = "det(a)*b - b*det(a) + b, inv(a)", f"{MATRIX}, b=1/3"
    monkeypatch.setattr(block, "_TRIED", ((128, 1), (128, 4096)))
    ours = proofs(text, at)
    assert ours[0].exact == "0"
    assert settled == [99]  # 9 rows by 10 columns, and the row of other nodes by 9
    assert_same(ours, on_the_tape(monkeypatch, proofs, text, at), blame=False)


def test_wrong_floats_are_alarms_in_a_block(settled: list[int]) -> None:
    for proof in proofs("inv(a)", MATRIX):
        assert proof.exact is not None
        assert judge(float(proof.exact), proof)[0] == "agree"
        assert judge(1.000001 * float(proof.exact) + 1e-9, proof)[0] == "disagree"
    assert settled == [81]


def test_a_lie_in_a_link_shows(monkeypatch: Any, settled: list[int]) -> None:
    """Blocks and tape share the links, torch does not."""
    link = adjoint.link

    def lying(tape: Any, node: int, position: int) -> Link:
        found = link(tape, node, position)
        return found._replace(negative=not found.negative) if tape.ops[node].op == "div" and position else found

    monkeypatch.setattr(adjoint, "link", lying)
    entries = jacli.jacobian("x/y, x*y", "2,3").blocks[0].rows
    assert [[entry.status for entry in row] for row in entries] == [["agree", "disagree"], ["agree", "agree"]]
    assert settled == [4]
