"""The program in SymPy: exact formulas, built node by node from a tape. No text ever reaches SymPy's reader.

Variables are real symbols, numbers are exact. Formulas are for reading, so they are not simplified beyond what
SymPy does on construction, and work on one is bounded: an operation count decides, so that the same request
gives the same formulas everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import islice
from typing import Any

from jacli.readings.tape import Op, Tape
from jacli.recursion import deep

#: Longest formula that is printed, in characters, and that is built, in operations (shared parts counted as often
#: as they would be printed).
MOST_CHARACTERS = 20_000
_MOST_OPERATIONS = 20_000

#: Longest derivative that is asked for, in operations, by an estimate made before.
_MOST_DERIVED = 6_000

#: SymPy compares every pair of a maximum's arguments, at a cost that explodes.
_MOST_EXTREMES = 6

#: Subexpressions whose text is remembered.
_MOST_REMEMBERED = 50_000

#: Decimal digits of a bit.
_DIGITS_A_BIT = 0.301

#: Longest argument, in parts, whose sign SymPy is asked for.
_MOST_ASKED = 100

#: SymPy recurses over expressions, several frames a level.
_FRAMES = 50_000

#: Longest exact number that may appear in a formula, in bits.
_MOST_BITS = 4096

#: Largest argument for which SymPy may turn a special function of a number into an exact number.
_MOST_SPECIAL = 1000


class NoFormula(Exception):
    """A formula would be too long, or is of a kind that SymPy should not be asked for."""


def sympy() -> Any:
    """The SymPy module, imported when the first formula is needed."""
    import sympy as module

    return module


class Expressions:
    """SymPy expressions of a tape's nodes, each built once, when it is asked for.

    Args:
        tape: the program.
        roots: the nodes that will be asked for (a sum among them is not flattened into another).
        bound: variables to replace by (constant) nodes; the others become real symbols.
    """

    def __init__(self, tape: Tape, roots: Sequence[int], bound: Mapping[int, int] | None = None) -> None:
        self.tape = tape
        self.bound = bound or {}
        self.uses = _uses(tape, roots)
        self.values: dict[int, Any] = {}
        self.sizes: dict[int, int] = {}

    def of(self, root: int) -> Any:
        """The expression of a node, or None where there is no formula."""
        with deep(_FRAMES):
            for node in _order(self.tape, [root], self.bound):
                if node not in self.values:
                    self._build(node)
            return _closed(sympy(), self.values[root])

    def _build(self, node: int) -> None:
        op = self.tape.ops[node]
        if node in self.bound:
            self.values[node], self.sizes[node] = self.values[self.bound[node]], self.sizes[self.bound[node]]
            return
        self.sizes[node] = 1 + sum(self.sizes[arg] for arg in op.args)
        self.values[node] = None
        if self.sizes[node] > _MOST_OPERATIONS:
            return
        try:
            self.values[node] = _expression(sympy(), node, op, self.values, self.uses)
        except (NoFormula, RecursionError, OverflowError, TypeError, ValueError):
            return


def constant(tape: Tape, node: int) -> Any:
    """The expression of a constant node, or None."""
    return Expressions(tape, [node], tape.bound).of(node)


def _order(tape: Tape, roots: Sequence[int], bound: Mapping[int, int]) -> list[int]:
    """Every needed node after its arguments; a bound variable after its value."""
    if not bound:
        return tape.needed(roots)
    order: list[int] = []
    seen: set[int] = set()
    stack = [(root, False) for root in roots]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((arg, False) for arg in ((bound[node],) if node in bound else tape.ops[node].args))
    return order


def _uses(tape: Tape, roots: Sequence[int]) -> dict[int, int]:
    """How often each node is an argument: a sum used once is flattened into the sum that uses it."""
    uses: dict[int, int] = dict.fromkeys(roots, 2)
    for node in tape.needed(roots):
        for arg in tape.ops[node].args:
            uses[arg] = uses.get(arg, 0) + 1
    return uses


def _expression(s: Any, node: int, op: Op, values: Mapping[int, Any], uses: Mapping[int, int]) -> Any:
    if op.op == "variable":
        return s.Symbol(op.value, real=True)
    if op.op == "number":
        value = Fraction(op.value)
        return s.Rational(value.numerator, value.denominator)
    if op.op in ("add", "sub") and uses.get(node, 0) == 1:
        return _Sum(tuple(_terms(op, values)))
    if op.op in ("add", "sub"):
        return s.Add(*_terms(op, values))
    args = [_closed(s, values[arg]) for arg in op.args]
    if any(arg is None for arg in args):
        raise NoFormula
    return _FORMS[op.op](s, *args, *(op.value or ()))


class _Sum(tuple[Any, ...]):
    """Terms of a sum that is still growing: SymPy adds n terms at once in linear time, one by one in quadratic."""


def _terms(op: Op, values: Mapping[int, Any]) -> list[Any]:
    left, right = (values[arg] for arg in op.args)
    if left is None or right is None:
        raise NoFormula
    first = list(left) if isinstance(left, _Sum) else [left]
    second = list(right) if isinstance(right, _Sum) else [right]
    return first + (second if op.op == "add" else [-term for term in second])


def _closed(s: Any, value: Any) -> Any:
    return s.Add(*value) if isinstance(value, _Sum) else value


def _power(s: Any, base: Any, exponent: Any) -> Any:
    """``base**exponent``, unless that is a number too long to write."""
    if base.is_Rational and exponent.is_Rational and base not in (-1, 0, 1):
        bits = max(abs(base.p).bit_length(), base.q.bit_length()) * abs(exponent)
        if bits > _MOST_BITS or exponent.q > _MOST_BITS:
            raise NoFormula
    return s.Pow(base, exponent)


def _divide(_: Any, a: Any, b: Any) -> Any:
    if b.is_zero:
        raise NoFormula  # undefined as typed; SymPy would write zoo
    return a / b


def _special(name: str) -> Callable[..., Any]:
    """A function whose value at a number SymPy may expand into something huge."""

    def form(s: Any, x: Any, *rest: Any) -> Any:
        huge = x.is_number and (not x.is_Rational or abs(x) > _MOST_SPECIAL)
        return getattr(s, name)(*rest, x, evaluate=not huge)

    return form


def _select(s: Any, *parts: Any) -> Any:
    pairs = [(value, condition) for condition, value in zip(parts[0::2], parts[1::2], strict=False)]
    if len(parts) % 2:
        pairs.append((parts[-1], True))
    return s.Piecewise(*pairs, evaluate=False)


def _numeric_step(name: str) -> Callable[..., Any]:
    """floor, ceiling: of a number SymPy evaluates as many digits as it has before the point."""

    def form(s: Any, x: Any) -> Any:
        if x.is_number and not x.is_Rational:
            raise NoFormula
        return getattr(s, name)(x)

    return form


def _extreme(name: str) -> Callable[..., Any]:
    def form(s: Any, x: Any, y: Any) -> Any:
        if sum(len(part.args) if part.func is getattr(s, name) else 1 for part in (x, y)) > _MOST_EXTREMES:
            raise NoFormula
        return getattr(s, name)(x, y)

    return form


@cache
def _real_functions() -> tuple[Any, Any]:
    """Abs and sign of what is real because the program says so.

    SymPy's own differentiate by real and imaginary parts wherever it cannot prove an argument real, and it cannot
    for ``x**y``. These know the chain rule alone; the derivative of a sign is 0 away from its jump.
    """
    from sympy import Function, S

    class Abs(Function):  # type: ignore[misc]
        is_extended_real = True
        is_extended_nonnegative = True

        @classmethod
        def eval(cls, x: Any) -> Any:
            if not _is_short(x):
                return None
            if x.is_nonnegative:
                return x
            return -x if x.is_nonpositive else None

        def fdiff(self, argindex: int = 1) -> Any:  # noqa: ARG002
            return sign(self.args[0])

    class sign(Function):  # type: ignore[misc]  # noqa: N801
        is_extended_real = True

        @classmethod
        def eval(cls, x: Any) -> Any:
            if not _is_short(x):
                return None
            if x.is_zero:
                return S.Zero
            return S.One if x.is_positive else S.NegativeOne if x.is_negative else None

        def fdiff(self, argindex: int = 1) -> Any:  # noqa: ARG002
            return S.Zero

    return Abs, sign


def _is_short(expression: Any) -> bool:
    """Whether SymPy is asked for the sign of an expression, which it searches for through all parts of all parts."""
    return next(islice(sympy().preorder_traversal(expression), _MOST_ASKED, None), None) is None


def _plain(name: str) -> Callable[..., Any]:
    return lambda s, *args: getattr(s, name)(*args)


_NAMED_ALIKE = "exp log sqrt sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc".split()

_FORMS: dict[str, Callable[..., Any]] = {
    **{name: _plain(name) for name in _NAMED_ALIKE},
    "pi": lambda s: s.pi,
    "E": lambda s: s.E,
    "true": lambda s: s.true,
    "false": lambda s: s.false,
    "neg": lambda s, x: -x,
    "mul": lambda s, x, y: x * y,
    "div": _divide,
    "pow": _power,
    "abs": lambda s, x: _real_functions()[0](x),
    "sign": lambda s, x: _real_functions()[1](x),
    "ceil": _numeric_step("ceiling"),
    "floor": _numeric_step("floor"),
    "max": _extreme("Max"),
    "min": _extreme("Min"),
    "lt": _plain("StrictLessThan"),
    "le": _plain("LessThan"),
    "gt": _plain("StrictGreaterThan"),
    "ge": _plain("GreaterThan"),
    "eq": _plain("Equality"),
    "ne": _plain("Unequality"),
    "and": _plain("And"),
    "or": _plain("Or"),
    "not": _plain("Not"),
    "select": _select,
    "gamma": _special("gamma"),
    "lgamma": _special("loggamma"),
    "digamma": _special("digamma"),
    "polygamma": _special("polygamma"),
    "besseli": _special("besseli"),
}


def gradient(expression: Any) -> dict[str, Any]:
    """``∂expression/∂name`` for every symbol in it; None where SymPy has no closed form.

    A sum is differentiated term by term, each term only by its own symbols, so that long sums of short terms cost
    no more than they are long. floor and ceiling are constants between their jumps.
    """
    s = sympy()
    with deep(_FRAMES):
        steps = {step: s.Dummy(real=True) for step in expression.atoms(s.floor, s.ceiling)}
        back = {dummy: step for step, dummy in steps.items()}
        terms = s.Add.make_args(expression.xreplace(steps))
        parts: dict[Any, list[Any]] = {}
        slopes = _Slopes(s)
        for term in terms:
            short = derived_size(term) <= _MOST_DERIVED
            for symbol in term.free_symbols - back.keys():
                parts.setdefault(symbol, []).append(_derivative(s, slopes, term, symbol) if short else None)
        return {symbol.name: _total(s, found, back) for symbol, found in parts.items()}


def _total(s: Any, parts: list[Any], back: Mapping[Any, Any]) -> Any:
    if any(part is None for part in parts):
        return None
    total = s.Add(*parts)
    return total.xreplace(back) if back else total


class _Slopes:
    """Derivatives as SymPy's ``diff`` writes them; sums and products are not gone through where a symbol is absent."""

    def __init__(self, s: Any) -> None:
        self._s = s
        self._symbols: dict[Any, frozenset[Any]] = {}

    def of(self, expression: Any, symbol: Any) -> Any:
        """The derivative by a symbol."""
        s = self._s
        if expression == symbol:
            return s.S.One
        if symbol not in self._free(expression):
            return s.S.Zero
        args = expression.args
        if expression.is_Add:
            return s.Add(*(self.of(arg, symbol) for arg in args if symbol in self._free(arg)))
        if expression.is_Mul:
            moving = [i for i, arg in enumerate(args) if symbol in self._free(arg)]
            return s.Add(*(s.Mul(*args[:i], self.of(args[i], symbol), *args[i + 1 :]) for i in moving))
        if expression.is_Pow and expression.exp.is_Number:
            return expression * (self.of(expression.base, symbol) * expression.exp / expression.base)
        if isinstance(expression, s.exp):
            return expression * self.of(args[0], symbol)
        return expression.diff(symbol)

    def _free(self, expression: Any) -> frozenset[Any]:
        """The symbols of an expression, remembered."""
        found = self._symbols.get(expression)
        if found is None:
            if expression.is_Add or expression.is_Mul or expression.is_Pow:
                found = frozenset().union(*map(self._free, expression.args))
            else:
                found = frozenset(expression.free_symbols)
            self._symbols[expression] = found
        return found


