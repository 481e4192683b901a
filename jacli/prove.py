"""The prover: the exact derivative of a tape at its point, with a bound on every digit, or why there is none."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, partial
from typing import TYPE_CHECKING

from flint import fmpq

from jacli.errors import JacliError, Span
from jacli.readings import terms
from jacli.readings.adjoint import gradient
from jacli.readings.balls import ACCURACY, Balls, Known, Undefined, Unknown
from jacli.readings.decimals import decimal, is_writable, nearest
from jacli.readings.exact import Truth
from jacli.readings.excuses import Excuse, excuse
from jacli.readings.paths import Path, Step, path
from jacli.readings.precision import DOUBLE, Precision
from jacli.readings.rounding import Effect, Loose, Rounding
from jacli.readings.sides import UNBROKEN, Side, alike, look, look_beside, slope_along
from jacli.readings.tape import Tape
from jacli.readings.zeros import stays

if TYPE_CHECKING:
    from jacli.readings.block import Settled


@dataclass(frozen=True, slots=True)
class Proof:
    """What is true of one number (a derivative or a value) at the point.

    Attributes:
        kind: ``smooth``, ``kink``, ``edge``, ``undefined`` or ``undecided``.
        exact: 20 significant digits, or all; None unless ``kind`` is smooth. "0" is proved.
        one_sided: the left and right slopes where they matter ("oo", "-oo"; None where that side is not real).
        reason: in words, why there is no plain number, or what happens at the switching point.
        place: the part of the text that is to blame.
        at_switch: the point is one where the program switches, and a float may follow either side.
        precision: the type of the floats that the number is beside.
        rounding: what rounding does to the number in that type, looked into when asked: it costs more than the number.
        excuse: what else may explain a float that is far off, looked into when asked.
        written: writes the number on the prover's tape; None for one that is not smooth, or zero.
    """

    kind: str
    exact: str | None = None
    one_sided: tuple[str | None, str | None] | None = None
    reason: str | None = None
    place: Span | None = None
    at_switch: bool = False
    precision: Precision = DOUBLE
    rounding: Callable[[], Effect] = field(default=Effect, repr=False, compare=False)
    excuse: Callable[[], Excuse] | None = field(default=None, repr=False, compare=False)
    written: Callable[[], int] | None = field(default=None, repr=False, compare=False)

    @property
    def node(self) -> int | None:
        """The number as a node of the prover's tape, written there when it is asked for."""
        return self.written() if self.written else None

    @property
    def effect(self) -> Effect:
        """What rounding does to the number in floats."""
        return self.rounding()

    @property
    def input_bound(self) -> float:
        """How far rounding the typed numbers to floats moves the exact value, to first order."""
        return self.effect.inputs

    @property
    def operations_bound(self) -> float:
        """The same, for the rounding of every operation."""
        return self.effect.operations

    @property
    def worst(self) -> Span | None:
        """The operation that loses most, or that leaves the range of floats."""
        return self.effect.worst

    @property
    def worst_source(self) -> str | None:
        """That operation, as typed."""
        return self.effect.source


ZERO = Proof("smooth", "0")

_STAYS = "the program stays at its switching point along this line"

_ONE_SLOPE = "the program switches here, both sides have one slope"

#: Nodes times columns from which derivatives are settled in a block: below, nodes of the tape are as cheap.
_BLOCK = 4096

#: How far from a point "close by" is.
_DISTANCES = (Fraction(1, 1 << 20), Fraction(1, 1 << 40))


