"""A result close to the point, on one side: the program walked over germs, and what its slope is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from flint import fmpq

from jacli.readings import terms
from jacli.readings.balls import Balls, Undefined, Unknown
from jacli.readings.exact import OPERATIONS, Truth
from jacli.readings.forms import Form, constant
from jacli.readings.germs import (
    CONSTANT,
    DISTANCE,
    Algebra,
    Germ,
    MoreTermsError,
    NoGermError,
    NotRealError,
)
from jacli.readings.paths import Path
from jacli.readings.paths import path as path_of
from jacli.readings.zeros import polynomials, stays

#: Terms kept at first, and at most.
_FIRST_COUNT = 4
_MOST_TERMS = 32

#: Operations of one walk, over all its attempts.
MOST_STEPS = 200_000

_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "lt": lambda side: side < 0, "le": lambda side: side <= 0, "gt": lambda side: side > 0,
    "ge": lambda side: side >= 0, "eq": lambda side: side == 0, "ne": lambda side: side != 0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Missing:
    """No real value on this side, because of what happens at ``node``."""

    node: int
    reason: str


class Walk:
    """One side's germs: ``x + side*s*direction`` for small s."""

    def __init__(
        self,
        balls: Balls,
        path: Path,
        direction: Mapping[int, int],
        side: int,
        count: int,
        forms: Mapping[int, Form],
        beside: int | None = None,
    ) -> None:
        self.balls = balls
        self.tape = balls.tape
        self.path = path
        self.direction = direction
        self.side = side
        self.algebra = Algebra(balls, count, beside)
        self.forms = forms  # what is known of nodes along the whole line
        self.germs: dict[int, Germ | Truth | Missing] = {}
        self.choices: dict[int, int] = {}
        self.uses: dict[int, tuple[int, ...]] = {}
        self.stuck: list[int] = []  # nodes that stay at their switching point all along, or return without end
        self.here = -1
        self._moving: dict[int, bool] = {}

    def germ(self, root: int) -> Germ:
        """The germ of a node."""
        stack = [root]
        while stack:
            node = stack[-1]
            wanted = self._known(node)
            if wanted:
                stack.extend(wanted)
            else:
                stack.pop()
        return self._number(root)

    def _known(self, node: int) -> list[int]:
        """Make a node known; the arguments that have to be known first."""
        if node in self.germs:
            return []
        try:
            wanted = self._wanted(node)
            if not wanted:
                self.here = node
                self.tape.at(self.tape.spans[node])
                self.germs[node] = self._step(node)
        except NotRealError as error:  # perhaps in a condition that does not matter, as another one decides
            self.germs[node], wanted = Missing(self.here, error.reason), []
        self.tape.at(None)
        return wanted

    def _looked_up(self, node: int) -> Germ | Truth:
        found = self.germs[node]
        if isinstance(found, Missing):
            self.here = found.node
            raise NotRealError(found.reason)
        return found

    def _number(self, node: int) -> Germ:
        found = self._looked_up(node)
        if isinstance(found, Truth):
            raise TypeError("a condition is no number")
        return found

    def sign(self, node: int) -> int | None:
        """The sign of a node on this side; None where it is not seen."""
        if node not in self.germs:
            return None
        try:
            return self.algebra.sign(self._number(node))
        except (MoreTermsError, NoGermError, NotRealError):
            return None

    def moves(self, node: int) -> bool:
        """The node depends on a variable that moves."""
        found = self._moving.get(node)
        if found is None:
            for each in self.tape.needed((node,)):
                if each not in self._moving:
                    moving = each in self.direction or any(self._moving[arg] for arg in self.tape.ops[each].args)
                    self._moving[each] = moving
            found = self._moving[node]
        return found

    def _wanted(self, node: int) -> list[int]:
        """The arguments still missing, of a choice only those it comes to."""
        op, args, _ = self.tape.ops[node]
        if not self.moves(node) and op not in _CONDITIONS:
            return []
        if op == "select":
            return self._wanted_of_choice(args)
        if op in ("and", "or"):
            for arg in args:
                if arg not in self.germs:
                    return [arg]
                if self._decides(op, arg):
                    return []
            return []
        for arg in args:
            if isinstance(self.germs.get(arg), Missing):
                self._looked_up(arg)
        return [arg for arg in args if arg not in self.germs]

    def _decides(self, op: str, condition: int) -> bool:
        """One condition is enough: a True of ``or``, a False of ``and``."""
        found = self.germs[condition]
        return isinstance(found, Truth) and found.holds == (op == "or")

    def _wanted_of_choice(self, args: tuple[int, ...]) -> list[int]:
        conditions, taken = self._branch(args)
        missing = [c for c in conditions if c not in self.germs]
        return missing or ([taken] if taken is not None and taken not in self.germs else [])

    def _branch(self, args: tuple[int, ...]) -> tuple[tuple[int, ...], int | None]:
        """The conditions that are looked at, and the value node they lead to."""
        for k in range(0, len(args) - 1, 2):
            if args[k] not in self.germs or self._holds(args[k]):
                return args[: k + 1 : 2], args[k + 1]
        return args[:-1:2], args[-1] if len(args) % 2 else None

    def _holds(self, condition: int) -> bool:
        found = self._looked_up(condition)
        return isinstance(found, Truth) and found.holds

    def _step(self, node: int) -> Germ | Truth:
        op, args, value = self.tape.ops[node]
        self.uses[node] = args
        if op in _CONDITIONS:
            return self._condition(op, args)
        if node in self.direction:
            step = self.direction[node] if self.side > 0 else terms.neg(self.tape, self.direction[node])
            return self.algebra.made([(CONSTANT, self._start(node)), (DISTANCE, step)], None)
        if not self.moves(node):
            return self._constant(node)
        if op == "select":
            conditions, taken = self._branch(args)
            self.stuck.extend(c for c in conditions if not self.germs[c].stable)  # type: ignore[union-attr]
            if taken is None:
                raise NotRealError("no case of the Piecewise holds")
            self.uses[node] = (taken,)
            return self._anchored(node, self._chosen(node, args.index(taken), self._number(taken)))
        number = constant(self.forms[node]) if node in self.forms else None
        germ = self._function(op, args, value) if number is None else self.algebra.number(number)
        if not germ.plain:  # it takes its own form on each side
            self.choices.setdefault(node, self.side)
        return self._anchored(node, germ)

    def _constant(self, node: int) -> Germ:
        value = self.balls.value(node)
        if isinstance(value, Undefined):
            raise NotRealError(value.reason)
        if isinstance(value, Unknown):
            raise NoGermError("a constant cannot be decided")
        self.algebra.used.add(node)
        return self.algebra.constant(node)

    def _condition(self, op: str, args: tuple[int, ...]) -> Truth:
        if op in _COMPARISONS:
            side = self._order(args)
            return Truth(_COMPARISONS[op](side), bool(side) or args[0] == args[1])
        known = [arg for arg in args if arg in self.germs]
        deciding = [arg for arg in known if op in ("and", "or") and self._decides(op, arg)]
        found = OPERATIONS[op](*map(self._looked_up, deciding or known))
        if not isinstance(found, Truth):
            raise TypeError("a number is no condition")
        return found

    def _order(self, args: tuple[int, ...]) -> int:
        """The sign of the difference of two arguments."""
        first, second = args
        if first == second or (first in self.forms and self.forms[first] == self.forms.get(second)):
            return 0
        return self.algebra.sign(self.algebra.sub(self._number(first), self._number(second)))

    def _chosen(self, node: int, choice: int, germ: Germ) -> Germ:
        self.choices[node] = choice
        return germ

    def _function(self, op: str, args: tuple[int, ...], value: tuple[int, ...] | None) -> Germ:
        given = [self._number(arg) for arg in args]
        if op == "pow":
            return self._power(*given)
        if op in ("max", "min"):
            return self._extreme(op, args)
        if op in ("abs", "sign"):
            return self._signed(op, given[0])
        if op in ("floor", "ceil"):
            return self._stepped(op, given[0])
        algebra = self.algebra
        if op in ("sub", "div") and args[0] == args[1] and (op == "sub" or algebra.sign(given[0])):
            return algebra.number(int(op == "div"))
        if op == "sqrt":
            self._rooted(given[0])
        if op in ("asin", "acos", "acosh"):  # each is made of the root of 1 - a**2, or of its negative
            self._rooted(algebra.sub(algebra.number(1), algebra.mul(given[0], given[0])))
        if op == "atan2":
            self.choices[self.here] = 0 if algebra.sign(given[1]) > 0 else algebra.sign(given[0])
        if not given[0].unsettled and algebra.pole(given[0]):  # towards an infinity, perhaps another one on each side
            self.choices[self.here] = algebra.pole(given[0])
        return algebra.apply(op, given, value)

    def _signed(self, op: str, a: Germ) -> Germ:
        if op == "abs" and a.vague:  # it may return to zero without end
            self._stays(stuck=True)
            return self.algebra.abs(a)
        sign = self.choices[self.here] = self.algebra.sign(a)
        self._stays(not sign)
        return self.algebra.number(sign) if op == "sign" else self.algebra.abs(a)

    def _stepped(self, op: str, a: Germ) -> Germ:
        algebra = self.algebra
        germ = algebra.floor(a) if op == "floor" else algebra.neg(algebra.floor(algebra.neg(a)))
        self.choices[self.here] = germ.terms[0][1] if germ.terms else -1
        steady = a.order is None and all(exponent == CONSTANT for exponent, _ in a.terms) and not a.scale
        self._stays(steady or a.unsettled or bool(algebra.pole(a)))
        return germ

    def _rooted(self, a: Germ) -> None:
        """A root of what vanishes at the point takes its own form on each side."""
        a = self.algebra.lead(a)
        self.choices[self.here] = self.side if a.nothing or a.scale or a.first != CONSTANT else 0
        self._stays(a.nothing)

    def _stays(self, stuck: bool) -> None:
        """Note that the operation at hand stays at its switching point all along."""
        if stuck:
            self.stuck.append(self.here)

    def _extreme(self, op: str, args: tuple[int, ...]) -> Germ:
        side = self._order(args)
        self._stays(not side and args[0] != args[1])
        first = side >= 0 if op == "max" else side <= 0
        self.uses[self.here] = args[:1] if first else args[1:]
        return self._chosen(self.here, 0 if first else 1, self._number(self.uses[self.here][0]))

    def _power(self, base: Germ, power: Germ) -> Germ:
        still = self.algebra.still(power)  # it may come from a variable that moves, and not move itself
        exponent = None if still is None else self.balls.value(still)
        if still is None or type(exponent) is not fmpq:
            self._rooted(base)
            return self.algebra.general_power(base, power)
        self.algebra.exact(still)
        if exponent.q != 1:
            self._rooted(base)
        return self.algebra.power(base, Fraction(int(exponent.p), int(exponent.q)))

    def _anchored(self, node: int, germ: Germ) -> Germ:
        """The node itself as the constant term where the operation is continuous, so that no proof is needed."""
        op, args, _ = self.tape.ops[node]
        if op == "select":  # continuous if it comes to the same case as at the point
            args = self.uses[node]
            jumps = self.path.uses.get(node) != args
        else:
            jumps = node in self.path.turns and op not in _CONTINUOUS
        starts = germ.terms and germ.first == CONSTANT and not germ.scale
        if not starts or jumps or node not in self.path.uses:
            return germ
        if all(self._continuous(arg) for arg in args):
            return self.algebra.made([(CONSTANT, self._start(node)), *germ.terms[1:]], germ.order, germ.rest)
        return germ

    def _start(self, node: int) -> int:
        """A node's value at the point as a coefficient."""
        return self.tape.number(0) if self._is_zero(node) else node

    def _is_zero(self, node: int) -> bool:
        return self.algebra.exactly(node, 0)

    def _continuous(self, node: int) -> bool:
        """The germ of an argument visibly leads to the argument's own value."""
        germ = self._number(node)
        if germ.nothing or not self.moves(node):
            return True if not germ.nothing else self._is_zero(node)
        late = germ.order is None or germ.order > CONSTANT
        if germ.scale or germ.first < CONSTANT or not late:
            return False
        if germ.first > CONSTANT:
            return self._is_zero(node)
        if germ.terms[0][1] == node:
            return True
        here, there = self.algebra.exact(node), self.algebra.exact(germ.terms[0][1])
        return type(here) is fmpq and type(there) is fmpq and bool(here == there)


