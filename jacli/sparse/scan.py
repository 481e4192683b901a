"""A long text, cut into equations by one regular expression, without reading any of them.

Every name and number is a *word*; what lies between the words of an equation is its *outline*. Equations of equal
outline differ in words only, so one of them shows the ordinary parser what all of them are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from jacli.errors import JacliError, Span
from jacli.language.tokens import NOT_IN_NAMES

Ints = np.ndarray[Any, np.dtype[np.int64]]

#: Stands for a word in an outline. No text that can be read contains it.
WORD = "\x01"

#: Longest definitions (``name = …``) that are read again with every shape of equation, in characters.
MOST_DEFINED = 20_000

#: The words of ``language.tokens``, an entry ``x[12]`` or ``a[1, 2]`` being one.
_WORDS = re.compile(
    r"([^\W\d]\w*+(?:\[[0-9]++(?:,[ ]*+[0-9]++)*+\])?|(?:[0-9]+\.(?!T\b)[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?)"
)
_SEPARATORS = re.compile(r"([,;\n])")
_DEFINES = re.compile(rf"\s*{WORD}\s*=(?!=)")
_UNUSUAL = re.compile(f"[{NOT_IN_NAMES}₀₁₂₃₄₅₆₇₈₉]")


class Statement(NamedTuple):
    """A ``name = expression`` of the text: what it defines, and where it stands."""

    name: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Scan:
    """The equations of a text.

    Attributes:
        text: as typed, comments blanked.
        words: the distinct words.
        ids: for each word of the text, in order, its place in ``words``.
        outlines: the distinct outlines.
        outline: for each equation, its outline's place in ``outlines``.
        first: for each equation, the place in ``ids`` of its first word.
        starts, stops: for each equation, its place in ``text``.
        definitions: the statements that give a name a value.
    """

    text: str
    words: Sequence[str]
    ids: Ints
    outlines: Sequence[str]
    outline: Ints
    first: Ints
    starts: Ints
    stops: Ints
    definitions: tuple[Statement, ...]

    def __len__(self) -> int:
        return len(self.first)

    def source(self, equation: int) -> str:
        """An equation as typed."""
        return self.text[self.starts[equation] : self.stops[equation]]


def scan(text: str) -> Scan | None:
    """Cut ``text`` into equations; None when only the ordinary parser can tell what it means.

    Raises:
        JacliError: where nothing stands between two commas.
    """
    text = re.sub(r"#[^\n]*", lambda comment: " " * len(comment.group()), text).replace("\\\n", "  ")
    if WORD in text or "{" in text or _UNUSUAL.search(text):
        return None
    split = _WORDS.split(text)
    words = split[1::2]
    index: defaultdict[str, int] = defaultdict(count().__next__)
    ids = np.fromiter(map(index.__getitem__, words), np.int64, len(words))
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    outline = WORD.join(split[0::2])
    if "." in outline:  # a transpose
        return None
    parts = _SEPARATORS.split(outline)
    pieces, separators = parts[0::2], [*parts[1::2], "\n"]
    if any(_depth(piece) for piece in set(pieces)):
        pieces, separators = _joined(pieces, separators)
    places = _Places(pieces, lengths)
    kept = _equations(text, pieces, separators, places)
    return _assemble(text, list(index), ids, places, kept) if kept is not None else None


def _depth(piece: str) -> int:
    """Brackets opened less brackets closed."""
    return piece.count("(") + piece.count("[") - piece.count(")") - piece.count("]")


def _joined(pieces: Sequence[str], separators: Sequence[str]) -> tuple[list[str], list[str]]:
    """Pieces whose brackets stay open belong together with what follows."""
    whole: list[str] = []
    after: list[str] = []
    open_piece, depth = "", 0
    for piece, separator in zip(pieces, separators, strict=True):
        depth += _depth(piece)
        if depth > 0:
            open_piece += piece + separator
        else:
            whole.append(open_piece + piece)
            after.append(separator)
            open_piece, depth = "", 0
    if open_piece:
        whole.append(open_piece[:-1])
        after.append("\n")
    return whole, after


class _Places:
    """Where each piece stands: its first word, its first and last character (blanks left out)."""

    def __init__(self, pieces: Sequence[str], lengths: Ints) -> None:
        index: defaultdict[str, int] = defaultdict(count().__next__)
        self.outline = np.fromiter(map(index.__getitem__, pieces), np.int64, len(pieces))
        self.outlines = list(index)

        def of_each(measure: Any) -> Ints:
            return np.array([measure(outline) for outline in self.outlines], np.int64)[self.outline]

        size, words = of_each(len), of_each(lambda outline: outline.count(WORD))
        self.first = np.cumsum(words) - words
        before = np.concatenate(([0], np.cumsum(lengths - 1)))  # characters that words have beyond their marks
        begin = np.cumsum(size + 1) - size - 1
        self.starts = begin + before[self.first] + of_each(lambda outline: len(outline) - len(outline.lstrip()))
        self.stops = begin + of_each(lambda outline: len(outline.rstrip())) + before[self.first + words]


def _equations(
    text: str, pieces: Sequence[str], separators: Sequence[str], places: _Places
) -> tuple[list[int], list[int]] | None:
    """The pieces that are equations, and those that are definitions; None for an order that the parser must judge."""
    kind = {piece: 0 if not piece.strip() else 2 if _DEFINES.match(piece) else 1 for piece in places.outlines}
    equations: list[int] = []
    definitions: list[int] = []
    before = "\n"
    for place, (piece, separator) in enumerate(zip(pieces, separators, strict=True)):
        what = kind[piece]
        if what == 1:
            equations.append(place)
        elif what == 2:
            if before == "," or separator == "," or equations:
                return None
            definitions.append(place)
        elif separator == "," or (before == "," and (separator == ";" or place == len(pieces) - 1)):
            at = int(places.starts[place])
            raise JacliError(
                "there is nothing between the commas", Span(at, at + 1), "remove a comma", text=text, kind="syntax"
            )
        elif before == ",":
            continue  # a line may end after a comma
        before = separator
    return equations, definitions


def _assemble(
    text: str, words: list[str], ids: Ints, places: _Places, kept: tuple[list[int], list[int]]
) -> Scan | None:
    equations = np.array(kept[0], np.int64)
    definitions = tuple(
        Statement(words[ids[places.first[place]]], int(places.starts[place]), int(places.stops[place]))
        for place in kept[1]
    )
    if not len(equations) or sum(stop - start for _, start, stop in definitions) > MOST_DEFINED:
        return None
    stripped: defaultdict[str, int] = defaultdict(count().__next__)
    outline = np.array([stripped[outline.strip()] for outline in places.outlines], np.int64)
    return Scan(
        text, words, ids, list(stripped), outline[places.outline[equations]],
        places.first[equations], places.starts[equations], places.stops[equations], definitions,
    )  # fmt: skip
