"""What a large computation returns: arrays, not an object an entry; the JSON document it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from jacli.errors import JacliError
from jacli.result import SCHEMA, STATUSES
from jacli.sparse.check import KINDS, UNCHECKED, Verdicts
from jacli.sparse.derive import Entries
from jacli.sparse.family import Floats, Ints
from jacli.sparse.system import System


@dataclass(frozen=True, eq=False)
class Quantity:
    """A list of numbers with their verdicts: the entries of a Jacobian, or a product with it.

    Attributes:
        key: the JSON key.
        values: the floats that autograd gave.
        verdicts: one a value.
        entries: the places in the matrix, or None for a vector.
        over: what a vector's entries belong to, ``variables`` or ``outputs``.
    """

    key: str
    values: Floats
    verdicts: Verdicts
    entries: Entries | None = None
    over: str = "variables"

    @cached_property
    def order(self) -> Ints:
        """The places of the values row by row, from left to right."""
        if self.entries is None:
            return np.arange(len(self.values))
        return np.lexsort((self.entries.columns, self.entries.rows))


@dataclass(frozen=True, eq=False)
class LargeResult:
    """Everything that one request about a large program found out.

    Entries that the program cannot depend on are not stored; those that happen to be zero at the point are.
    """

    large: ClassVar[bool] = True

    command: str
    system: System
    value: Floats
    quantities: tuple[Quantity, ...]
    weights: Floats | None = None
    tangent: Floats | None = None
    rtol: float = 1e-9
    atol: float = 0.0
    check: str = "suspect"
    remarks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The program as typed."""
        return self.system.text

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the Jacobian."""
        return self.system.rows, self.system.columns

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many entries have each status, those that occur."""
        total = sum(np.bincount(found.verdicts.kinds, minlength=len(KINDS)) for found in self.quantities)
        return {kind: int(count) for kind, count in zip(KINDS, np.atleast_1d(total), strict=False) if count}

    @property
    def proved(self) -> int:
        """How many entries were proved one by one."""
        return sum(found.verdicts.proved for found in self.quantities)

    @property
    def verdict(self) -> str:
        """The worst status; ``unchecked`` where something suspicious was left and nothing worse was found."""
        found = [status for status in STATUSES if status in self.counts]
        worst = max(found, key=STATUSES.index, default="agree")
        return UNCHECKED if worst == "agree" and UNCHECKED in self.counts else worst

    @property
    def satisfied(self) -> bool:
        """Whether all that was asked to be checked agrees."""
        return self.verdict == "agree" or (self.verdict == UNCHECKED and self.check == "none")

    def quantity(self, key: str) -> Quantity:
        """The quantity named ``key``. Raises KeyError when this command has none."""
        for found in self.quantities:
            if found.key == key:
                return found
        raise KeyError(key)

    @property
    def row_names(self) -> tuple[str, ...]:
        """Names of the output entries."""
        return self.system.row_names

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the entries of the variables differentiated."""
        return self.system.space.entries[: self.system.columns]

    def to_coo(self) -> Any:
        """The Jacobian as a ``scipy.sparse.coo_array``.

        Raises:
            JacliError: SciPy is not installed.
        """
        entries = self.quantity("jacobian").entries
        if entries is None:
            raise KeyError("jacobian")
        return _scipy_sparse().coo_array((entries.values, (entries.rows, entries.columns)), shape=self.shape)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document, with the keys that ``docs/json.md`` lists."""
        system = self.system
        free = _free(system)
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "command": self.command,
            "outputs": list(self.row_names),
            "variables": list(self.column_names),
            "output_shapes": [list(shape) for shape in system.output_shapes or ((),) * len(system.output_names)],
            "variable_shapes": [list(system.space.shape(k)) for k in range(free)],
            "at": dict(zip(system.space.entries, _numbers(system.space.doubles), strict=True)),
            "value": _numbers(self.value),
            "check": self.check,
        }
        for found in self.quantities:
            if found.key == "vjp" and self.weights is not None:
                document["weights"] = self.weights.tolist()
            if found.key in ("jvp", "hvp") and self.tangent is not None:
                document["tangent"] = self.tangent.tolist()
            document |= _matrix(found, self.shape) if found.entries is not None else _vector(found)
        return document | dict(self.extra) | {"proved": self.proved, "verdict": self.verdict}


def _free(system: System) -> int:
    """How many variables are differentiated by."""
    return int(np.searchsorted(system.space.starts, system.columns, side="left"))


def _numbers(values: Floats) -> list[float | None]:
    """Strict JSON has no NaN and no Infinity."""
    numbers: list[float | None] = values.tolist()
    for place in np.flatnonzero(~np.isfinite(values)):
        numbers[place] = None
    return numbers


def _matrix(found: Quantity, shape: tuple[int, int]) -> dict[str, Any]:
    """A sparse matrix: one ``[row, column, value, status]`` an entry, and what was proved."""
    entries, verdicts, order = found.entries, found.verdicts, found.order
    if entries is None:
        raise ValueError("a vector has no places")
    rows, columns = entries.rows[order].tolist(), entries.columns[order].tolist()
    statuses = [KINDS[kind] for kind in verdicts.kinds[order].tolist()]
    places = {int(entry): k for k, entry in enumerate(order)} if verdicts.exact or verdicts.reasons else {}
    return {
        "shape": list(shape),
        "entries": [list(entry) for entry in zip(rows, columns, _numbers(found.values[order]), statuses, strict=True)],
        "exact": [[rows[k], columns[k], exact] for k, exact in _placed(verdicts.exact, places)],
        "reasons": [[rows[k], columns[k], reason] for k, reason in _placed(verdicts.reasons, places)],
    }


def _placed(found: Mapping[int, str], places: Mapping[int, int]) -> list[tuple[int, str]]:
    return sorted((places[k], text) for k, text in found.items())


def _vector(found: Quantity) -> dict[str, Any]:
    """The keys that a small result has, too."""
    count, verdicts = len(found.values), found.verdicts
    return {
        found.key: _numbers(found.values),
        f"{found.key}_exact": [verdicts.exact.get(k) for k in range(count)],
        f"{found.key}_status": [KINDS[kind] for kind in verdicts.kinds.tolist()],
        f"{found.key}_reasons": [verdicts.reasons.get(k) for k in range(count)],
    }


def _scipy_sparse() -> Any:
    """The module. Raises JacliError where SciPy is not installed."""
    try:
        import scipy.sparse
    except ImportError:
        raise JacliError(
            "sparse matrices as objects need SciPy, which is not installed",
            None,
            "pip install jacli[sparse]",
            kind="option",
        ) from None
    return scipy.sparse
