"""Reverse-mode differentiation of a tape, as more nodes of the same tape.

Derivatives being nodes, second derivatives and the effect of rounding are the same sweep applied again. The
formulas are the table's ``derivatives``; ``path`` says which branches are taken at the point.
"""

from __future__ import annotations

from collections.abc import Collection

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
        for position, arg in _arguments(balls.tape, path, node):
            if arg in depends:
                term = _pulled(balls, node, position, bar)
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


def _arguments(tape: Tape, path: Path, node: int) -> list[tuple[int, int]]:
    """The arguments that carry a derivative, with their positions."""
    op, args, _ = tape.ops[node]
    return [(0, path.uses[node][0])] if op in _CHOICES else list(enumerate(args))


_CHOICES = frozenset(("select", "max", "min"))


def _pulled(balls: Balls, node: int, position: int, bar: int) -> int:
    """``bar`` times the derivative of ``node`` with respect to one argument, a choice being the argument it takes."""
    tape = balls.tape
    op, args, value = tape.ops[node]
    if op in _CHOICES:
        return bar
    if op == "pow" and position == 0 and is_zero(balls.value(args[1])):
        return terms.mul(tape, bar, _of_power_zero(balls, args, derivative(tape, op, position, args, value)))
    return pulled(tape, node, position, bar)


def pulled(tape: Tape, node: int, position: int, bar: int) -> int:
    """``bar`` times the derivative of ``node`` with respect to one argument: the rule that all reverse sweeps share.

    Choices (``select``, ``max``, ``min``) and powers whose exponent the point decides are the sweeps' own.

    Args:
        tape: what the derivative is written on.
        node: an operation.
        position: of the argument.
        bar: the node of the derivative by ``node``.

    Raises:
        KeyError, IndexError: the table has no derivative for the operation, as for a choice.
    """
    op, args, value = tape.ops[node]
    if op == "add" or (op == "sub" and position == 0):
        return bar
    if op in ("neg", "sub"):
        return terms.neg(tape, bar)
    if op == "mul":
        return terms.mul(tape, bar, args[1 - position])
    if op == "div":
        share = terms.div(tape, bar, args[1])
        return share if position == 0 else terms.neg(tape, terms.mul(tape, share, node))
    return terms.mul(tape, bar, derivative(tape, op, position, args, value))


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
