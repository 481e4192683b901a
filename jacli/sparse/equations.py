"""Families from a text of many equations: those of equal shape are parsed once and gathered."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from jacli.errors import JacliError, Span
from jacli.language.parser import CONDITION_WORDS, CONSTANTS, REFUSED_WORDS, exact, read
from jacli.language.shapes import infer
from jacli.language.syntax import Node, Program
from jacli.language.tokens import tokenize
from jacli.sparse.family import Family, Ints, Numbers, rebuilt
from jacli.sparse.scan import WORD, Scan

#: A word that is called, or names an option of a call, is part of the shape; so is a number that multiplies a name
#: without a sign, for ``2x`` is a product and ``0x1`` is not.
_CALLED = re.compile(rf"{WORD}(?=\s*\(|\s*=(?!=)|{WORD})")


#: Most variables in the definitions of a text whose equations are gathered by shape.
MOST_DEFINING = 100

#: Names that are not variables unless the point binds them.
_SPECIAL = frozenset(CONSTANTS) | CONDITION_WORDS | REFUSED_WORDS | {"True", "False", "true", "false"}


class NotScalar(Exception):
    """An equation is of arrays: it has no shape that others could share."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """Equations of one shape, parsed once.

    Attributes:
        formula: the first of them, its variables and the numbers that vary made slots.
        equations: which equations they are.
        entries: for each slot that stands for a variable, the word in each equation.
        numbers: the same for numbers.
    """

    formula: Program
    equations: Ints
    entries: dict[str, Ints]
    numbers: dict[str, Ints]


class First(NamedTuple):
    """The first equation of a shape: what it means, and which of its words are which of its nodes.

    ``free`` maps number nodes to the words that may differ from row to row, ``names`` its variables to their words.
    """

    program: Program
    free: dict[int, int]
    names: dict[str, int]


class Equations:
    """The shapes of a scanned text."""

    def __init__(self, scan: Scan, bound: Collection[str]) -> None:
        self.scan = scan
        self.bound = frozenset(bound)
        self._numeric = np.array([word[0] in "0123456789." for word in scan.words], bool)
        defined = {statement.name for statement in scan.definitions}
        special = (_SPECIAL - self.bound) | defined
        self._special = np.array([word in special for word in scan.words], bool)
        self._prefix = "".join(scan.text[start:stop] + ";" for _, start, stop in scan.definitions)
        self._check_numbers()

    @cached_property
    def shapes(self) -> list[Shape]:
        """Every shape, in the order of its first equation.

        Raises:
            JacliError: at the first equation that cannot be read.
            NotScalar: an equation is of arrays.
        """
        groups = sorted(self._groups(), key=lambda group: int(group[0][0]))
        return [shape for equations, words in groups for shape in self._shapes(equations, words)]

    @cached_property
    def variables(self) -> Ints:
        """The words that stand for a variable or an entry of one somewhere."""
        used = np.zeros(len(self.scan.words), bool)
        for shape in self.shapes:
            for ids in shape.entries.values():
                used[ids] = True
        return np.flatnonzero(used)

    def program(self, equation: int) -> Program:
        """One equation read on its own by the ordinary parser, behind the definitions; entries ``x[12]`` are names.

        Raises:
            JacliError: located in the whole text.
        """
        source = self._prefix + self.scan.source(equation)
        try:
            return read(source, self.bound)
        except JacliError as error:
            raise self.moved(error, equation) from None

    # ---- grouping

    def _groups(self) -> Iterator[tuple[Ints, Ints]]:
        """Equations that differ in variables and numbers only, and their words, a row an equation."""
        scan = self.scan
        order = np.argsort(scan.outline, kind="stable")
        borders = np.flatnonzero(np.diff(scan.outline[order])) + 1
        for equations in np.split(order, borders):
            outline = scan.outlines[scan.outline[equations[0]]]
            words = scan.ids[scan.first[equations][:, None] + np.arange(outline.count(WORD))]
            fixed = self._fixed(outline, words)
            for part in alike(np.where(fixed, words, np.where(self._numeric[words], -1, -2))):
                names = np.where(fixed | self._numeric[words], -1, words)[part]
                also = np.broadcast_to(self._defining, (len(part), len(self._defining)))
                for same in alike(_pattern(np.hstack([names, also]))):
                    chosen = part[same]
                    yield equations[chosen], words[chosen]

    @cached_property
    def _defining(self) -> Ints:
        """The words of the variables that definitions are made of: an equation may name them as well."""
        if not self.scan.definitions:
            return np.zeros(0, np.int64)
        try:
            nodes = read(self._prefix + "0", self.bound).nodes
        except JacliError:
            return np.zeros(0, np.int64)  # whatever is wrong, the first equation will say it
        names = {entry_name(nodes, index) for index in range(len(nodes))}
        if len(names) > MOST_DEFINING:
            raise NotScalar
        return np.array([k for k, word in enumerate(self.scan.words) if _normal(word) in names], np.int64)

    def _fixed(self, outline: str, words: Ints) -> Any:
        """The words that are part of the shape, whatever the parser will say."""
        called = np.zeros(words.shape[1], bool)
        for match in _CALLED.finditer(outline):
            called[outline.count(WORD, 0, match.start())] = True
        return called | self._special[words]

    def _shapes(self, equations: Ints, words: Ints) -> Iterator[Shape]:
        """Numbers that are exponents, degrees or indices are part of the shape as well: the parser knows them."""
        first = self._first(int(equations[0]), words[:1])
        varies = self._numeric[words[0]] & (words != words[:1]).any(axis=0)
        bound = [k for k in np.flatnonzero(varies).tolist() if k not in first.free.values()]
        for part in alike(words[:, bound]):
            if part[0] != 0:
                first = self._first(int(equations[part[0]]), words[part[:1]])
            yield self._shape(first, equations[part], words[part])

    def _first(self, equation: int, words: Ints) -> First:
        """An equation that stands for all of its shape; ``words`` are its own, as one row."""
        program, places = self.program(equation), self._places(equation)
        fixed = self._fixed(self.scan.outlines[self.scan.outline[equation]], words)[0] | self._numeric[words[0]]
        names: dict[str, int] = {}
        for k in np.flatnonzero(~fixed).tolist():
            names.setdefault(_normal(self.scan.words[words[0, k]]), k)
        return First(program, _free_numbers(program, places), names)

    def _places(self, equation: int) -> dict[int, int]:
        """Where an equation's words begin in its program's text, and which word of the equation it is."""
        scan, start = self.scan, len(self._prefix)
        first = scan.first[equation]
        outline = scan.outlines[scan.outline[equation]]
        pieces = outline.split(WORD)
        places = {}
        for k, piece in enumerate(pieces[:-1]):
            start += len(piece)
            places[start] = k
            start += len(scan.words[scan.ids[first + k].item()])
        return places

    def _shape(self, first: First, equations: Ints, words: Ints) -> Shape:
        nodes, free = first.program.nodes, first.free
        numbers = {f"#{k}": words[:, k] for k in free.values() if (words[:, k] != words[0, k]).any()}
        entries: dict[str, Ints] = {}

        def leaf(index: int) -> str | None:
            if index in free and f"#{free[index]}" in numbers:
                return f"#{free[index]}"
            name = entry_name(nodes, index)
            if name is not None and name not in entries:
                place = first.names.get(name)  # none where only a definition has it
                entries[name] = np.full(len(words), self._word(name)) if place is None else words[:, place]
            return name

        formula = rebuilt(nodes, first.program.outputs[0], leaf, first.program.text)
        _check_number(formula)
        return Shape(formula, equations, entries, numbers)

    def _word(self, name: str) -> int:
        found = next((k for k, word in enumerate(self.scan.words) if _normal(word) == name), None)
        if found is None:  # an entry that is not written as one word, as in (x)[0]
            raise NotScalar
        return found

    # ---- errors

    def _check_numbers(self) -> None:
        """The parser's limits on numbers, for every distinct one."""
        for k in np.flatnonzero(self._numeric):
            word = self.scan.words[int(k)]
            if len(word) > 15:
                try:
                    tokenize(word)
                except JacliError as error:
                    place = int(np.flatnonzero(self.scan.ids == k)[0])
                    self.program(int(np.searchsorted(self.scan.first, place, side="right")) - 1)
                    raise error.located_in(word) from None

    def moved(self, error: JacliError, equation: int) -> JacliError:
        """An error in one equation, counted in the whole text."""
        span, inside = error.span, len(self._prefix)
        if span is not None and span.start >= inside:
            shift = int(self.scan.starts[equation]) - inside
            span = Span(span.start + shift, span.stop + shift)
        elif span is not None:
            for _, start, stop in self.scan.definitions:
                if span.start < stop - start + 1:
                    span = Span(start + span.start, start + span.stop)
                    break
                span = Span(span.start - (stop - start + 1), span.stop - (stop - start + 1))
        return JacliError(error.message, span, error.hint, text=self.scan.text, kind=error.kind)


