"""What a computation returns: frozen data at full precision, and the JSON document it becomes.

Renderers read these and nothing else; rounding for display happens there, never here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jacli.findings import Findings

SCHEMA = "jacli/1"

#: From best to worst: a verdict is the worst status among the entries.
STATUSES = ("agree", "rounding", "kink", "edge", "undefined", "disagree")

#: A claim that is not right weighs more than a point without a derivative, less than the alarm.
VERDICTS = (*STATUSES[:-1], "undecided", "wrong", STATUSES[-1])


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

        from jacli.text import to_decimal

        # Operands of a decimal subtraction are taken exactly, however long they are or far apart: only the result
        # is rounded. A fraction would write out 10**exponent.
        return float(
            Context(prec=50, Emax=10**17, Emin=-(10**17)).subtract(Decimal(self.value), to_decimal(self.exact))
        )


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
class Held:
    """An array at one moment, flattened row-major. ``values`` is None where torch holds None: no gradient yet."""

    name: str
    shape: tuple[int, ...]
    values: tuple[float, ...] | None

    def to_json(self) -> Any:
        """The values in their shape, or None."""
        return None if self.values is None else nested(self.values, self.shape)


@dataclass(frozen=True, slots=True)
class Passed:
    """What a step of the chain rule passes on to one of its arguments.

    Attributes:
        to: the argument: a variable, a statement's name, or the text it was read from.
        step: the argument's own step, counted from 1, or None for a variable, which only collects.
        derivative: the local derivative, one row an entry of the step's node and one column an entry of the argument;
            of an entrywise operation a single row, the diagonal; empty where that would be too large.
        entrywise: entry i of the node depends on entry i of the argument only.
        gradient: incoming gradient times local derivative, in the argument's shape.
    """

    to: str
    step: int | None
    derivative: tuple[tuple[float, ...], ...]
    entrywise: bool
    gradient: Held

    def to_json(self) -> dict[str, Any]:
        """The document's ``passes`` entry."""
        derivative: Any = [nested(row) for row in self.derivative] or None
        if derivative and self.entrywise:
            derivative = nested(self.derivative[0], self.gradient.shape)
        return {
            "to": self.to,
            "step": self.step,
            "entrywise": self.entrywise,
            "derivative": derivative,
            "gradient": self.gradient.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Step:
    """One intermediate result in the order of the backward pass, with the gradient that torch handed to it."""

    source: str
    value: Held
    gradient: Held
    passes: tuple[Passed, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of ``backward``.

    Attributes:
        gradient: the weights, flattened over all outputs; one 1.0 where a scalar output needed none.
        given: whether they were typed.
        rows: each row of the Jacobian times its weight; empty where there would be too many.
        total: the sum of these rows: what the call adds.
        column: the Jacobian times the weights, which torch does not compute; None unless the Jacobian is square.
        before, after: every variable's ``.grad``.
        steps: the chain rule, where it was asked for.
    """

    gradient: tuple[float, ...]
    given: bool
    rows: tuple[tuple[float, ...], ...]
    total: tuple[float, ...]
    column: tuple[float, ...] | None
    before: tuple[Held, ...]
    after: tuple[Held, ...]
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Backward:
    """The calls of ``backward`` on one graph, and the Jacobian that explains them (empty where too large)."""

    calls: tuple[Call, ...]
    jacobian: tuple[tuple[float, ...], ...]
    symmetric: bool | None  # None unless the Jacobian is square with more than one row

    def to_json(self, shapes: Sequence[Sequence[int]]) -> dict[str, Any]:
        """The document's keys; ``shapes`` are the outputs'."""
        document: dict[str, Any] = {
            "jacobian": [nested(row) for row in self.jacobian] or None,
            "calls": [_call(call, shapes) for call in self.calls],
            "grad": {held.name: held.to_json() for held in self.calls[-1].after},
            "symmetric": self.symmetric,
        }
        steps = [
            {
                "call": number,
                "step": index,
                "node": step.value.name,
                "source": step.source,
                "value": step.value.to_json(),
                "gradient": step.gradient.to_json(),
                "passes": [passed.to_json() for passed in step.passes],
            }
            for number, call in enumerate(self.calls, start=1)
            for index, step in enumerate(call.steps, start=1)
        ]
        return document | ({"steps": steps} if steps else {})


@dataclass(frozen=True, slots=True)
class Shown:
    """An intermediate result that was asked for: its text, its value, and the gradient that reached it."""

    source: str
    value: Held
    gradient: Held

    def to_json(self) -> dict[str, Any]:
        """The document's ``shown`` entry."""
        return {
            "name": self.value.name,
            "source": self.source,
            "shape": list(self.value.shape),
            "value": self.value.to_json(),
            "gradient": self.gradient.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Result:
    """Everything that one request found out.

    ``blocks`` come in the order to print; ``extra`` holds further top-level JSON keys of a command, already in JSON
    form.
    """

    large: ClassVar[bool] = False

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
    backward: Backward | None = None
    shown: tuple[Shown, ...] = ()  # intermediate results that were asked for
    findings: Findings | None = None  # of ``check``
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def satisfied(self) -> bool:
        """Whether every entry agrees: exit status 0."""
        return self.verdict == "agree"

    @property
    def verdict(self) -> str:
        """The worst status of all entries (``agree`` when there are none), ``wrong`` or ``undecided`` as a claim is."""
        found = {status for block in self.blocks for status in block.statuses()}
        claim = self.findings.claim if self.findings is not None else None
        if claim is not None and claim.verdict != "right":
            found.add(claim.verdict)
        return max(found, key=VERDICTS.index, default="agree")

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
        if self.backward is not None:
            document |= self.backward.to_json([output.shape for output in self.outputs])
        if self.shown:
            document["shown"] = [shown.to_json() for shown in self.shown]
        if self.findings is not None:
            document |= self.findings.to_json()
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


def _call(call: Call, shapes: Sequence[Sequence[int]]) -> dict[str, Any]:
    """The gradient has the output's shape; of several outputs it is a list with one array for each."""
    start, parts = 0, []
    for shape in shapes:
        size = math.prod(shape)
        parts.append(nested(call.gradient[start : start + size], shape))
        start += size
    return {
        "gradient": parts[0] if len(parts) == 1 else parts,
        "rows": [nested(row) for row in call.rows] or None,
        "sum": nested(call.total),
        "column": None if call.column is None else nested(call.column),
        "before": {held.name: held.to_json() for held in call.before},
        "after": {held.name: held.to_json() for held in call.after},
    }


def nested(values: Sequence[float], shape: Sequence[int] | None = None) -> Any:
    """Numbers as strict JSON: a flat list, or nested in a shape (a bare number for the shape ``()``)."""
    items: list[Any] = [_number(value) for value in values]
    if shape is None:
        return items
    for size in reversed(shape[1:]):
        items = [items[i : i + size] for i in range(0, len(items), size)] if size else [[] for _ in range(shape[0])]
    return items if shape else items[0]


def _number(value: float | None) -> float | None:
    """Strict JSON has no NaN and no Infinity."""
    return value if value is not None and math.isfinite(value) else None


def entry_names(name: str, shape: Sequence[int]) -> tuple[str, ...]:
    """Names of the flattened entries, row-major: ``a`` for a scalar, else ``a[0,0]``, ``a[0,1]``…"""
    from itertools import product

    if not shape:
        return (name,)
    return tuple(f"{name}[{','.join(map(str, index))}]" for index in product(*map(range, shape)))
