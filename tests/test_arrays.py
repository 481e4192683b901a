"""Array programs against the same programs written out entry by entry, in torch and in SymPy.

The writing out is done here, by index arithmetic alone, so that it shares nothing with jacli's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import jacli
from jacli.autograd import Floats
from jacli.calculus import Exact
from jacli.language.parser import read
from jacli.problem import Problem, prepare
from jacli.readings import symbols
from jacli.result import Result

Shape = tuple[int, ...]

#: Non-square shapes, so that a transpose is caught; ones, so that broadcasting is.
VARIABLES: dict[str, Shape] = {
    "s": (), "v": (2,), "w": (3,), "m": (2, 3), "n": (3, 2), "q": (2, 2), "k": (2, 1), "t": (2, 1, 3), "e": (1,),
}  # fmt: skip


@dataclass(frozen=True)
class Array:
    """An expression of arrays, and the names of its entries in the program of single numbers."""

    text: str
    shape: Shape
    entries: tuple[str, ...]

    def at(self, *index: int) -> str:
        place = 0
        for i, size in zip(index, self.shape, strict=True):
            place = place * size + i
        return self.entries[place]


@dataclass
class Scalars:
    """Statements about single numbers, one operation each."""

    statements: list[str] = field(default_factory=list)

    def name(self, expression: str) -> str:
        self.statements.append(f"u{len(self.statements)} = {expression}")
        return f"u{len(self.statements) - 1}"

    def array(self, text: str, shape: Shape, entry: Callable[..., str]) -> Array:
        """Each entry by a formula of its index."""
        return Array(text, shape, tuple(self.name(entry(*index)) for index in indices(shape)))


def indices(shape: Shape) -> list[tuple[int, ...]]:
    return list(product(*map(range, shape)))


def leaf(name: str) -> Array:
    shape = VARIABLES[name]
    return Array(name, shape, tuple("_".join([name, *map(str, index)]) for index in indices(shape)))


# ---------------------------------------------------------------- operations, each written out by its definition


def elementwise(u: Scalars, form: str, *arrays: Array) -> Array:
    """``form`` with {0}, {1} for the arguments, which are broadcast."""
    rank = max(len(a.shape) for a in arrays)
    padded = [(1,) * (rank - len(a.shape)) + a.shape for a in arrays]
    shape = tuple(max(sizes) for sizes in zip(*padded, strict=True))

    def entry(*index: int) -> str:
        places = [
            a.at(*(i if size > 1 else 0 for i, size in zip(index[rank - len(a.shape) :], a.shape, strict=True)))
            for a in arrays
        ]
        return form.format(*places)

    return u.array(form.format(*(f"({a.text})" for a in arrays)), shape, entry)


def matmul(u: Scalars, a: Array, b: Array) -> Array:
    rows, columns = a.shape[:-1], b.shape[1:]

    def entry(*index: int) -> str:
        row, column = index[: len(rows)], index[len(rows) :]
        return "+".join(f"{a.at(*row, j)}*{b.at(j, *column)}" for j in range(a.shape[-1]))

    return u.array(f"({a.text}) @ ({b.text})", rows + columns, entry)


def transposed(u: Scalars, a: Array) -> Array:
    return u.array(f"({a.text}).T", a.shape[::-1], lambda *index: a.at(*index[::-1]))


def picked(u: Scalars, a: Array, items: Sequence[int | slice]) -> Array:
    kept = [range(size)[item] for size, item in zip(a.shape, items, strict=False) if isinstance(item, slice)]
    rest = a.shape[len(items) :]

    def entry(*index: int) -> str:
        walk = iter(index)
        ranges = iter(kept)
        head = [
            next(ranges)[next(walk)] if isinstance(item, slice) else item % size
            for size, item in zip(a.shape, items, strict=False)
        ]
        return a.at(*head, *walk)

    return u.array(f"({a.text})[{', '.join(map(typed, items))}]", (*map(len, kept), *rest), entry)


def typed(item: int | slice) -> str:
    if isinstance(item, int):
        return str(item)
    parts = ["" if part is None else str(part) for part in (item.start, item.stop, item.step)]
    return ":".join(parts if item.step is not None else parts[:2])


def reduced(u: Scalars, name: str, a: Array, axis: int | None) -> Array:
    """sum, mean, prod, norm, logsumexp over everything or along one axis."""
    place = None if axis is None else axis % len(a.shape)
    shape = () if place is None else a.shape[:place] + a.shape[place + 1 :]

    def entry(*index: int) -> str:
        if place is None:
            items = list(a.entries)
        else:
            items = [a.at(*index[:place], i, *index[place:]) for i in range(a.shape[place])]
        return {
            "sum": "+".join(items),
            "mean": f"({'+'.join(items)})/{len(items)}",
            "prod": "*".join(items),
            "norm": f"sqrt({'+'.join(f'{x}**2' for x in items)})",
            "logsumexp": f"log({'+'.join(f'exp({x})' for x in items)})",
        }[name]

    return u.array(f"{name}({a.text}{'' if axis is None else f', axis={axis}'})", shape, entry)


def cumulated(u: Scalars, a: Array, axis: int) -> Array:
    place = axis % len(a.shape)

    def entry(*index: int) -> str:
        return "+".join(a.at(*index[:place], i, *index[place + 1 :]) for i in range(index[place] + 1))

    return u.array(f"cumsum({a.text}, axis={axis})", a.shape, entry)


def softmax(u: Scalars, a: Array, axis: int | None) -> Array:
    place = None if axis is None else axis % len(a.shape)

    def entry(*index: int) -> str:
        if place is None:
            items = list(a.entries)
        else:
            items = [a.at(*index[:place], i, *index[place + 1 :]) for i in range(a.shape[place])]
        return f"exp({a.at(*index)})/({'+'.join(f'exp({x})' for x in items)})"

    return u.array(f"softmax({a.text}{'' if axis is None else f', axis={axis}'})", a.shape, entry)


def variance(u: Scalars, a: Array) -> Array:
    count = len(a.entries)
    mean = u.name(f"({'+'.join(a.entries)})/{count}")
    return u.array(f"var({a.text})", (), lambda: f"({'+'.join(f'({x}-{mean})**2' for x in a.entries)})/{count - 1}")


def reshaped(u: Scalars, a: Array, shape: Shape) -> Array:
    return Array(f"reshape({a.text}, {', '.join(map(str, shape))})", shape, a.entries)


def stacked(u: Scalars, form: str, arrays: Sequence[Array]) -> Array:
    texts = ", ".join(a.text for a in arrays)
    return Array(form.format(texts), (len(arrays), *arrays[0].shape), tuple(x for a in arrays for x in a.entries))


def concatenated(u: Scalars, arrays: Sequence[Array]) -> Array:
    shape = (sum(a.shape[0] for a in arrays), *arrays[0].shape[1:])
    return Array(f"concat({', '.join(a.text for a in arrays)})", shape, tuple(x for a in arrays for x in a.entries))


def leibniz(a: Array, rows: Sequence[int], columns: Sequence[int]) -> str:
    """A minor's determinant as a sum over permutations."""
    terms = []
    for order in permutations(range(len(rows))):
        inversions = sum(order[i] > order[j] for i in range(len(order)) for j in range(i, len(order)))
        factors = "*".join(a.at(r, columns[c]) for r, c in zip(rows, order, strict=True)) or "1"
        terms.append(("-" if inversions % 2 else "+") + factors)
    return "".join(terms)