class Prover:
    """Proofs about one tape at its point. Work is shared between the results asked for."""

    def __init__(self, tape: Tape, precision: Precision = DOUBLE) -> None:
        self.tape = tape
        self.precision = precision
        self.balls = Balls(tape)
        self.rounding = Rounding(self.balls, precision)
        self.loose = Loose(self.balls, precision)
        self._paths: dict[int, Path] = {}
        self._steps: dict[int, Step] = {}
        self._excuses: dict[int, Excuse] = {}
        self._effects: dict[tuple[int, int], Effect] = {}
        self._bound = len(tape.bound)

    def proves(self, tape: Tape, precision: Precision) -> bool:
        """Whether it proves things about ``tape``, bound as it is now, for floats of that type."""
        return self.tape is tape and self._bound == len(tape.bound) and self.precision is precision

    # ---- what is asked

    def value(self, output: int) -> Proof:
        """The value of ``output`` itself."""
        return self.number(output, output)

    def gradient(self, output: int, wrt: Sequence[int]) -> list[Proof]:
        """The derivatives of ``output`` with respect to each variable node."""
        return self.jacobian([output], wrt)[0]

    def jacobian(self, outputs: Sequence[int], wrt: Sequence[int]) -> list[list[Proof]]:
        """The derivatives of every output with respect to each variable node, a row an output."""
        settled = self._settled(outputs, wrt)
        return [self._row(output, wrt, settled) for output in outputs]

    def _settled(self, outputs: Sequence[int], wrt: Sequence[int]) -> Mapping[tuple[int, int], Settled]:
        """What is settled in one block, where there is enough of it; by output and variable."""
        paths = {output: self.path(output) for output in outputs}
        smooth = {
            output: path for output, path in paths.items() if not path.missing and not path.touched(wrt, self.tape)
        }
        if sum(len(path.nodes) for path in smooth.values()) * len(wrt) < _BLOCK:
            return {}
        from jacli.readings.block import settle

        return settle(self.rounding, smooth, wrt)

    def _row(self, output: int, wrt: Sequence[int], settled: Mapping[tuple[int, int], Settled]) -> list[Proof]:
        """The derivatives of one output, as far as they are not settled already from nodes of the tape."""
        taken = self.path(output)
        depends = self.reaching(output, wrt)
        if taken.missing:
            return [self.closely(output, {v: self.tape.number(1)}) if v in depends else ZERO for v in wrt]
        touched = taken.touched(depends, self.tape)
        known = {variable: settled[output, variable] for variable in depends if (output, variable) in settled}
        left = depends - touched - known.keys()
        smooth = gradient(self.balls, taken, output, left) if left else {}
        self.balls.values(list(smooth.values()), ACCURACY)
        proofs = [
            self.closely(output, {variable: self.tape.number(1)}) if variable in touched
            else self._of_block(output, variable, known[variable]) if variable in known
            else self.number(smooth[variable], output) if variable in smooth
            else ZERO
            for variable in wrt
        ]  # fmt: skip
        return self._levelled(proofs, taken)

    def _of_block(self, output: int, variable: int, found: Settled) -> Proof:
        """The proof of a derivative that was settled in a block."""
        written = partial(self._slope, output, variable)
        excuse = partial(self._excuse_of, output, written)
        return self._smooth(decimal(found.value), lambda: found.effect, excuse, written)

    def _slope(self, output: int, variable: int) -> int:
        """The node of a derivative that touches no switching point."""
        slopes = gradient(self.balls, self.path(output), output, {variable})
        return slopes.get(variable, self.tape.number(0))

    def directional(self, output: int, tangent: Mapping[int, int]) -> Proof:
        """The derivative of ``output`` along a direction: a constant node for each variable node."""
        moving = {v: tangent[v] for v in self.mentioned(output, tangent) if self.balls.sign(tangent[v]) != 0}
        taken = self.path(output)
        along = {v: moving[v] for v in self.reaching(output, moving)}
        if not along:
            return ZERO
        if taken.missing or taken.touched(along, self.tape):
            return self.closely(output, moving)
        return self.number(self._product(gradient(self.balls, taken, output, along), along), output)

    def hessian(self, output: int, wrt: Sequence[int]) -> list[list[Proof]]:
        """The second derivatives of ``output``."""
        taken = self.path(output)
        depends = self.reaching(output, wrt)
        if taken.missing or taken.touched(depends, self.tape):
            beside = self.mentioned(output, wrt)
            return [[self.second(output, i, j) if {i, j} <= beside else ZERO for j in wrt] for i in wrt]
        slopes = gradient(self.balls, taken, output, depends)
        rows = dict(zip(slopes, self.jacobian(list(slopes.values()), wrt), strict=True))
        proofs = [proof for i in wrt for proof in rows.get(i, [ZERO] * len(wrt))]
        level = iter(self._excused(self._levelled(proofs, taken), output))
        return [[next(level) for _ in wrt] for _ in wrt]

    def hvp(self, output: int, wrt: Sequence[int], tangent: Mapping[int, int]) -> list[Proof]:
        """The second derivatives of ``output`` times a direction."""
        taken = self.path(output)
        depends = self.reaching(output, {*wrt, *tangent})
        if taken.missing or taken.touched(depends, self.tape):
            beside = self.mentioned(output, {*wrt, *tangent})
            moving = {v: t for v, t in tangent.items() if v in beside and self.balls.sign(t) != 0}
            return [self._closely_times(output, i, moving) if i in beside else ZERO for i in wrt]
        along = {v: t for v, t in tangent.items() if v in depends and self.balls.sign(t) != 0}
        return self._excused(
            self.gradient(self._product(gradient(self.balls, taken, output, along), along), wrt), output
        )

    # ---- steps

    def _excused(self, proofs: list[Proof], output: int) -> list[Proof]:
        """Second derivatives with the excuses of the program itself, rather than those of its slopes."""
        return [replace(proof, excuse=partial(self._excuse_of, output, proof.written)) for proof in proofs]

    def _levelled(self, proofs: list[Proof], taken: Path) -> list[Proof]:
        """Proofs of a block whose floats come out of factoring a matrix: an entry is as exact as the largest are.

        What is exactly zero, or small, is then a difference of products of the size of the others.
        """
        parts = [part for part in self.tape.factored if not set(part.results).isdisjoint(taken.nodes)]
        if not parts:
            return proofs
        unit = self.precision.unit * max(math.isqrt(len(part.matrix)) for part in parts)
        sizes = [abs(float(proof.exact)) for proof in proofs if proof.exact is not None]
        source = f"{parts[0].name}(…)"

        @cache
        def level() -> float:
            largest = max(unit * max(sizes, default=0.0), *(proof.effect.operations for proof in proofs))
            return min(largest, sys.float_info.max)

        def levelled(proof: Proof) -> Effect:
            return replace(proof.effect, operations=level(), source=proof.effect.source or source)

        return [replace(proof, rounding=partial(levelled, proof)) for proof in proofs]

    def path(self, output: int) -> Path:
        """The path that ``output`` takes (kept from call to call)."""
        found = self._paths.get(output)
        if found is None:
            found = self._paths[output] = path(self.balls, output, self._steps)
        return found

    def reaching(self, output: int, wrt: Collection[int]) -> set[int]:
        """The variables that the taken part of ``output`` looks at."""
        return set(wrt).intersection(self.path(output).nodes)

    def mentioned(self, output: int, wrt: Collection[int]) -> set[int]:
        """The variables that any branch of ``output`` looks at: another may be taken beside a switching point."""
        return set(wrt).intersection(self.tape.needed((output,)))

    def number(self, node: int, output: int) -> Proof:
        """The proof of a number that is smooth at the point: an output's value, or a derivative of ``output``."""
        value = self.balls.value(node, ACCURACY)
        if isinstance(value, (Undefined, Unknown)):
            return self.refusal(value)
        if isinstance(value, Truth):
            raise TypeError("a condition is no number")
        if not is_writable(value):
            return Proof("undecided", reason=self._placed("too large or too small to be written", output))
        rounding, excuse = partial(self._effect, node, output), partial(self.excuse, output, node)
        return self._smooth(decimal(value), rounding, excuse, lambda: node)

    def _smooth(
        self, exact: str, rounding: Callable[[], Effect], excuse: Callable[[], Excuse], written: Callable[[], int]
    ) -> Proof:
        return Proof("smooth", exact, precision=self.precision, rounding=rounding, excuse=excuse, written=written)

    def _effect(self, node: int, output: int) -> Effect:
        """What rounding does to a number that belongs to ``output`` (kept from call to call)."""
        found = self._effects.get((node, output))
        if found is None:
            found = self._effects[node, output] = self.rounding.effect(node, self.path(output).nodes)
        return found

    def _excuse_of(self, output: int, written: Callable[[], int] | None) -> Excuse:
        """The same for a number that is written when it is asked for."""
        return self.excuse(output, written() if written else None)

    def excuse(self, output: int, node: int | None = None) -> Excuse:
        """What may explain floats of ``output`` and its derivatives that are far off (kept from call to call).

        ``node`` is the number in question.
        """
        found = self._excuses.get(output)
        if found is None:
            found = self._excuses[output] = excuse(self.rounding, self.path(output))
        if node == output:
            return replace(found, steep=None)  # it matters to slopes only
        loosely = 0.0 if node is None else self.loose.bound(node, output)
        return replace(found, loosely=loosely)

    def refusal(self, value: Undefined | Unknown) -> Proof:
        """Why there is no value."""
        reason = value.reason if isinstance(value, Undefined) else f"undecided at {self.balls.most_digits} digits"
        kind = "undefined" if isinstance(value, Undefined) else "undecided"
        return Proof(kind, reason=self._placed(reason, value.node), place=self.tape.spans[value.node])

    def _placed(self, reason: str, node: int) -> str:
        source = self.tape.source(node)
        return f"{reason}, in {source}" if source else reason

    def _product(self, slopes: Mapping[int, int], tangent: Mapping[int, int]) -> int:
        total = self.tape.number(0)
        for variable, slope in slopes.items():
            total = terms.add(self.tape, total, terms.mul(self.tape, slope, tangent[variable]))
        return total

    # ---- at a switching point

    def closely(self, output: int, direction: Mapping[int, int]) -> Proof:
        """The derivative along a direction that touches a switching point, from both sides."""
        taken = self.path(output)
        found = self.balls.value(output)
        if isinstance(found, Unknown):
            return self.refusal(found)
        missing = isinstance(found, Undefined)
        sides = [look(self.balls, taken, output, direction, side, None if missing else output) for side in (-1, 1)]
        if isinstance(found, Undefined):
            return self._extended(output, direction, found, *sides)
        return self._blaming(self._compared(output, output, *sides), taken, *sides)

    def _compared(self, output: int, value: int, left: Side, right: Side) -> Proof:
        """The derivative of a node whose value at the point is ``value``, from what was seen on each side."""
        if left.swings or right.swings:
            return Proof("undefined", reason=f"no slope: {left.problem if left.swings else right.problem}")
        for side in (left, right):
            if side.problem and side.real:
                return Proof("undecided", reason=f"undecided: {side.problem}")
        slopes = (self._written(left.slope), self._written(right.slope))
        if not (left.real or right.real):
            return Proof("undefined", reason=f"real at this single point only ({right.problem} beside it)")
        if not all(self._leads_to(value, side) for side in (left, right) if side.real):
            ends = [_limit(self._written(side.limit)) for side in (left, right)]
            reason = f"a jump: {ends[0]} from the left, {ends[1]} from the right, {self._exact(value)} at the point"
            return Proof("undefined", one_sided=slopes, reason=reason)
        if not (left.real and right.real):
            there, beyond = ("right", left) if right.real else ("left", right)
            return Proof("edge", one_sided=slopes, reason=f"real on the {there} only ({beyond.problem} beyond)")
        if isinstance(left.slope, str) or isinstance(right.slope, str):
            reason = f"an infinite slope ({slopes[0]} on the left, {slopes[1]} on the right)"
            return Proof("edge", one_sided=slopes, reason=reason)
        return self._sloped(output, left, right, slopes)

    def _sloped(self, output: int, left: Side, right: Side, slopes: tuple[str | None, str | None]) -> Proof:
        """Two finite slopes: the derivative if they are equal."""
        apart = self._apart(left, right, left.slope, right.slope)
        if apart is None:
            digits = self.balls.most_digits
            return Proof("undecided", reason=f"undecided at {digits} digits: whether both sides have one slope")
        if apart:
            reason = f"the slope is {slopes[0]} on the left and {slopes[1]} on the right"
            return Proof("kink", one_sided=slopes, reason=reason)
        if not isinstance(right.slope, int):
            raise TypeError("a slope that is not finite")
        return replace(self.number(right.slope, output), reason=_ONE_SLOPE)

    def _apart(self, left: Side, right: Side, a: int | str | None, b: int | str | None) -> bool | None:
        """Whether two numbers, one seen from each side, differ; None when that is undecided."""
        if not isinstance(a, int) or not isinstance(b, int):
            return a != b
        found = 0 if alike(left, right) else self.balls.sign(terms.sub(self.tape, a, b))
        return None if isinstance(found, (Undefined, Unknown)) else bool(found)

    def _leads_to(self, value: int, side: Side) -> bool:
        return isinstance(side.limit, int) and self.balls.sign(terms.sub(self.tape, side.limit, value)) == 0

    def _extended(self, output: int, direction: Mapping[int, int], found: Undefined, left: Side, right: Side) -> Proof:
        """What is undefined as typed may still have a continuous extension, which is worth telling."""
        proof = self.refusal(found)
        root = self._real_root(output, direction, found)
        if root:
            return replace(proof, reason=f"{proof.reason}; {root}")
        words = self._one_sided_extension(left, right) if left.real != right.real else self._extension(left, right)
        return replace(proof, reason=f"{proof.reason}, as typed; {words}") if words else proof

    def _extension(self, left: Side, right: Side) -> str | None:
        """What the continuous extension is, where both sides lead to one value."""
        limit, slope = right.limit, right.slope
        if not isinstance(limit, int) or not isinstance(left.limit, int):
            return None
        jumps = self._apart(left, right, left.limit, limit)
        if jumps is not False:
            ends = f"it leads to {self._exact(left.limit)} from the left and to {self._exact(limit)} from the right"
            return ends if jumps else None
        words = f"its continuous extension has the value {self._exact(limit)}"
        if slope is None or left.slope is None:
            return words + (" and no slope" if left.swings or right.swings else "")
        apart = self._apart(left, right, left.slope, slope)
        if apart:
            return f"{words}, the slope {self._written(left.slope)} on the left and {self._written(slope)} on the right"
        return words if apart is None else f"{words} and the slope {self._written(slope)}"

    def _one_sided_extension(self, left: Side, right: Side) -> str | None:
        """The same where the program is real on one side only."""
        side, name = (right, "right") if right.real else (left, "left")
        if not isinstance(side.limit, int):
            return None
        slope = "" if side.slope is None else f" and the slope {self._written(side.slope)}"
        return f"its extension from the {name} has the value {self._exact(side.limit)}{slope}"

    def _real_root(self, output: int, direction: Mapping[int, int], found: Undefined) -> str | None:
        """What to type where an odd root of a negative number was meant, and its slope."""
        op, args, _ = self.tape.ops[found.node]
        exponent = self.balls.value(args[1]) if op == "pow" else None
        if not isinstance(exponent, fmpq) or exponent.q % 2 == 0 or exponent.q == 1 or self.balls.sign(args[0]) != -1:
            return None
        base, power = self.tape.source(args[0]) or "x", f"({int(exponent.p)}/{int(exponent.q)})"
        size = self.tape.add("pow", self.tape.add("abs", args[0]), args[1])
        odd = exponent.p % 2 == 1
        instead = terms.mul(self.tape, self.tape.add("sign", args[0]), size) if odd else size
        typed = f"sign({base})*abs({base})**{power}" if odd else f"abs({base})**{power}"
        typed = f"cbrt({base})" if exponent == fmpq(1, 3) else typed
        slope = self.directional(self._replaced(output, found.node, instead), direction).exact
        return f"the real root {typed} has the slope {slope} here" if slope else None

    def _replaced(self, output: int, old: int, new: int) -> int:
        """``output`` with one node in place of another."""
        changed = {old: new}
        for node in self.tape.needed((output,)):
            op, args, value = self.tape.ops[node]
            if node not in changed and not changed.keys().isdisjoint(args):
                changed[node] = self.tape.add(op, *(changed.get(arg, arg) for arg in args), value=value)
        return changed.get(output, output)

    def _blaming(self, proof: Proof, taken: Path, left: Side, right: Side) -> Proof:
        """The proof with the place where the sides part, or where one of them ends."""
        ended = [side.walk.here for side in (left, right) if side.problem and side.walk.here >= 0]
        before, after = left.walk.choices, right.walk.choices
        parts = [node for node in before if node in after and before[node] != after[node]]
        blamed = min(ended or parts or taken.turns, default=None)
        if blamed is None:
            return replace(proof, at_switch=True)
        reason = self._placed(proof.reason or "", blamed)
        return replace(proof, reason=reason, place=self.tape.spans[blamed], at_switch=True)

    def _written(self, number: int | str | None) -> str | None:
        """A limit or slope in decimals; oo and -oo are themselves."""
        return self._exact(number) if isinstance(number, int) else number

    def _exact(self, node: int) -> str:
        value = self.balls.value(node, ACCURACY)
        if isinstance(value, (Undefined, Unknown, Truth)) or not is_writable(value):
            return "undecided"
        return decimal(value)

    # ---- second derivatives at a switching point

    def second(self, output: int, i: int, j: int) -> Proof:
        """The derivative along j of the derivative by i.

        The other order is no way out: where second derivatives are not continuous it may give another number (Peano).
        """
        proof = self._second(output, i, j)
        if proof.kind != "undecided" or i == j:
            return proof
        across = self._across(output, i, j)
        if across is not None:
            return across
        missing = self._missing_beside(output, i, j)
        if missing is not None:
            return replace(proof, kind="undefined", reason=f"no first derivative beside the point: {missing}")
        return proof

    def _across(self, output: int, i: int, j: int) -> Proof | None:
        """The derivative along j of the slope by i, where that is one expression in j at the point and beside it."""
        taken, direction = self.path(output), {i: self.tape.number(1)}
        left, right = (look_beside(self.balls, taken, output, direction, side, j) for side in (-1, 1))
        if not left or not right or not isinstance(left.slope, int) or not isinstance(right.slope, int):
            return None
        apart = terms.sub(self.tape, left.slope, right.slope)
        if not alike(left, right) and (self.balls.sign(apart) != 0 or not stays(self.balls, apart, j)):
            return None
        proof = self.gradient(right.slope, [j])[0]
        if proof.reason:
            return replace(proof, at_switch=True)
        return self._blaming(replace(proof, reason=_ONE_SLOPE), taken, left, right)

    def _second(self, output: int, i: int, j: int) -> Proof:
        """The same from the derivative by i close to the point, as the branches taken there have it."""
        first = self.gradient(output, [i])[0]
        if first.kind != "smooth":
            kind = "undecided" if first.kind == "undecided" else "undefined"
            return replace(first, kind=kind, one_sided=None, reason=f"no first derivative: {first.reason}")
        slope = self.tape.number(0) if first.node is None else first.node
        direction = {j: self.tape.number(1)}
        sides = []
        for side in (-1, 1):
            seen = look(self.balls, self.path(output), output, direction, side, output)
            if seen.swings:  # which says nothing of the derivative by i
                seen = replace(seen, problem=None, swings=False)
            along = slope_along(seen, slope) if i == j and not seen.problem else None
            if not along and not seen.problem and i in self._stays(seen, output):
                seen = replace(seen, problem=_STAYS)
            if not along and not seen.problem:
                beside = self._slope_beside(seen, output, i, direction, slope)
                seen = beside if beside.real or not self._needs_no_logarithm(seen, i) else replace(seen, problem=_STAYS)
            sides.append(along or seen)
        return self._blaming(self._compared(output, slope, *sides), self.path(output), *sides)

    def _stays(self, seen: Side, output: int) -> set[int]:
        """What decides the switches that stay at their switching point along a line."""
        return set(self.tape.needed([*seen.walk.stuck, *self._held(seen, output)]))

    def _held(self, seen: Side, output: int) -> set[int]:
        """What decides switches of the output that stay at their switching point, as they do not move along a line."""
        held: set[int] = set()
        stack, known = [output], {output}
        while stack:
            node = stack.pop()
            if not seen.walk.moves(node):
                held.update(arg for args in self.path(node).turns.values() for arg in args)
                continue
            new = set(seen.walk.uses.get(node, ())) - known
            known |= new
            stack.extend(new)
        for node in seen.walk.germs.keys() - known:  # what others were compared with: a jump may turn the comparison
            op, args, _ = self.tape.ops[node]
            if not seen.walk.moves(node):
                turns = self.path(node).turns.items()
                held.update(arg for turn, args in turns if self.tape.ops[turn].op not in UNBROKEN for arg in args)
            elif op == "pow" and seen.walk.sign(args[0]) != 1:  # it may be real for this exponent only
                held.add(args[1])
        return held

    def _needs_no_logarithm(self, seen: Side, i: int) -> bool:
        """Whether a power may have a derivative by i that its formula, with the logarithm of the base, does not show.

        So has 0 to a positive power, and what is negative to a power that seems to move only.
        """
        powers = [node for node in seen.walk.germs if self.tape.ops[node].op == "pow" and seen.walk.moves(node)]
        for base, exponent in (self.tape.ops[node].args for node in powers):
            side = seen.walk.sign(base)
            if side != 1 and i in self.tape.needed((exponent,)) and not (side and self._moves(exponent, i)):
                return True
        return False

    def _moves(self, node: int, i: int) -> bool:
        """Whether a node surely has another value where the variable i has, close to the point."""
        slope = self.gradient(node, [i])[0]
        return slope.kind == "smooth" and not slope.at_switch and slope.exact != "0"

    def _missing_beside(self, output: int, i: int, j: int) -> str | None:
        """Why there is no derivative by i at points close by on the line along j, if it is missing on one side."""
        for side in (-1, 1):
            reasons = []
            for distance in _DISTANCES:
                tape = self.tape.copy()
                tape.bound[j] = tape.add("add", tape.bound[j], tape.number(side * distance))
                proof = Prover(tape).gradient(output, [i])[0]
                if proof.kind in ("smooth", "undecided"):
                    break
                reasons.append(proof.reason)
            if len(reasons) == len(_DISTANCES):
                return reasons[0]
        return None

    def _slope_beside(self, seen: Side, output: int, i: int, direction: Mapping[int, int], first: int) -> Side:
        """The derivative by i close to the point, as the branches taken there have it."""
        uses = dict(seen.walk.uses)
        for node in seen.walk.uses:
            if not seen.walk.moves(node):  # the walk does not look behind it, but i may be there
                uses.update(self.path(node).uses)
        beside = Path(tuple(sorted(uses)), uses, {}, ())
        slope = gradient(self.balls, beside, output, {i}).get(i, self.tape.number(0))
        found = look(self.balls, self.path(slope), slope, direction, seen.walk.side, first)
        found.walk.choices.update(seen.walk.choices)
        return found

    def _closely_times(self, output: int, i: int, along: Mapping[int, int]) -> Proof:
        """One entry of the Hessian times a direction."""
        parts = {j: self.second(output, i, j) for j in along}
        bad = next((proof for proof in parts.values() if proof.kind != "smooth"), None)
        if bad is not None:
            return bad
        nodes = {j: proof.node for j, proof in parts.items() if proof.node is not None}
        proof = self.number(self._product(nodes, along), output)
        return replace(proof, at_switch=any(part.at_switch for part in parts.values()))


