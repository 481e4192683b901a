"""Calls of ``backward``: the weighted rows that add up to what each call leaves in ``.grad``, and the chain rule."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from jacli.render.numbers import show, show_array, show_shape
from jacli.render.options import Options
from jacli.render.sections import Facts, Notes, Section, Table
from jacli.result import Backward, Call, Held, Passed, Result, Step

#: A table of rows with more columns than this explains nothing; the last .grad is listed entry by entry anyway.
MOST_COLUMNS = 100
#: The rows of the Jacobian are written out beside their multiples while they are this short.
MOST_IN_A_ROW = 8
#: An array with more entries than this is told by its shape.
MOST_IN_AN_ARRAY = 24


def intermediates(result: Result, options: Options) -> Iterator[Section]:
    """The statements that ``--show`` asked for."""
    if result.shown:
        rows = tuple(
            (one.value.name, one.source, _array(one.value, options), _array(one.gradient, options))
            for one in result.shown
        )
        header = ("name", "read from", "value", "gradient")
        yield Table("Intermediate results", header, rows, words=frozenset({0, 1, 2, 3}), formula=1)


def calls(result: Result, options: Options) -> Iterator[Section]:
    """Each call: its rows, their sum, ``.grad`` before and after, what J · weights would be, the chain rule."""
    if result.backward is None:
        return
    columns = [name for variable in result.variables for name in variable.entries]
    for number, call in enumerate(result.backward.calls, start=1):
        place = f"Call {number} of {len(result.backward.calls)}: " if len(result.backward.calls) > 1 else ""
        if len(columns) <= MOST_COLUMNS:
            yield _rows(result, result.backward, call, columns, place, options)
        if call.column is not None and all(map(math.isfinite, (*call.total, *call.column))):
            yield Notes((("", _side(call, result.backward, options)),))
        if call.steps:
            yield _chain(call.steps, place, options)
    final = result.backward.calls[-1].after
    yield Facts(tuple((f"{held.name}.grad", f"{_array(held, options)}{_shape(held)}") for held in final))


def _shape(held: Held) -> str:
    return f"  (shape {show_shape(held.shape)})" if held.shape and held.values is not None else ""


def _rows(
    result: Result, backward: Backward, call: Call, columns: Sequence[str], place: str, options: Options
) -> Table:
    """One line an output entry: its weight, its row of the Jacobian, and their product; then the sums."""
    told = len(columns) <= MOST_IN_A_ROW
    names = [entry for output in result.outputs for entry in output.entries]
    lines = [
        (name, show(weight, options.digits), *([f"· {_list(row, options)}"] if told else []), *_cells(scaled, options))
        for name, weight, row, scaled in zip(names, call.gradient, backward.jacobian, call.rows, strict=False)
    ]
    blanks = ("",) * (1 + told)
    sums = [
        ("sum = weights · J", *blanks, *_cells(call.total, options)),
        (".grad before", *blanks, *_grad(call.before, options)),
        (".grad after", *blanks, *_grad(call.after, options)),
    ]
    return Table(
        place + _title(result, call, options),
        ("output", "weight", *(["row of J"] if told else []), *columns),
        (*lines, *sums),
        words=frozenset({0}),
        summary=len(sums),
    )


def _title(result: Result, call: Call, options: Options) -> str:
    if not call.given:
        return "backward() on a scalar: one row, of weight 1, is added to .grad"
    start, parts = 0, []
    for output in result.outputs:
        size = math.prod(output.shape)
        parts.append(_array(Held("", output.shape, call.gradient[start : start + size]), options))
        start += size
    gradient = f"gradient={parts[0]}" if len(parts) == 1 else f"gradients=[{', '.join(parts)}]"
    return f"backward({gradient}): each row of J times its weight, added to .grad"


def _side(call: Call, backward: Backward, options: Options) -> str:
    """Which product torch computed; the other one, where the two can be told apart."""
    row, column = _list(call.total, options), _list(call.column or (), options)
    if backward.symmetric:
        return (
            f"torch computed weights · J = {row}; J is symmetric, so J · weights is the same: "
            "this example cannot tell a row on the left of J from a column on its right"
        )
    same = call.column is not None and all(map(_close, call.total, call.column))
    other = "happens to be the same for these weights" if same else f"would be {column}"
    return f"torch computed weights · J = {row}, a row on the left of J; J · weights {other}"


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-12)


def _chain(steps: Sequence[Step], place: str, options: Options) -> Table:
    """One line a step and an argument that it passes a gradient on to."""
    lines = []
    for number, step in enumerate(steps, start=1):
        lead = (_label(step), _array(step.value, options), _array(step.gradient, options))
        for index, passed in enumerate(step.passes):
            shared = lead if index == 0 else ("", "", "")
            lines.append((str(number), *shared, _derivative(passed, options), _passed(passed, options)))
    return Table(
        place + "the chain rule, in the order of the backward pass",
        ("step", "node", "value", "gradient in", "local derivative", "gradient in · local derivative"),
        tuple(lines),
        words=frozenset({1, 2, 3, 4, 5}),
        formula=1,
    )


def _label(step: Step) -> str:
    return step.source if step.value.name == step.source else f"{step.value.name} = {step.source}"


def _derivative(passed: Passed, options: Options) -> str:
    if not passed.derivative:
        return f"∂/∂{passed.to}, too large to write"
    if passed.entrywise:
        return f"∂/∂{passed.to} = {_array(Held('', passed.gradient.shape, passed.derivative[0]), options)}" + (
            ", entrywise" if passed.gradient.shape else ""
        )
    shape = (len(passed.derivative), len(passed.derivative[0]))
    flat = tuple(number for row in passed.derivative for number in row)
    return f"∂/∂{passed.to} = {_array(Held('', shape, flat), options)}"


def _passed(passed: Passed, options: Options) -> str:
    target = f"{passed.to}.grad" if passed.step is None else f"step {passed.step}"
    return f"{_array(passed.gradient, options)} to {target}"


def _array(held: Held, options: Options) -> str:
    if held.values is None:
        return "None"
    if len(held.values) > MOST_IN_AN_ARRAY:
        return f"({len(held.values)} numbers)"
    return show_array(held.values, held.shape, options.digits)


def _list(values: Sequence[float], options: Options) -> str:
    if len(values) > MOST_IN_AN_ARRAY:
        return f"({len(values)} numbers)"
    return show_array(values, (len(values),), options.digits)


def _cells(values: Sequence[float], options: Options) -> tuple[str, ...]:
    return tuple(show(value, options.digits) for value in values)


def _grad(grads: Sequence[Held], options: Options) -> tuple[str, ...]:
    return tuple(
        cell
        for held in grads
        for cell in (("None",) * math.prod(held.shape) if held.values is None else _cells(held.values, options))
    )