def determinant(u: Scalars, a: Array) -> Array:
    size = range(a.shape[0])
    return u.array(f"det({a.text})", (), lambda: leibniz(a, size, size))


def inverse(u: Scalars, a: Array) -> Array:
    size = range(a.shape[0])
    below = u.name(leibniz(a, size, size))

    def entry(i: int, j: int) -> str:
        minor = leibniz(a, [r for r in size if r != j], [c for c in size if c != i])
        return f"{'-' if (i + j) % 2 else ''}({minor})/{below}"

    return u.array(f"inv({a.text})", a.shape, entry)


def solved(u: Scalars, a: Array, b: Array) -> Array:
    result = matmul(u, inverse(u, a), b)
    return Array(f"solve({a.text}, {b.text})", result.shape, result.entries)


def products(u: Scalars, name: str, a: Array, b: Array) -> Array:
    text = f"{name}({a.text}, {b.text})"
    if name == "dot":
        return u.array(text, (), lambda: "+".join(f"{x}*{y}" for x, y in zip(a.entries, b.entries, strict=True)))
    if name == "outer":
        return u.array(text, (len(a.entries), len(b.entries)), lambda i, j: f"{a.entries[i]}*{b.entries[j]}")
    return u.array(
        text,
        (3,),
        lambda i: f"{a.at((i + 1) % 3)}*{b.at((i + 2) % 3)} - {a.at((i + 2) % 3)}*{b.at((i + 1) % 3)}",
    )