def _limit(written: str | None) -> str:
    return "no real limit" if written is None else written


def double(tape: Tape, node: int) -> float:
    """The double nearest to a constant node.

    Raises:
        JacliError: when the constant is not a real number in the range of doubles.
    """
    op = tape.ops[node]
    if op.op == "number":
        return _in_range(_ratio(op.value), tape.source(node))
    balls = Balls(tape)
    value: Known = balls.value(node)
    if isinstance(value, (Undefined, Unknown)):
        reason = value.reason if isinstance(value, Undefined) else f"undecided at {balls.most_digits} digits"
        raise JacliError(f"this is not a real number: {reason}", tape.spans[node], kind="point")
    return _in_range(_rounded(balls, node), tape.source(node))


def _ratio(value: int | Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _rounded(balls: Balls, node: int) -> float:
    """Correctly rounded: more precision until both ends of the ball round to one double."""
    for accuracy in (ACCURACY, 4 * ACCURACY, 16 * ACCURACY):
        value = balls.value(node, accuracy)
        found = nearest(value) if not isinstance(value, (Undefined, Unknown, Truth)) else None
        if found is not None:
            return found
    return float(value.mid())  # type: ignore[union-attr]  # a tie that no precision breaks


def _in_range(value: float, source: str | None) -> float:
    if math.isinf(value):
        raise JacliError(f"{source or 'this number'} is beyond the range of doubles (about 1.8e308)", kind="point")
    return value