def _derivative(s: Any, slopes: _Slopes, term: Any, symbol: Any) -> Any:
    """The derivative away from jumps, where that of a sign is zero; None for what is no formula."""
    try:
        result = slopes.of(term, symbol)
        if not result.has(s.DiracDelta, s.Derivative, s.Subs, s.nan, s.zoo):
            return result
        result = result.replace(s.DiracDelta, lambda *args: s.S.Zero)
        return None if result.has(s.Derivative, s.Subs, s.nan, s.zoo) else result
    except (RecursionError, NotImplementedError, AttributeError, TypeError, ValueError):
        return None


def derived_size(expression: Any) -> int:
    """About how many operations a derivative has: each factor's own, times the rest of its product (chain rule)."""
    sizes: list[tuple[int, int]] = []  # of the expressions seen: size, size of the derivative
    s = sympy()
    for part in s.postorder_traversal(expression):
        count = len(part.args)
        inner = sizes[len(sizes) - count :] if count else []
        del sizes[len(sizes) - count :]
        size = 1 + sum(a for a, _ in inner)
        derived = sum(d for _, d in inner)
        if count and not part.is_Add:
            derived += size * sum(1 for _, d in inner if d)
        sizes.append((size, derived if count else int(part.is_Symbol)))
    return sizes[-1][1]


