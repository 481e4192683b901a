"""Derivatives as nodes of a tape, for all points at once: the witness that torch's autograd is compared with.

The formulas are the table's, not torch's. Where a point decides (``max``, a choice that is not resolved), the
derivative is a ``select`` that each point decides for itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction

from jacli.readings import terms
from jacli.readings.adjoint import link
from jacli.readings.tape import Tape


def gradient(tape: Tape, output: int, wrt: Sequence[int]) -> list[int]:
    """The nodes of ``∂output/∂variable``, the number 0 where ``output`` does not depend on one."""
    order = tape.needed([output])
    depends = _dependents(tape, order, wrt)
    zero = tape.number(0)
    bars = {output: tape.number(1)}
    for node in reversed(order):
        bar = bars.get(node, zero)
        if bar == zero or node not in depends:
            continue
        for position, arg in enumerate(tape.ops[node].args):
            if arg in depends:
                bars[arg] = terms.add(tape, bars.get(arg, zero), _pulled(tape, node, position, bar))
    return [bars.get(variable, zero) if variable in depends else zero for variable in wrt]


def _dependents(tape: Tape, order: Sequence[int], wrt: Collection[int]) -> set[int]:
    """The nodes of ``order`` that are made of a variable of ``wrt``."""
    depends = set(wrt).intersection(order)
    for node in order:
        if not depends.isdisjoint(tape.ops[node].args):
            depends.add(node)
    return depends


def _pulled(tape: Tape, node: int, position: int, bar: int) -> int:
    """What ``bar``, the derivative by ``node``, adds to the derivative by one argument."""
    op, args, _ = tape.ops[node]
    if op == "select":
        return _chosen(tape, args, position, bar)
    if op in ("max", "min"):
        wins = tape.add("ge" if (op == "max") == (position == 0) else "le", args[0], args[1])
        return tape.add("select", wins, bar, tape.number(0))
    exponent = terms.number(tape, args[1]) if op == "pow" else None
    if exponent is not None and position == 0:
        return terms.mul(tape, bar, _power(tape, args[0], exponent))
    return link(tape, node, position).written(tape, bar)


def _power(tape: Tape, base: int, exponent: int | Fraction) -> int:
    """``n*x**(n-1)``, the exponent a number: no logarithm, and no power where n is 2."""
    below = Fraction(exponent) - 1
    power = base if below == 1 else tape.number(1) if below == 0 else tape.add("pow", base, tape.number(below))
    return terms.mul(tape, tape.number(exponent), power)


def _chosen(tape: Tape, args: tuple[int, ...], position: int, bar: int) -> int:
    """``bar`` where the choice takes the argument at ``position``, 0 elsewhere and for conditions."""
    last = len(args) - 1 if len(args) % 2 else None
    zero = tape.number(0)
    if position % 2 == 0 and position != last:
        return zero
    branches = [arg if i % 2 == 0 and i != last else bar if i == position else zero for i, arg in enumerate(args)]
    return tape.add("select", *branches)


# ---- choices


def selects(tape: Tape, roots: Sequence[int]) -> list[int]:
    """The choices among the nodes that ``roots`` need."""
    return [node for node in tape.needed(roots) if tape.ops[node].op == "select"]


def resolved(tape: Tape, roots: Sequence[int], taken: Mapping[int, int]) -> tuple[Tape, dict[int, int], list[int]]:
    """A copy of what ``roots`` need in which a choice in ``taken`` is the argument it takes (by position).

    Returns:
        The copy, where each node went, and the copy's nodes of the conditions that were looked at on the way.
    """
    copy = Tape(tape.text)
    went: dict[int, int] = {}
    looked: list[int] = []
    stack = list(reversed(roots))
    while stack:
        node = stack[-1]
        op = tape.ops[node]
        position = taken.get(node)
        args = op.args if position is None else (*op.args[: position + 1 : 2], op.args[position])
        missing = [arg for arg in args if arg not in went]
        if node in went or missing:
            stack.pop() if node in went else stack.extend(reversed(missing))
        elif position is None:
            went[node] = copy.add(op.op, *(went[arg] for arg in args), value=op.value)
        else:
            went[node] = went[op.args[position]]
            looked += [went[arg] for arg in op.args[: position + 1 : 2] if arg != op.args[position]]
    return copy, went, looked


# ---- switching points

_HALF = Fraction(1, 2)


def switches(tape: Tape, roots: Sequence[int]) -> list[int]:
    """Nodes that are zero exactly where something that ``roots`` need has a kink, a jump, a tie or an edge."""
    return list(dict.fromkeys(node for at in tape.needed(roots) for node in _switch(tape, at)))


def _switch(tape: Tape, node: int) -> Iterator[int]:
    op, args, _ = tape.ops[node]
    if op in ("abs", "sign", "sqrt"):
        yield args[0]
    elif op in ("max", "min", "lt", "le", "gt", "ge", "eq", "ne"):
        yield terms.sub(tape, *args)
    elif op in ("asin", "acos"):
        yield terms.sub(tape, tape.number(1), tape.add("abs", args[0]))
    elif op == "acosh":
        yield terms.sub(tape, args[0], tape.number(1))
    elif op in ("floor", "ceil"):
        yield terms.sub(tape, args[0], tape.add("floor", terms.add(tape, args[0], tape.number(_HALF))))
    elif op == "atan2":
        behind = tape.add("le", args[1], tape.number(0))
        yield tape.add("select", behind, args[0], tape.number(1))
    elif op == "pow":
        exponent = terms.number(tape, args[1])
        if exponent is None or exponent < 0 or exponent.denominator != 1:
            yield args[0]
