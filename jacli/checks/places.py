"""The exact derivatives of a tape at its point and at others like it: what a claim is compared with."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from jacli.problem import MOST_OPERATIONS, Problem
from jacli.prove import Prover
from jacli.readings.adjoint import gradient
from jacli.readings.balls import ACCURACY, Undefined, Unknown
from jacli.readings.decimals import decimal
from jacli.readings.exact import Truth
from jacli.readings.lowering import Scalar, run
from jacli.readings.tape import Tape
from jacli.text import to_decimal

#: What the choice of points starts from.
SEED = 1

#: Points looked at for one that is inside the domain.
_ATTEMPTS = 12

#: Coordinates are multiples of about their own size over this.
_GRID = 1024


class Place:
    """A tape at a point. Numbers are decimals of 20 digits; None stands for no number."""

    def __init__(self, tape: Tape, columns: Sequence[int], label: str = "") -> None:
        self.tape = tape
        self.columns = columns
        self.label = label
        self._gradients: dict[int, list[int | None]] = {}

    @cached_property
    def prover(self) -> Prover:
        """The prover at this point."""
        return Prover(self.tape)

    def number(self, node: int | None) -> Decimal | None:
        """The value of a node."""
        if node is None:
            return None
        value = self.prover.balls.value(node, ACCURACY)
        return None if isinstance(value, Undefined | Unknown | Truth) else to_decimal(decimal(value))

    def undecided(self, node: int) -> bool:
        """Whether a node's value cannot be told."""
        return isinstance(self.prover.balls.value(node, ACCURACY), Unknown)

    def gradient(self, output: int) -> list[int | None]:
        """Nodes of the derivatives of ``output``; None where it may have none."""
        found = self._gradients.get(output)
        if found is None:
            taken = self.prover.path(output)
            depends = self.prover.reaching(output, self.columns)
            touched = taken.touched(depends, self.tape)
            smooth = gradient(self.prover.balls, taken, output, depends - touched)
            zero = self.tape.number(0)
            found = [None if column in touched else smooth.get(column, zero) for column in self.columns]
            self._gradients[output] = found
        return found

    def row(self, output: int) -> list[Decimal | None]:
        """The derivatives of ``output``."""
        return [self.number(node) for node in self.gradient(output)]

    def second(self, output: int) -> list[list[Decimal | None]]:
        """The second derivatives of ``output``."""
        blank: list[Decimal | None] = [None] * len(self.columns)
        return [blank if slope is None else self.row(slope) for slope in self.gradient(output)]


def elsewhere(problem: Problem, count: int) -> Iterator[Iterator[Place]]:
    """For each of ``count`` trials, places to try one after another until one is inside the domain.

    Coordinates are moved by up to their own size (at least 1), less and less as attempts fail; the same request always
    tries the same points.
    """
    rng = random.Random(SEED)  # noqa: S311 - nothing secret
    for _ in range(count):
        yield (_moved(problem, rng, attempt) for attempt in range(_ATTEMPTS))


def _moved(problem: Problem, rng: random.Random, attempt: int) -> Place:
    assert problem.lowered is not None
    tape = problem.lowered.tape
    bound, words = dict(tape.bound), []
    for variable in problem.variables:
        for name, node, x in zip(variable.entries, variable.nodes, variable.doubles, strict=True):
            value = _near(Fraction(x), rng, attempt)
            bound[node] = tape.number(value)
            words.append(f"{name}={_typed(value)}")
    return Place(replace(tape, bound=bound), problem.column_nodes, ", ".join(words))


def _near(x: Fraction, rng: random.Random, attempt: int) -> Fraction:
    """Another number, short enough to be typed: a multiple of a power of two."""
    reach = max(abs(x), Fraction(1)) / 2 ** (attempt // 2)
    unit: Fraction = Fraction(2) ** (
        reach.numerator.bit_length() - reach.denominator.bit_length() - _GRID.bit_length() + 1
    )
    steps = int(reach / unit)
    return Fraction(round(x / unit)) * unit + rng.choice((-1, 1)) * rng.randint(max(steps // 8, 1), steps) * unit


def _typed(value: Fraction) -> str:
    """As in ``--at``: the denominator is a power of two, so a decimal says it exactly."""
    number = Decimal(value.numerator) / Decimal(value.denominator)
    return f"{number.normalize():f}" if -7 < number.adjusted() < 16 else str(number)


def scalars(tape: Tape, nodes: Sequence[int], shape: tuple[int, ...]) -> Any:
    """Nodes of a tape as what lowering calculates with: one scalar, or an array of them in their shape."""
    if not shape:
        return Scalar(tape, nodes[0])
    import numpy as np

    array = np.empty(len(nodes), dtype=object)
    array[:] = [Scalar(tape, node) for node in nodes]
    return array.reshape(shape)


def inner_nodes(problem: Problem, most: int) -> Mapping[int, str]:
    """Tape nodes of the parts of the expression that are no bare numbers or variables, with their text."""
    assert problem.lowered is not None
    tape, program = problem.lowered.tape, problem.program
    if len(program.nodes) > most:
        return {}
    values = {
        node: scalars(tape, problem.lowered.variables[name], problem.shapes[node])
        for name, node in program.variables.items()
    }
    run(program, tape, values, len(tape.ops) + MOST_OPERATIONS, spans=False)
    found: dict[int, str] = {}
    for index, node in enumerate(program.nodes):
        value = values[index]
        if isinstance(value, Scalar) and node.op not in ("variable", "number", "index") and not problem.shapes[index]:
            found.setdefault(value.node, program.source(index))
    return found
