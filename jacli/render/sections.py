"""What a report is made of: sections of text that know nothing of boxes, colours or Markdown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Facts:
    """Labelled lines: the point, the weights."""

    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table.

    Attributes:
        words: the columns (by index) that hold words or formulas; the others hold numbers.
        formula: the column that may be wrapped where space is short.
        verdict: the column whose cells begin with a status.
        summary: how many of the last rows sum up those above them.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: frozenset[int] = frozenset({0})
    formula: int | None = None
    verdict: int | None = None
    summary: int = 0


@dataclass(frozen=True, slots=True)
class Notes:
    """Footnotes, each with its mark, or with an empty mark."""

    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The last line."""

    status: str
    text: str


Section = Facts | Table | Notes | Verdict

#: What the tables of derivatives are called.
TITLES = {
    "jacobian": "Jacobian",
    "vjp": "VJP = weights · Jacobian",
    "jvp": "JVP = Jacobian · tangent",
    "grad": "Gradient",
    "hessian": "Hessian",
    "hvp": "HVP = Hessian · tangent",
    "backward": ".grad after the last call",
}