#: Operations that have a kink or an edge, but no jump.
_CONTINUOUS = frozenset(("abs", "max", "min", "sqrt", "asin", "acos", "acosh"))

#: Those of them that are real on both sides.
UNBROKEN = frozenset(("abs", "max", "min"))

_CONDITIONS = frozenset((*_COMPARISONS, "and", "or", "not", "true", "false"))


@dataclass(frozen=True, slots=True)
class Side:
    """What happens on one side. Numbers are nodes; an infinite one is its sign, as the string ``oo`` or ``-oo``.

    Attributes:
        limit: of the result, None where it is not real.
        slope: one-sided, of the line from the point's own value; None where there is none.
        walk: what was taken on the way.
        germ: the result close to the point, where it was found.
        problem: why nothing more can be said (``real`` False: there is no real value; ``swings``: there is no
            limit, or no slope, for certain).
    """

    walk: Walk
    limit: int | str | None = None
    slope: int | str | None = None
    germ: Germ | None = None
    problem: str | None = None
    real: bool = True
    swings: bool = False


def look(balls: Balls, path: Path, output: int, direction: Mapping[int, int], side: int, value: int | None) -> Side:
    """Look at ``output`` from one side: from the right (1) or the left (-1) along ``direction``.

    Args:
        balls: the tape at the point.
        path: the path that ``output`` takes there.
        output: a node.
        direction: a constant node for each variable that moves.
        side: 1 or -1.
        value: the node of the value at the point itself, from which slopes are measured; None where there is none.
    """
    found = _look(balls, path, output, direction, side, value)
    for waves in (False, True):
        if not found.problem or not found.real or found.swings:
            break
        forms = polynomials(balls, output, direction, waves=waves)
        found = _look(balls, path, output, direction, side, value, forms) if forms else found
    return found


