"""Colours: rows that share no column come out of one vector-Jacobian product, columns that share no row out of one JVP.

Curtis, Powell and Reid (1974) for columns; the same for rows; and both together, the fullest columns by themselves, for
matrices with full rows and full columns (Coleman and Verma, 1998, in its simplest form).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from jacli.errors import JacliError
from jacli.sparse.family import Ints, Mask

#: Most colours that are looked for.
MOST_COLOURS = 10_000

#: What a JVP costs, in VJPs: here it is two reverse passes.
COST_OF_A_JVP = 2

#: Columns this many times longer than the average are taken by themselves where rows cannot be coloured well.
LONG_COLUMN = 4

#: Products that are few whatever the pattern: no other way is looked for.
FEW = 32


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """One product with the Jacobian, and the entries of the pattern that can be read off it.

    Attributes:
        items: the rows added up by a VJP, or the columns added up by a JVP.
        entries: the places in the pattern, each the only one of ``items`` in its column (in its row).
    """

    items: Ints
    entries: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Products that give every entry of a pattern."""

    reverse: Sequence[Product]
    forward: Sequence[Product]

    @property
    def cost(self) -> int:
        """In vector-Jacobian products."""
        return len(self.reverse) + COST_OF_A_JVP * len(self.forward)


def plan(rows: Ints, columns: Ints, shape: tuple[int, int]) -> Plan:
    """The cheapest of: rows alone, columns alone, long columns first and then rows.

    Args:
        rows: of every place of the pattern.
        columns: of every place.
        shape: of the Jacobian.

    Raises:
        JacliError: each would need too many products.
    """
    lengths = np.bincount(columns, minlength=shape[1])
    long = lengths > max(FEW, LONG_COLUMN * len(columns) / max(1, shape[1]))
    longest_row = int(np.bincount(rows, minlength=1).max())
    best = _split(rows, columns, shape, np.zeros(shape[1], bool))
    if long.any() and not long.all():
        best = _better(best, FEW, lambda: _split(rows, columns, shape, long))
    least = max(FEW, COST_OF_A_JVP * longest_row)  # the columns of one row all have different colours
    best = _better(best, least, lambda: _split(rows, columns, shape, np.ones(shape[1], bool)))
    if best is None:
        raise JacliError(
            f"the non-zeros of the Jacobian lie so that more than {MOST_COLOURS:,} products would be needed",
            None,
            "vjp and jvp never build it",
            kind="limit",
        )
    return best


def _better(best: Plan | None, least: int, other: Callable[[], Plan | None]) -> Plan | None:
    """The cheaper of two plans; the other one is only made where ``best`` costs more than ``least``."""
    if best is not None and best.cost <= least:
        return best
    found = other()
    if best is None or (found is not None and found.cost < best.cost):
        return found
    return best


def _split(rows: Ints, columns: Ints, shape: tuple[int, int], ahead: Mask) -> Plan | None:
    """Some columns by JVPs, the other entries by VJPs; None where these are too many."""
    forward, reverse = np.flatnonzero(ahead[columns]), np.flatnonzero(~ahead[columns])
    of_columns = colours(columns[forward], rows[forward], shape[1], shape[0])
    if of_columns is None:
        return None
    of_rows = colours(rows[reverse], columns[reverse], shape[0], shape[1])
    if of_rows is None:
        return None
    return Plan(
        list(_products(of_rows, rows[reverse], reverse)), list(_products(of_columns, columns[forward], forward))
    )


def _products(colour: Ints, items: Ints, entries: Ints) -> Iterator[Product]:
    """The entries of each colour, in the order of the colours."""
    mine = colour[items]
    order = np.argsort(mine, kind="stable")
    borders = np.flatnonzero(np.diff(mine[order])) + 1
    if len(order):
        for chosen in np.split(order, borders):
            yield Product(np.unique(items[chosen]), entries[chosen])


def colours(items: Ints, through: Ints, count: int, others: int) -> Ints | None:
    """A greedy colouring of ``items``, two of which may not meet in one of ``through``; None beyond the limit.

    Items are taken in their natural order, each getting the least colour that none of those it meets has
    (Curtis, Powell and Reid, 1974). Colours seen by each of ``through`` are bits of a Python integer. Items without
    a place have the colour -1.

    Args:
        items: for each place of a pattern, its item.
        through: where it meets others.
        count: how many items there are.
        others: how many there are to meet in.
    """
    if len(through) and int(np.bincount(through).max()) > MOST_COLOURS:
        return None
    order = np.argsort(items, kind="stable")
    starts = np.searchsorted(items[order], np.arange(count + 1)).tolist()
    met = through[order].tolist()
    seen = [0] * others
    found = np.full(count, -1, np.int64)
    for item in range(count):
        mine = met[starts[item] : starts[item + 1]]
        if not mine:
            continue
        taken = 0
        for other in mine:
            taken |= seen[other]
        free = ~taken & (taken + 1)
        for other in mine:
            seen[other] |= free
        found[item] = free.bit_length() - 1
        if found[item] >= MOST_COLOURS:
            return None
    return found