@cache
def _writer() -> Any:
    """SymPy's printer, remembering subexpressions: the entries of one Jacobian repeat each other."""
    from sympy.printing.str import StrPrinter

    class Writer(StrPrinter):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__({"sympy_integers": False})
            self.known: dict[Any, str] = {}
            self.least: dict[Any, int] = {}

        def least_length(self, expr: Any) -> int:
            """Characters that an expression takes at least: those of its symbols and of its longer numbers."""
            found = self.least.get(expr)
            if found is None:
                if len(self.least) > _MOST_REMEMBERED:
                    self.least.clear()
                numbers = (expr.p, expr.q) if expr.is_Rational else ()
                own = sum(int(int(number).bit_length() * _DIGITS_A_BIT) for number in numbers) if numbers else 1
                found = sum(map(self.least_length, expr.args)) if expr.args else own
                self.least[expr] = found
            return found

        def _print(self, expr: Any, **kwargs: Any) -> str:
            found = self.known.get(expr)
            if found is None:
                if len(self.known) > _MOST_REMEMBERED:
                    self.known.clear()
                found = self.known[expr] = super()._print(expr, **kwargs)
            return found

    return Writer()


def text(expression: Any) -> str | None:
    """A formula in SymPy's words, or None when it is too long to read."""
    if expression is None:
        return None
    with deep(_FRAMES):
        try:
            if _writer().least_length(expression) > MOST_CHARACTERS:
                return None
            printed = _writer().doprint(expression)
        except (RecursionError, ValueError):  # ValueError: an integer too long to print
            return None
    return printed if len(printed) <= MOST_CHARACTERS else None