def look_beside(balls: Balls, path: Path, output: int, direction: Mapping[int, int], side: int, j: int) -> Side | None:
    """The same for points that differ a little in the variable ``j`` as well, as expressions in it. None: not seen.

    It holds where all that was decided on the way is decided alike beside the point. Signs are, where they come from
    continuous numbers; values that had to be exact are where they do not move.
    """
    if not _steady(balls, path, j):
        return None
    seen = _look(balls, path, output, direction, side, output, beside=j)
    algebra = seen.walk.algebra
    if seen.problem or not all(stays(balls, node, j) for node in algebra.equal):
        return None
    return seen if all(_steady(balls, path_of(balls, node), j) for node in algebra.signs | algebra.used) else None


def _steady(balls: Balls, path: Path, j: int) -> bool:
    """What a path comes to moves without jumps, and stays real, when the variable ``j`` moves a little."""
    jumps = (args for node, args in path.turns.items() if balls.tape.ops[node].op not in UNBROKEN)
    return not path.missing and not any(j in balls.tape.needed(args) for args in jumps)


def _look(
    balls: Balls,
    path: Path,
    output: int,
    direction: Mapping[int, int],
    side: int,
    value: int | None,
    forms: Mapping[int, Form] | None = None,
    beside: int | None = None,
) -> Side:
    """Look with what is known of some nodes, from more and more terms."""
    count = _FIRST_COUNT
    size = len(balls.tape.needed((output,)))
    while True:
        walk = Walk(balls, path, direction, side, count, forms or {}, beside)
        if size * count > MOST_STEPS:
            return Side(walk, problem="the program is too long for a closer look")
        try:
            germ = walk.germ(output)
            return replace(_side(walk, germ, value), germ=germ)
        except MoreTermsError:
            count *= 2
            if count > _MOST_TERMS:
                return Side(walk, problem="all terms that were kept cancel")
        except NotRealError as error:
            return Side(walk, problem=error.reason, real=False)
        except NoGermError as error:
            return Side(walk, problem=error.reason)
        finally:
            balls.tape.at(None)