def families(equations: Equations, column: Ints) -> list[Family]:
    """The families of a text.

    Args:
        equations: the text.
        column: for each word, the flat entry of the point that it stands for (shape (words,)).
    """
    words = equations.scan.words

    @cache
    def value(word: int) -> int | Fraction:
        return exact(words[word])

    def numbers(ids: Ints) -> Numbers:
        return Numbers(np.array([float(value(k)) for k in ids.tolist()]), lambda row: value(int(ids[row])))

    return [
        Family(
            shape.formula,
            shape.equations,
            {slot: column[ids] for slot, ids in shape.entries.items()},
            {slot: numbers(ids) for slot, ids in shape.numbers.items()},
            _source(equations, shape),
        )
        for shape in equations.shapes
    ]


def _source(equations: Equations, shape: Shape) -> Any:
    def source(row: int) -> Program:
        program = equations.program(int(shape.equations[row]))
        return rebuilt(program.nodes, program.outputs[0], lambda node: entry_name(program.nodes, node), program.text)

    return source


def entry_name(nodes: Sequence[Node], index: int) -> str | None:
    """``x`` or ``x[1,2]`` where a node is just that, else None."""
    node = nodes[index]
    if node.op == "variable":
        return str(node.value)
    if node.op == "index" and nodes[node.args[0]].op == "variable":
        if all(type(item) is int and item >= 0 for item in node.value):
            return f"{nodes[node.args[0]].value}[{','.join(map(str, node.value))}]"
        raise NotScalar
    return None


