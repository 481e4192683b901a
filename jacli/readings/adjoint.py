"""Reverse-mode differentiation of a tape, as more nodes of the same tape.

Derivatives being nodes, second derivatives and the effect of rounding are the same sweep applied again. The
formulas are the table's ``derivatives``; ``path`` says which branches are taken at the point.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from jacli.functions import ROWS
from jacli.readings import terms
from jacli.readings.balls import Balls
from jacli.readings.exact import is_zero
from jacli.readings.lowering import expand
from jacli.readings.paths import Path
from jacli.readings.tape import Tape


def gradient(balls: Balls, path: Path, output: int, wrt: Collection[int]) -> dict[int, int]:
    """Nodes of the derivatives of ``output`` with respect to variables that touch no switching point.

    Variables that ``output`` does not depend on are left out.
    """
    tape = balls.tape
    depends = dependents(path, wrt)
    bars: dict[int, int] = {output: tape.number(1)} if output in depends else {}
    for node in reversed(path.nodes):
        bar = bars.get(node)
        if bar is None or node not in depends:
            continue
        tape.at(tape.spans[node])
        for arg, each in links(balls, path, node, depends):
            term = each.written(tape, bar)
            bars[arg] = terms.add(tape, bars[arg], term) if arg in bars else term
    tape.at(None)
    return {variable: bars[variable] for variable in wrt if variable in bars}


def dependents(path: Path, wrt: Collection[int]) -> set[int]:
    """The nodes of a path whose value is made of one of the variables."""
    depends = set(wrt)
    for node in path.nodes:
        if node not in depends and not depends.isdisjoint(path.uses[node]):
            depends.add(node)
    return depends


_CHOICES = frozenset(("select", "max", "min"))


class Link(NamedTuple):
    """What an argument receives of a node's bar: ``bar / divisor * factor``, or minus that. Absent nodes count as 1."""

    negative: bool = False
    factor: int | None = None
    divisor: int | None = None

    def written(self, tape: Tape, bar: int) -> int:
        """What the argument receives, as a node."""
        share = bar if self.divisor is None else terms.div(tape, bar, self.divisor)
        product = share if self.factor is None else terms.mul(tape, share, self.factor)
        return terms.neg(tape, product) if self.negative else product


def link(tape: Tape, node: int, position: int) -> Link:
    """The derivative of ``node`` with respect to one argument: the rule that all reverse sweeps share.

    Choices (``select``, ``max``, ``min``) and powers whose exponent the point decides are the sweeps' own.

    Args:
        tape: where a derivative that the table has a formula for is written.
        node: an operation.
        position: of the argument.

    Raises:
        KeyError, IndexError: the table has no derivative for the operation, as for a choice.
    """
    op, args, value = tape.ops[node]
    if op in ("add", "neg", "sub"):
        return Link(negative=op == "neg" or (op == "sub" and position == 1))
    if op == "mul":
        return Link(factor=args[1 - position])
    if op == "div":
        return Link(divisor=args[1]) if position == 0 else Link(negative=True, factor=node, divisor=args[1])
    return Link(factor=derivative(tape, op, position, args, value))


def links(balls: Balls, path: Path, node: int, depends: Collection[int]) -> Iterator[tuple[int, Link]]:
    """The arguments among ``depends`` that ``node`` is made of at the point, each with its link."""
    op, args, _ = balls.tape.ops[node]
    choice = op in _CHOICES
    for position, arg in enumerate(path.uses[node] if choice else args):
        if arg in depends:
            yield arg, Link() if choice else _link_at(balls, node, position)


def _link_at(balls: Balls, node: int, position: int) -> Link:
    """The link to one argument, where the point decides on powers with exponent 0."""
    op, args, value = balls.tape.ops[node]
    if op == "pow" and position == 0 and is_zero(balls.value(args[1])):
        slope = derivative(balls.tape, op, position, args, value)
        return Link(factor=_of_power_zero(balls, args, slope))
    return link(balls.tape, node, position)


def _of_power_zero(balls: Balls, args: tuple[int, ...], slope: int) -> int:
    """The derivative by x of x**0, which is 1 at x = 0 too, where the formula ``slope`` would divide by zero.

    An exponent that only happens to be 0 at the point keeps its formula: it may be differentiated again.
    """
    tape = balls.tape
    base, exponent = args
    if not tape.varies(exponent):
        return tape.number(0)
    if balls.sign(base) != 0:
        return slope
    zero = tape.number(0)
    return tape.add("select", tape.add("eq", exponent, zero), zero, slope)


def derivative(tape: Tape, op: str, position: int, args: tuple[int, ...], value: tuple[int, ...] | None) -> int:
    """The node of a primitive's derivative by the table's formula."""
    row = ROWS[op]
    formula = row.derivatives[position]
    if value is None:
        return expand(tape, formula, row.parameters, args)
    return expand(tape, formula.replace("{n}", str(value[0])), row.parameters[-1:], args)
