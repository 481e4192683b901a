"""What a computation returns: frozen data at full precision, and the JSON document it becomes.

Renderers read these and nothing else; rounding for display happens there, never here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SCHEMA = "jacli/1"

#: From best to worst: a verdict is the worst status among the entries.
STATUSES = ("agree", "rounding", "kink", "edge", "undefined", "disagree")


@dataclass(frozen=True, slots=True)
class Entry:
    """One derivative as every reading sees it.

    Attributes:
        value: the float that torch's autograd gave; it may be nan or infinite.
        symbolic: the formula, or None where there is none (see ``reason``).
        exact: the true value as a decimal string (20 significant digits, or exact), or None where undefined.
        status: one of ``STATUSES``.
        bound: how far ``value`` may be from ``exact`` because typed numbers were rounded to doubles, or None.
        one_sided: the left and right slopes as decimal strings ("oo", "-oo", or None where that side is not
            real), present where they matter (kinks, edges, jumps).
        reason: why the status is not plain agreement, in words, or None.
    """

    value: float
    symbolic: str | None
    exact: str | None
    status: str
    bound: float | None = None
    one_sided: tuple[str | None, str | None] | None = None
    reason: str | None = None

    @property
    def difference(self) -> float | None:
        """``value - exact`` correctly rounded, or None where either is missing."""
        if self.exact is None or not math.isfinite(self.value):
            return None
        from decimal import Context, Decimal

        # Operands of a decimal subtraction are taken exactly, however long they are or far apart: only the result
        # is rounded. A fraction would write out 10**exponent.
        return float(Context(prec=50, Emax=10**17, Emin=-(10**17)).subtract(Decimal(self.value), Decimal(self.exact)))


@dataclass(frozen=True, slots=True)
class Block:
    """A named grid of entries: the Jacobian, the VJP, a gradient, a Hessian.

    ``key`` is the JSON key. ``rows`` holds one tuple of entries per row; ``vector`` says that the single row is
    a vector (and is written flat).
    """

    key: str
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    vector: bool = False

    def statuses(self) -> list[str]:
        """Every entry's status, row by row."""
        return [entry.status for row in self.rows for entry in row]


@dataclass(frozen=True, slots=True)
class Named:
    """One variable or output: its name, its shape, its entries' names and values (flattened row-major)."""

    name: str
    shape: tuple[int, ...]
    entries: tuple[str, ...]
    values: tuple[float, ...]
    read_as: str | None = None  # the formula that was read (outputs), in SymPy's words
    exact: tuple[str | None, ...] = ()  # the values' exact decimals (outputs), where known


@dataclass(frozen=True, slots=True)
class Share:
    """What one output contributes to a VJP (weight times its row) or to a JVP (value of that output's row)."""

    output: str
    weight: float
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """Everything that one request found out.

    ``blocks`` come in the order to print; ``extra`` holds further top-level JSON keys of a command (backward's
    calls, check's witnesses), already in JSON form.
    """

    command: str
    text: str
    outputs: tuple[Named, ...]
    variables: tuple[Named, ...]  # those differentiated, in column order
    fixed: tuple[Named, ...]  # those held fixed
    blocks: tuple[Block, ...]
    weights: tuple[float, ...] | None = None
    tangent: tuple[float, ...] | None = None
    shares: tuple[Share, ...] = ()
    rtol: float = 1e-9
    atol: float = 0.0
    remarks: tuple[str, ...] = ()  # for standard error
    notes: tuple[str, ...] = ()  # for footnotes of the table: definitions, conventions
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """The worst status of all entries (``agree`` when there are none)."""
        found = {status for block in self.blocks for status in block.statuses()}
        return max(found, key=STATUSES.index, default="agree")

    def block(self, key: str) -> Block:
        """The block named ``key``. Raises KeyError when this command has none."""
        for block in self.blocks:
            if block.key == key:
                return block
        raise KeyError(key)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document, with the keys that ``docs/json.md`` lists, in a stable order."""
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "command": self.command,
            "outputs": [name for output in self.outputs for name in output.entries],
            "variables": [name for variable in self.variables for name in variable.entries],
            "output_shapes": [list(output.shape) for output in self.outputs],
            "variable_shapes": [list(variable.shape) for variable in self.variables],
            "at": {
                name: _number(value)
                for variable in (*self.variables, *self.fixed)
                for name, value in zip(variable.entries, variable.values, strict=True)
            },
            "value": [_number(value) for output in self.outputs for value in output.values],
        }
        for block in self.blocks:
            if block.key == "vjp" and self.weights is not None:
                document["weights"] = list(self.weights)
            if block.key in ("jvp", "hvp") and self.tangent is not None:
                document["tangent"] = list(self.tangent)
            document |= _block_keys(block)
        return document | dict(self.extra) | {"verdict": self.verdict}


def _block_keys(block: Block) -> dict[str, Any]:
    """The Jacobian owns the bare names; every other block prefixes them with its own key."""
    prefix = "" if block.key == "jacobian" else block.key + "_"
    keys: dict[str, list[list[Any]]] = {
        block.key: [[_number(e.value) for e in row] for row in block.rows],
        prefix + "symbolic": [[e.symbolic for e in row] for row in block.rows],
        prefix + "exact": [[e.exact for e in row] for row in block.rows],
        prefix + "status": [[e.status for e in row] for row in block.rows],
        prefix + "bound": [[_number(e.bound) for e in row] for row in block.rows],
        prefix + "one_sided": [[list(e.one_sided) if e.one_sided else None for e in row] for row in block.rows],
        prefix + "reasons": [[e.reason for e in row] for row in block.rows],
    }
    return {key: rows[0] if block.vector else rows for key, rows in keys.items()}


def _number(value: float | None) -> float | None:
    """Strict JSON has no NaN and no Infinity."""
    return value if value is not None and math.isfinite(value) else None


def entry_names(name: str, shape: Sequence[int]) -> tuple[str, ...]:
    """Names of the flattened entries, row-major: ``a`` for a scalar, else ``a[0,0]``, ``a[0,1]``…"""
    from itertools import product

    if not shape:
        return (name,)
    return tuple(f"{name}[{','.join(map(str, index))}]" for index in product(*map(range, shape)))