# ---------------------------------------------------------------- random programs

UNARY = ("sin({0})", "tanh({0})", "-{0}", "{0}**2", "{0}/3", "2*{0}", "sigmoid({0})", "exp({0}/4)")
BINARY = ("{0} + {1}", "{0} - {1}", "{0}*{1}", "{0}/(2 + {1}**2)", "atan2({0}, 3 + {1}**2)")


@st.composite
def programs(draw: st.DrawFn) -> tuple[Array, Scalars]:
    u = Scalars()
    array = leaf(draw(st.sampled_from(list(VARIABLES))))
    for _ in range(draw(st.integers(1, 3))):
        array = grown(draw, u, array)
    return array, u


def grown(draw: st.DrawFn, u: Scalars, a: Array) -> Array:
    """One more operation, among those that the shape allows."""
    rank, size = len(a.shape), len(a.entries)
    axis = st.sampled_from([None, *range(-rank, rank)])
    choices: list[Callable[[], Array]] = [
        lambda: elementwise(u, draw(st.sampled_from(UNARY)), a),
        lambda: elementwise(u, draw(st.sampled_from(BINARY)), *shuffled(draw, a, combining(draw, a))),
    ]
    if rank:
        choices += [
            lambda: transposed(u, a),
            lambda: picked(u, a, draw(items(a.shape))),
            lambda: reduced(u, draw(st.sampled_from(("sum", "mean", "prod", "norm", "logsumexp"))), a, draw(axis)),
            lambda: cumulated(u, a, draw(st.integers(-rank, rank - 1))),
            lambda: softmax(u, a, draw(axis)),
            lambda: reshaped(u, a, draw(st.sampled_from([a.shape[::-1], (size,), (1, size), (size, 1)]))),
            lambda: concatenated(u, [a, a]),
        ]
    choices.append(lambda: stacked(u, draw(st.sampled_from(("[{}]", "stack({})"))), [a, elementwise(u, "{0}*3", a)]))
    if size > 1:
        choices.append(lambda: variance(u, a))
    if rank in (1, 2) and a.shape[0] in (2, 3):
        others = [leaf(n) for n, shape in VARIABLES.items() if len(shape) in (1, 2) and shape[0] == a.shape[-1]]
        choices.append(lambda: matmul(u, a, draw(st.sampled_from(others))) if others else transposed(u, a))
    if rank == 1:
        choices.append(lambda: products(u, "outer", a, leaf("w")))
        choices.append(lambda: products(u, "dot", a, elementwise(u, "{0} - 1", a)))
    if a.shape == (3,):
        choices.append(lambda: products(u, "cross", *shuffled(draw, a, leaf("w"))))
    if rank == 2 and a.shape[0] == a.shape[1] < 4:
        choices.append(lambda: determinant(u, a))
        choices.append(lambda: inverse(u, shifted(u, a)))
        choices.append(lambda: solved(u, shifted(u, a), leaf({1: "e", 2: "v", 3: "w"}[a.shape[0]])))
    return draw(st.sampled_from(choices))() if size <= 12 else reduced(u, "sum", a, None)


def shifted(u: Scalars, a: Array) -> Array:
    """A square matrix with a large diagonal, far from singular."""
    size = a.shape[0]
    small = elementwise(u, "tanh({0})", a)
    return u.array(f"{small.text} + 4*eye({size})", a.shape, lambda i, j: f"{small.at(i, j)}{' + 4' if i == j else ''}")


def combining(draw: st.DrawFn, a: Array) -> Array:
    """A variable whose shape broadcasts with that of ``a``."""

    def fits(shape: Shape) -> bool:
        pairs = zip(reversed(shape), reversed(a.shape), strict=False)
        return all(x == y or 1 in (x, y) for x, y in pairs)

    return leaf(draw(st.sampled_from([name for name, shape in VARIABLES.items() if fits(shape)])))


def shuffled(draw: st.DrawFn, a: Array, b: Array) -> tuple[Array, Array]:
    return (a, b) if draw(st.booleans()) else (b, a)


