"""What ``check`` found out: the witnesses of every entry, and the judgement of a derivative derived by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Witness:
    """What each witness says about one entry.

    Attributes:
        reverse: torch's reverse mode.
        forward: torch's forward mode, or None where it has none.
        sympy: SymPy's formula at the exact point to 30 significant digits, or exact; "nan" where it has no value
            there; None where there is no formula.
        proved: the proved value, as in ``Entry.exact``.
        radius: how far ``proved`` may be from the truth.
        difference: central differences of the floats.
        error: the estimated error of ``difference``.
        step: the step that they chose.
        blamed: the witnesses that are wrong: ``reverse``, ``forward``, ``sympy``, ``differences`` or ``proved``.
    """

    reverse: float
    forward: float | None = None
    sympy: str | None = None
    proved: str | None = None
    radius: str | None = None
    difference: float | None = None
    error: float | None = None
    step: float | None = None
    blamed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Claimed:
    """One entry of a claim.

    Attributes:
        text: as it was given.
        value: its value at the point as a decimal string, or None where it has none.
        right: whether it is the derivative; None when that is not decided.
        slip: what is wrong, and the mistake that this looks like; or how it was rounded.
        wrong_at: the first trial point where it is not the derivative, as typed in ``--at``.
    """

    text: str
    value: str | None
    right: bool | None
    slip: str | None = None
    wrong_at: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A derivative derived by hand, judged.

    Attributes:
        kind: ``jacobian``, ``grad``, ``hessian`` or ``vjp``.
        block: the key of the block it is about.
        rows: its entries.
        formulas: it has variables in it, and was tested at other points too.
        asked, made: how many such points were asked for and found.
        seed: what their choice started from.
    """

    kind: str
    block: str
    rows: tuple[tuple[Claimed, ...], ...]
    formulas: bool
    asked: int
    made: int
    seed: int

    @property
    def wrong(self) -> int:
        """How many entries are wrong."""
        return sum(entry.right is False for row in self.rows for entry in row)

    @property
    def verdict(self) -> str:
        """``right`` when every entry is, ``wrong`` when one is, else ``undecided``."""
        if self.wrong:
            return "wrong"
        return "right" if all(entry.right for row in self.rows for entry in row) else "undecided"

    def to_json(self) -> dict[str, Any]:
        """The document's ``claim``."""
        return {
            "kind": self.kind,
            "verdict": self.verdict,
            "claimed": _grid(self.rows, lambda entry: entry.text),
            "claimed_value": _grid(self.rows, lambda entry: entry.value),
            "right": _grid(self.rows, lambda entry: entry.right),
            "slip": _grid(self.rows, lambda entry: entry.slip),
            "trials": {
                "asked": self.asked if self.formulas else 0,
                "made": self.made,
                "seed": self.seed,
                "wrong_at": _grid(self.rows, lambda entry: entry.wrong_at),
            },
        }


@dataclass(frozen=True, slots=True)
class Findings:
    """What ``check`` adds to a result. ``witnesses`` has the shape of the Jacobian."""

    witnesses: tuple[tuple[Witness, ...], ...]
    claim: Claim | None = None

    def to_json(self) -> dict[str, Any]:
        """The document's ``witnesses`` and ``claim``."""
        rows = self.witnesses
        document: dict[str, Any] = {
            "witnesses": {
                "reverse": _grid(rows, lambda w: _number(w.reverse)),
                "forward": _grid(rows, lambda w: _number(w.forward)),
                "sympy": _grid(rows, lambda w: None if w.sympy == "nan" else w.sympy),
                "proved": _grid(rows, lambda w: w.proved),
                "radius": _grid(rows, lambda w: w.radius),
                "differences": _grid(rows, lambda w: _number(w.difference)),
                "errors": _grid(rows, lambda w: _number(w.error)),
                "steps": _grid(rows, lambda w: _number(w.step)),
                "blamed": _grid(rows, lambda w: list(w.blamed)),
            }
        }
        return document if self.claim is None else document | {"claim": self.claim.to_json()}


def _grid(rows: Sequence[Sequence[Any]], cell: Callable[[Any], Any]) -> list[list[Any]]:
    return [[cell(entry) for entry in row] for row in rows]


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