def _check_number(formula: Program) -> None:
    """Raises NotScalar where a formula of numbers makes an array, as in ``[x, y]``, or needs one."""
    try:
        shapes = infer(formula, dict.fromkeys(formula.variables, ()))
    except JacliError:
        raise NotScalar from None
    if shapes[formula.outputs[0]]:
        raise NotScalar


def _normal(word: str) -> str:
    """``a[1, 2]`` as ``a[1,2]``, ``x[03]`` as ``x[3]``."""
    name, bracket, inside = word.partition("[")
    return word if not bracket else f"{name}[{','.join(str(int(k)) for k in inside[:-1].split(','))}]"


def _free_numbers(program: Program, places: dict[int, int]) -> dict[int, int]:
    """The number nodes whose value may change without changing what the program is, each to its word.

    Not among them: what stands in an exponent, for ``x**2`` and ``x**3`` are differentiated in their own ways.
    """
    free: dict[int, int] = {}
    stack = [(program.outputs[0], False)]
    seen: set[tuple[int, bool]] = set()
    exponents: set[int] = set()
    while stack:
        index, exponent = stack.pop()
        if (index, exponent) in seen:
            continue
        seen.add((index, exponent))
        node = program.nodes[index]
        if node.op == "number" and node.span.start in places:
            (exponents.add(index) if exponent else free.setdefault(index, places[node.span.start]))
        power = node.op == "pow"
        stack.extend((arg, exponent or (power and position == 1)) for position, arg in enumerate(node.args))
    return {index: word for index, word in free.items() if index not in exponents}


def _pattern(words: Ints) -> Ints:
    """Which words of a row are equal: the place of each word's first occurrence. Shape as ``words``."""
    order = np.argsort(words, axis=1, kind="stable")
    ordered = np.take_along_axis(words, order, axis=1)
    places = np.arange(words.shape[1])[None, :].repeat(len(words), 0)
    places[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = 0
    heads = np.take_along_axis(order, np.maximum.accumulate(places, axis=1), axis=1)
    pattern = np.empty_like(order)
    np.put_along_axis(pattern, order, heads, axis=1)
    return pattern


def alike(keys: Ints) -> list[Ints]:
    """The places of equal rows, group by group, in the order of each group's first."""
    varying = keys[:, (keys != keys[:1]).any(axis=0)]
    if not varying.shape[1]:
        return [np.arange(len(keys))]
    labels = np.unique(varying, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(labels, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    return sorted(groups, key=lambda group: int(group[0]))