@st.composite
def items(draw: st.DrawFn, shape: Shape) -> tuple[int | slice, ...]:
    """Indices from both ends, and slices that leave something."""
    count = draw(st.integers(1, len(shape)))
    ranges = [slice(None), slice(1, None), slice(None, -1), slice(None, None, 2), slice(-1, None)]
    return tuple(
        draw(st.sampled_from([*range(-size, size), *(r for r in ranges if range(size)[r])])) for size in shape[:count]
    )


# ---------------------------------------------------------------- the comparison


def point(used: Sequence[str]) -> dict[str, Any]:
    """Distinct numbers, none of them zero, the same for an array and for its entries."""
    values, seed = {}, 1
    for name in used:
        size = math.prod(VARIABLES[name])
        values[name] = [str(Fraction((seed + 7 * i) % 23 - 11, 8) + Fraction(1, 16)) for i in range(size)]
        seed += 5
    return values


def nested(values: Sequence[str], shape: Shape) -> Any:
    if not shape:
        return values[0]
    step = len(values) // shape[0]
    return [nested(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def both(array: Array, u: Scalars) -> tuple[Problem, Problem]:
    """The program of arrays and the program of single numbers, at the same point, columns in the same order."""
    used = [name for name in VARIABLES if name in read(array.text).variables]
    values = point(used)
    arrays = {name: nested(values[name], VARIABLES[name]) for name in used}
    entries = {entry: value for name in used for entry, value in zip(leaf(name).entries, values[name], strict=True)}
    text = "; ".join([*u.statements, ", ".join(array.entries)])
    return prepare(array.text, arrays), prepare(text, entries)


def assert_same(array: Array, u: Scalars) -> None:
    whole, single = both(array, u)
    assert whole.output_shapes == (array.shape,)
    torch_whole, torch_single, lowered = Floats.of(whole), Floats.of(single), Floats.by_entries(whole)
    assert torch_whole.values() == pytest.approx(torch_single.values(), rel=1e-10, abs=1e-12)
    assert lowered.values() == pytest.approx(torch_single.values(), rel=1e-10, abs=1e-12)
    for row, expected, unrolled in zip(torch_whole.rows(), torch_single.rows(), lowered.rows(), strict=True):
        assert row == pytest.approx(expected, rel=1e-9, abs=1e-11)
        assert unrolled == pytest.approx(expected, rel=1e-9, abs=1e-11)
    formulas(whole, torch_single.rows(), torch_single.values())


def formulas(problem: Problem, rows: Sequence[Sequence[float]], values: Sequence[float]) -> None:
    """SymPy's formulas of the array program, with the point put in, are the numbers of single numbers in torch."""
    exact = Exact(problem)
    s = symbols.sympy()
    numbers = {
        s.Symbol(entry, real=True): s.Float(value, 30)
        for variable in problem.variables
        for entry, value in zip(variable.entries, variable.doubles, strict=True)
    }
    for index, (row, value) in enumerate(zip(rows, values, strict=True)):
        expression = exact.expressions.of(exact.outputs[index])
        if expression is not None:
            assert float(s.sympify(expression).xreplace(numbers)) == pytest.approx(value, rel=1e-9, abs=1e-11)
        for name, slope in zip(problem.columns, row, strict=True):
            formula = exact.formula(index, name)
            if formula is not None:
                assert float(s.sympify(formula).xreplace(numbers)) == pytest.approx(slope, rel=1e-8, abs=1e-10)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_arrays_are_their_entries(program: tuple[Array, Scalars]) -> None:
    rows = Floats.of(both(*program)[1]).rows()
    assume(all(math.isfinite(slope) for row in rows for slope in row))  # a norm of zeros is a kink
    assert_same(*program)


#: Every operation once with every rank it takes, however the dice fall.
EACH: dict[str, Callable[[Scalars], Array]] = {
    **{
        f"{name} of {variable} along {axis}": lambda u, name=name, variable=variable, axis=axis: reduced(
            u, name, leaf(variable), axis
        )
        for name in ("sum", "mean", "prod", "norm", "logsumexp")
        for variable in ("v", "m", "t")
        for axis in (None, 0, -1, len(VARIABLES[variable]) - 1)
    },
    **{
        f"{name} @ {other}": lambda u, name=name, other=other: matmul(u, leaf(name), leaf(other))
        for name, other in [("m", "n"), ("n", "m"), ("m", "w"), ("v", "m"), ("w", "w"), ("q", "k"), ("k", "e")]
    },
    **{
        f"{name} + {other}": lambda u, name=name, other=other: elementwise(u, "{0}*{1}", leaf(name), leaf(other))
        for name, other in [("m", "k"), ("k", "w"), ("t", "m"), ("s", "t"), ("e", "k"), ("t", "w"), ("q", "v")]
    },
    **{
        f"{name}[{', '.join(map(typed, index))}]": lambda u, name=name, index=index: picked(u, leaf(name), index)
        for name, index in [
            ("m", (0,)), ("m", (-1, 2)), ("m", (slice(None), 1)), ("n", (slice(1, None), slice(None, 1))),
            ("t", (0, 0)), ("t", (slice(None), 0, slice(None, None, 2))), ("w", (slice(-2, None),)),
        ]
    },
    **{
        f"softmax of {name} along {axis}": lambda u, name=name, axis=axis: softmax(u, leaf(name), axis)
        for name in ("w", "n", "t")
        for axis in (None, 0, -1)
    },
    "transpose of m": lambda u: transposed(u, leaf("m")),
    "transpose of t": lambda u: transposed(u, leaf("t")),
    "cumsum of m along 0": lambda u: cumulated(u, leaf("m"), 0),
    "cumsum of t along -1": lambda u: cumulated(u, leaf("t"), -1),
    "var of m": lambda u: variance(u, leaf("m")),
    "det of q": lambda u: determinant(u, leaf("q")),
    "det of m@n": lambda u: determinant(u, matmul(u, leaf("n"), leaf("m"))),
    "inv of q": lambda u: inverse(u, shifted(u, leaf("q"))),
    "inv of n@m": lambda u: inverse(u, shifted(u, matmul(u, leaf("n"), leaf("m")))),
    "solve q, v": lambda u: solved(u, shifted(u, leaf("q")), leaf("v")),
    "solve n@m, n": lambda u: solved(u, shifted(u, matmul(u, leaf("n"), leaf("m"))), leaf("n")),
    "outer of v and w": lambda u: products(u, "outer", leaf("v"), leaf("w")),
    "dot of w and w": lambda u: products(u, "dot", leaf("w"), elementwise(u, "sin({0})", leaf("w"))),
    "cross of w": lambda u: products(u, "cross", leaf("w"), elementwise(u, "{0}**2", leaf("w"))),
    "stack of n": lambda u: stacked(u, "stack({})", [leaf("n"), elementwise(u, "{0}**2", leaf("n"))]),
    "an array of m": lambda u: stacked(u, "[{}]", [leaf("m"), elementwise(u, "{0}**2", leaf("m"))]),
    "concat of n and q": lambda u: concatenated(u, [leaf("n"), leaf("q")]),
    "reshape of m": lambda u: reshaped(u, leaf("m"), (3, 2)),
    "reshape of t": lambda u: reshaped(u, leaf("t"), (6,)),
}  # fmt: skip


@pytest.mark.parametrize("build", EACH.values(), ids=EACH)
def test_each_operation_is_its_entries(build: Callable[[Scalars], Array]) -> None:
    u = Scalars()
    array = build(u)
    if not u.statements:
        u.name("0")
    assert_same(array, u)


def test_a_transpose_instead_of_a_reshape_is_caught() -> None:
    u = Scalars()
    entries = transposed(u, leaf("m")).entries
    with pytest.raises(AssertionError):
        assert_same(Array("reshape(m, 3, 2)", (3, 2), entries), u)


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("softmax(zeros(4))*s", ["0.25"] * 4),
        ("mean(eye(2), 0)*s, norm(ones(4))*s, std(ones(2))*s", ["0.5", "0.5", "2", "0"]),
        ("inv(2*eye(2))*s, solve(eye(2), ones(2))*s", ["0.5", "0", "0", "0.5", "1", "1"]),
        ("det(eye(5))*s, var(concat(zeros(2), [s]))", ["1", str(Fraction(4, 3))]),
    ],
)
def test_functions_of_arrays_that_are_constant(text: str, exact: list[str]) -> None:
    result = jacli.jacobian(text, {"s": 2})
    assert isinstance(result, Result)
    found = [entry.exact for row in result.block("jacobian").rows for entry in row]
    assert [float(number or "nan") for number in found] == pytest.approx([float(Fraction(e)) for e in exact], rel=1e-18)
    assert result.verdict == "agree"