def _side(walk: Walk, germ: Germ, value: int | None) -> Side:
    """The limit and the slope that a germ has, seen from the value at the point."""
    algebra, side, tape = walk.algebra, walk.side, walk.tape
    up = algebra.pole(germ)
    if up:
        return Side(walk, _infinite(up), _infinite(up * side))
    if algebra.swings(germ, CONSTANT):
        return Side(walk, problem=_SWINGS, swings=True)
    limit = algebra.coefficient(germ, CONSTANT)
    steps = [terms.sub(tape, limit, value)] if value is not None else []
    steps += [node for exponent, node in germ.terms if CONSTANT < exponent < DISTANCE and not germ.scale]
    for step in steps:
        steep = algebra.sign_of(step)
        if steep:
            return Side(walk, limit, _infinite(steep * side))
    if algebra.swings(germ, DISTANCE):
        return Side(walk, limit, problem=_SWINGS, swings=True)
    slope = algebra.coefficient(germ, DISTANCE)
    return Side(walk, limit, slope if side > 0 else terms.neg(tape, slope))


def slope_along(seen: Side, first: int) -> Side | None:
    """The derivative along the line close to the point, seen from its value ``first`` there; None if not exact."""
    germ, algebra = seen.germ, seen.walk.algebra
    if germ is None or germ.scale or germ.order is not None:
        return None
    slope = algebra.derivative(germ)
    return _side(seen.walk, slope if seen.walk.side > 0 else algebra.neg(slope), first)


_SWINGS = "it oscillates without end close to the point"


def _infinite(sign: int) -> str:
    return "oo" if sign > 0 else "-oo"


def alike(left: Side, right: Side) -> bool:
    """One power series serves both sides: what it says of one holds on the other."""
    return left.walk.choices == right.walk.choices
