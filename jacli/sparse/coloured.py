"""Programs of arrays differentiated as wholes: a product with the Jacobian for every colour of its pattern.

This is the road for what has no rows that share a formula and is too long to be written out in single numbers. The
pattern comes from the wires of the program, the products from autograd, the entries from where the pattern says that
each of them stands alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jacli.problem import Bound
from jacli.readings import floats
from jacli.sparse.colour import Plan, plan
from jacli.sparse.derive import Entries
from jacli.sparse.family import Floats, Ints
from jacli.sparse.reach import reach
from jacli.sparse.system import System
from jacli.sparse.wires import Wiring, wiring


@dataclass(frozen=True, eq=False, kw_only=True)
class Coloured(System):
    """A program of arrays that has no families.

    Attributes:
        bound: the program with its variables bound.
    """

    bound: Bound

    @cached_property
    def wiring(self) -> Wiring:
        """Which entries of the program's arrays are made of which."""
        bound = self.bound
        held = {name: value for name, value in bound.values.items() if name not in bound.chosen}
        return wiring(bound.program, bound.shapes, bound.chosen, held)

    @cached_property
    def places(self) -> tuple[Ints, Ints]:
        """Rows and columns of every entry that can differ from zero, row by row.

        Raises:
            JacliError: they are too many to hold.
        """
        found = reach(self.wiring, self.split(np.arange(self.columns)), self.columns)
        return found.places()

    @cached_property
    def plan(self) -> Plan:
        """The products that give every entry. Raises JacliError where they would be too many."""
        return plan(*self.places, (self.rows, self.columns))

    @property
    def products(self) -> str:
        """How many products a Jacobian took, in words; none unless one was asked for."""
        if "plan" not in self.__dict__:
            return ""
        counts = ((len(self.plan.reverse), "VJP"), (len(self.plan.forward), "JVP"))
        return " and ".join(f"{count:,} {what}{'s' * (count != 1)}" for count, what in counts if count)

    def split(self, flat: Any) -> dict[int, Any]:
        """One number a column, as what each variable's node has of it, flat; without variables that are not used."""
        used = self.bound.program.variables
        return {
            used[name]: flat[self.space.starts[k] : self.space.starts[k + 1]]
            for k, name in enumerate(self.bound.chosen)
            if name in used
        }

    def cotangents(self, flat: Any) -> list[Any]:
        """One number a row, as tensors in the outputs' shapes."""
        shapes = [self.bound.shapes[node] for node in self.bound.program.outputs]
        pieces = flat.split([int(np.prod(shape)) for shape in shapes])
        return [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]

    def tensors(self) -> dict[str, Any]:
        """A float64 tensor a variable, in its shape."""
        t = floats.torch()
        flat = t.from_numpy(np.array(self.space.doubles, np.float64))
        starts = self.space.starts
        return {
            name: flat[starts[k] : starts[k + 1]].reshape(self.space.shape(k)).clone()
            for k, name in enumerate(self.space.names)
        }

    def tangents(self, flat: Any) -> dict[str, Any]:
        """One number a column, as a tensor a variable, in its shape."""
        starts = self.space.starts
        return {
            name: flat[starts[k] : starts[k + 1]].reshape(self.space.shape(k))
            for k, name in enumerate(self.bound.chosen)
        }


