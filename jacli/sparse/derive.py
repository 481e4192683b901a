"""Derivatives of a large system in torch: every family evaluated once, differentiated once, for all its rows.

No product with a Jacobian or a Hessian ever builds it: what a family adds is summed up and dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jacli.readings import floats
from jacli.sparse.family import Floats, Ints
from jacli.sparse.plan import Part, Plan, parts, tensors
from jacli.sparse.system import System


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Entries of a Jacobian in coordinates: three arrays of equal length."""

    rows: Ints
    columns: Ints
    values: Floats

    def __len__(self) -> int:
        return len(self.values)


class Derived:
    """A system cut into parts that are smooth formulas, ready to be evaluated and differentiated."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.point = system.space.doubles

    @cached_property
    def parts(self) -> list[Part]:
        """Every family, split where its rows make different choices."""
        plans: dict[int, Plan] = {}
        found: list[Part] = []
        for family in self.system.families:
            plan = plans.setdefault(id(family.formula), Plan(family.formula))
            plan.refuse_absurd()
            found += parts(family, plan, self.point)
        return found

    def values(self) -> Floats:
        """The output entries, shape (rows,)."""
        total = np.zeros(self.system.rows)
        for part in self.parts:
            out = output(part, tensors(part.family, self.point)).numpy()
            self._add(total, part.family.rows, out)
        return total

    def _add(self, total: Floats, places: Ints, values: Floats) -> None:
        if self.system.distinct:
            total[places] = values
        else:
            total += np.bincount(places, values, minlength=len(total))

    def slopes(self, weights: Floats | None = None) -> Iterator[tuple[Part, dict[str, Floats]]]:
        """Each part with its derivatives by every slot of a variable, one a row, times the row's weight."""
        t = floats.torch()
        for part in self.parts:
            slots = tensors(part.family, self.point, leaves=True)
            out = output(part, slots)
            if weights is not None:
                out = out * t.from_numpy(weights[part.family.rows])
            names = list(part.family.columns)
            found = floats.gradient(out.sum(), [slots[name] for name in names])
            yield part, {name: slope.numpy() for name, slope in zip(names, found, strict=True)}

    def jacobian(self) -> Entries:
        """Every entry that the system can depend on; those that happen to be zero are kept."""
        rows, columns, values = [], [], []
        for part, slopes in self.slopes():
            for slot, slope in slopes.items():
                place = part.family.columns[slot]
                kept = slice(None) if self._all_free else place < self.system.columns
                rows.append(part.family.rows[kept])
                columns.append(place[kept])
                values.append(slope[kept])
        entries = Entries(_joined(rows, np.int64), _joined(columns, np.int64), _joined(values, np.float64))
        return entries if self.system.distinct else summed(entries, self.system.columns)

    def pattern(self) -> Entries:
        """The places of ``jacobian``, without computing anything; the values are ones."""
        rows, columns = [], []
        for family in self.system.families:
            for place in family.columns.values():
                kept = place < self.system.columns
                rows.append(family.rows[kept])
                columns.append(place[kept])
        entries = Entries(_joined(rows, np.int64), _joined(columns, np.int64), np.ones(sum(map(len, rows))))
        return entries if self.system.distinct else summed(entries, self.system.columns)

    @property
    def _all_free(self) -> bool:
        return self.system.columns == len(self.point)

    def vjp(self, weights: Floats) -> Floats:
        """``weights · J``, shape (columns,)."""
        total = np.zeros(len(self.point))
        for part, slopes in self.slopes(weights):
            used = weights[part.family.rows] != 0  # zero times nan is nan
            for slot, slope in slopes.items():
                total += np.bincount(part.family.columns[slot][used], slope[used], minlength=len(total))
        return total[: self.system.columns]

    def jvp(self, tangent: Floats) -> Floats:
        """``J · tangent``, shape (rows,); the tangent has one number a column."""
        step = np.concatenate([tangent, np.zeros(len(self.point) - len(tangent))])
        total = np.zeros(self.system.rows)
        for part, slopes in self.slopes():
            moved = np.zeros(len(part.family))
            for slot, slope in slopes.items():
                along = step[part.family.columns[slot]]
                moved += np.where(along != 0, slope * along, 0.0)
            self._add(total, part.family.rows, moved)
        return total

    def hvp(self, tangent: Floats) -> Floats:
        """The Hessian of the sum of all outputs times ``tangent``, shape (columns,): two reverse passes a part."""
        t = floats.torch()
        step = np.concatenate([tangent, np.zeros(len(self.point) - len(tangent))])
        total = np.zeros(len(self.point))
        for part in self.parts:
            slots = tensors(part.family, self.point, leaves=True)
            leaves = [slots[name] for name in part.family.columns]
            slopes = floats.gradient(output(part, slots).sum(), leaves, create_graph=True)
            places = part.family.columns.values()
            along = sum((slope * t.from_numpy(step[place])).sum() for slope, place in zip(slopes, places, strict=True))
            if not getattr(along, "requires_grad", False):
                continue  # linear
            for place, found in zip(places, floats.gradient(along, leaves), strict=True):
                total += np.bincount(place, found.detach().numpy(), minlength=len(total))
        return total[: self.system.columns]


def output(part: Part, slots: dict[str, Any]) -> Any:
    """A part's formula in torch, as typed, shape (rows,)."""
    nodes, root = part.plan.as_typed
    return floats.evaluate(nodes, [root], slots)[root].expand(len(part.family))


def _joined(pieces: list[Any], kind: Any) -> Any:
    return np.concatenate(pieces) if pieces else np.zeros(0, kind)


def summed(entries: Entries, columns: int) -> Entries:
    """Entries at the same place added up."""
    keys, places = np.unique(entries.rows * columns + entries.columns, return_inverse=True)
    values: Floats = np.bincount(places.reshape(-1), entries.values, minlength=len(keys)).astype(np.float64)
    return Entries(keys // columns, keys % columns, values)


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread: rows are short work, and threads that wait for a busy core cost forty times as much."""
    t = floats.torch()
    before = t.get_num_threads()
    t.set_num_threads(1)
    try:
        yield
    finally:
        t.set_num_threads(before)
