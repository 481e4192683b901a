"""The tape on columns: every operation, registers used again, the second gait; and the comparison of two readings."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jacli.functions import ROWS
from jacli.readings import floats
from jacli.readings.machine import INTO, Machine, block
from jacli.readings.tape import Tape
from jacli.stream.compare import compare

COLUMNS = torch.tensor([[0.3, -0.7, 2.5, 0.0, 1.0], [1.5, 0.2, 3.0, 0.5, 1.0]], dtype=torch.float64)
CONDITIONS = ("and", "or", "not")


def program(op: str, arity: int) -> tuple[Tape, int]:
    """One operation of x and y."""
    tape = Tape()
    args = [tape.add("variable", value=name) for name in ("x", "y")][:arity]
    return tape, tape.add(op, *args)


@pytest.mark.parametrize("op", sorted(set(INTO) & set(ROWS) - set(CONDITIONS)))
def test_what_writes_into_a_register_is_what_the_table_computes(op) -> None:
    arity = 2 if op in ("atan2", "hypot", "max", "min", "pow") or ROWS[op].kind == "condition" else 1
    tape, root = program(op, arity)
    (found,) = Machine(tape, [root], {"x": 0, "y": 1})(COLUMNS)
    expected = ROWS[op].torch(torch, *COLUMNS[:arity]).double()
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(("op", "expected"), [("and", [0, 0, 1]), ("or", [1, 1, 1]), ("not", [0, 1, 0])])
def test_conditions_are_numbers(op, expected) -> None:
    tape = Tape()
    x, zero = tape.add("variable", value="x"), tape.number(0)
    args = [tape.add("gt", x, zero), tape.add("lt", x, tape.number(3))][: 1 if op == "not" else 2]
    (found,) = Machine(tape, [tape.add(op, *args)], {"x": 0})(torch.tensor([[4.0, -1.0, 2.0]], dtype=torch.float64))
    assert found.tolist() == expected


ONE, TWO = ("neg", "sin", "exp", "abs"), ("add", "sub", "mul", "div", "max", "lt", "ge")
STEPS = st.tuples(st.sampled_from([*ONE, *TWO, "select"]), *[st.integers(0, 99)] * 3)


def random_tape(steps) -> tuple[Tape, list[int]]:
    """A tape of x, y, 2, pi and what the steps make of them, and its nodes. Nothing adds up conditions."""
    tape = Tape()
    numbers = [tape.add("variable", value="x"), tape.add("variable", value="y"), tape.number(2), tape.add("pi")]
    conditions = [tape.add("lt", *numbers[:2])]
    for op, a, b, c in steps:
        left, right = numbers[a % len(numbers)], numbers[b % len(numbers)]
        if op == "select":
            numbers.append(tape.add(op, conditions[c % len(conditions)], left, right))
        elif op in ("lt", "ge"):
            conditions.append(tape.add(op, left, right))
        else:
            numbers.append(tape.add(op, *(left, right)[: 1 if op in ONE else 2]))
    return tape, numbers + conditions


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=40), st.data())
def test_registers_are_taken_back_only_when_nothing_needs_them(steps, data) -> None:
    tape, nodes = random_tape(steps)
    roots = data.draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=6))
    found = Machine(tape, roots, {"x": 0, "y": 1})(COLUMNS)
    values = floats.evaluate(tape.ops, roots, {"x": COLUMNS[0], "y": COLUMNS[1]})
    for row, root in zip(found, roots, strict=True):
        expected = values[root].double().expand(5)
        torch.testing.assert_close(row, expected, rtol=1e-15, atol=0, equal_nan=True)


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,), (1, 1, 4)])
def test_columns_may_have_any_shape(shape) -> None:
    tape, root = program("mul", 2)
    x = torch.full(shape, 3.0, dtype=torch.float64)
    found = Machine(tape, [root, tape.number(7)], {"x": 0, "y": 1})([x, x.clone()])
    assert found.shape == (2, *shape)
    assert found.unique().tolist() in ([7.0, 9.0], [])


def test_a_nudge_shows_where_digits_cancel() -> None:
    tape = Tape()
    x, million = tape.add("variable", value="x"), tape.number(10**6)
    shifted, grown = tape.add("add", x, million), tape.add("mul", million, tape.add("exp", x))
    machine = Machine(tape, [tape.add("sub", shifted, grown), tape.add("mul", x, x)], {"x": 0})
    column = torch.tensor([[1e-5]], dtype=torch.float64)
    cancelled, kept = (machine(column, nudged=True) / machine(column) - 1).abs()
    assert float(cancelled) > 1e-5
    assert float(kept) < 2e-9


# ---- two readings side by side

TRUE = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
FORMULAS = {0: (TRUE[0], TRUE[0] * (1 + 1e-9))}


def changed(place: int, value: float) -> torch.Tensor:
    """Torch's derivative, wrong at the second point."""
    entries = TRUE.clone()
    entries[place, 1] = value
    return entries


def test_readings_that_agree() -> None:
    found = compare(TRUE, FORMULAS, 1e-9, 0.0)
    assert found.sure.tolist() == [True, True, True]
    assert found.gap.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("place", "value"), [(0, 2 + 1e-8), (0, -2.0), (0, math.nan), (0, math.inf), (1, 1e-300), (1, math.nan)]
)
def test_a_reading_that_lies_is_caught_where_it_lies(place, value) -> None:
    assert compare(changed(place, value), FORMULAS, 1e-9, 0.0).sure.tolist() == [True, False, True]


def test_formulas_that_lose_their_digits_prove_nothing() -> None:
    moved = torch.tensor([1.0, 2.1, 3.0], dtype=torch.float64)
    assert compare(TRUE, {0: (TRUE[0], moved)}, 1e-9, 0.0).sure.tolist() == [True, False, True]


def test_the_gap_is_the_largest_relative_difference() -> None:
    entries = torch.stack([TRUE[0] * (1 + 1e-7), TRUE[1]])
    assert compare(entries, FORMULAS, 1e-6, 0.0).gap.tolist() == pytest.approx([1e-7] * 3, rel=1e-6)


def test_single_precision_is_judged_by_its_own_rounding() -> None:
    third = torch.tensor([1 / 3, 1 / 3], dtype=torch.float64)
    lossy = third * (1 + 2.0**-10)  # enlarged 2**23 times: a thousandth of an ulp each, and a few thousand of them
    found = compare(third.float()[None], {0: (third, lossy)}, 1e-9, 0.0)
    assert found.agrees.all()
    off = (third * 1.01).float()[None]
    assert not compare(off, {0: (third, third)}, 1e-9, 0.0).sure.any()


def test_rows_of_a_block_do_not_touch() -> None:
    rows = block(3, (4,))
    rows.zero_()
    rows[1] = 1
    assert rows.sum() == 4
    assert rows.stride(0) > 4