class Products:
    """A program in torch at its point, and its products with vectors."""

    def __init__(self, system: Coloured) -> None:
        t = floats.torch()
        self.system = system
        tensors = system.tensors()
        self.inputs = [tensors[name].requires_grad_() for name in system.bound.chosen]
        program = system.bound.program
        found = floats.evaluate(program.nodes, program.outputs, tensors)
        shapes = [system.bound.shapes[node] for node in program.outputs]
        parts = [found[node].expand(shape).reshape(-1) for node, shape in zip(program.outputs, shapes, strict=True)]
        self.outputs = t.cat(parts).to(t.float64)

    def values(self) -> Floats:
        """The output entries, shape (rows,)."""
        return self._numbers(self.outputs)

    # ---- the Jacobian

    def jacobian(self) -> Entries:
        """Every entry that the program can depend on, in the order of ``Coloured.places``."""
        rows, columns = self.system.places
        return Entries(rows, columns, self.read_off(self.rows_added, self.columns_added))

    def read_off(self, reverse: Callable[[Ints], Floats], forward: Callable[[Ints], Floats]) -> Floats:
        """The entries of the pattern from products.

        Args:
            reverse: some rows of the Jacobian added up, shape (columns,).
            forward: some columns added up, shape (rows,).
        """
        rows, columns = self.system.places
        values = np.zeros(len(rows))
        for product in self.system.plan.reverse:
            values[product.entries] = reverse(product.items)[columns[product.entries]]
        for product in self.system.plan.forward:
            values[product.entries] = forward(product.items)[rows[product.entries]]
        return values

    def rows_added(self, rows: Ints) -> Floats:
        """A VJP whose seed is 1 at ``rows``. Rows are picked and not multiplied by 0 or 1: zero times nan is nan."""
        t = floats.torch()
        return self._gradient(self.outputs[t.from_numpy(rows)].sum())

    def columns_added(self, columns: Ints) -> Floats:
        """A JVP whose seed is 1 at ``columns``."""
        t = floats.torch()
        return self._along(lambda slope: slope[t.from_numpy(columns)].sum())

    # ---- products

    def vjp(self, weights: Floats) -> Floats:
        """``weights · J``, shape (columns,). Rows of weight zero take no part: zero times nan is nan."""
        t = floats.torch()
        used = np.flatnonzero(weights)
        return self._gradient((self.outputs[t.from_numpy(used)] * t.from_numpy(weights[used])).sum())

    def jvp(self, tangent: Floats) -> Floats:
        """``J · tangent``, shape (rows,)."""
        t = floats.torch()
        used = np.flatnonzero(tangent)
        return self._along(lambda slope: (slope[t.from_numpy(used)] * t.from_numpy(tangent[used])).sum())

    def hvp(self, tangent: Floats) -> Floats:
        """The Hessian of the sum of all outputs times ``tangent``, shape (columns,)."""
        t = floats.torch()
        slope = self._flat(floats.gradient(self.outputs.sum(), self.inputs, create_graph=True))
        along = (slope * t.from_numpy(tangent)).sum()
        return self._gradient(along)

    def _along(self, chosen: Callable[[Any], Any]) -> Floats:
        """A linear function of the columns, by two reverse passes: the derivative by u of its value at ``u · J``."""
        t = floats.torch()
        if not self.outputs.requires_grad:
            return np.zeros(len(self.outputs))
        u = t.ones_like(self.outputs, requires_grad=True)
        row = self._flat(floats.gradient((self.outputs * u).sum(), self.inputs, create_graph=True))
        return self._numbers(floats.gradient(chosen(row), [u])[0])

    def _gradient(self, total: Any) -> Floats:
        return self._numbers(self._flat(floats.gradient(total, self.inputs)))

    def _flat(self, parts: Any) -> Any:
        t = floats.torch()
        return t.cat([part.reshape(-1) for part in parts]) if parts else t.zeros(0, dtype=t.float64)

    @staticmethod
    def _numbers(tensor: Any) -> Floats:
        numbers: Floats = tensor.detach().numpy()
        return numbers


def remarks(system: Coloured) -> tuple[str, ...]:
    """What the pattern relies on, for standard error; products with vectors have none."""
    relied = system.wiring.relied
    if not relied or "places" not in system.__dict__:
        return ()
    names = " and ".join(relied)
    held = "is" if len(relied) == 1 else "are"
    return (f"the zeros of {names}, which {held} held fixed, are taken for zeros of the Jacobian",)


def by_node(system: Coloured, masks: Mapping[int, Any]) -> dict[int, Any]:
    """Masks of tensors, flat and in numpy, of the nodes that the outputs need, in their full shapes."""
    shapes = system.bound.shapes
    order = set(system.wiring.order)
    return {
        node: np.broadcast_to(mask.numpy(), shapes[node]).reshape(-1) for node, mask in masks.items() if node in order
    }
