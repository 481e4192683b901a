"""The columns that each entry of an array can depend on, carried along the wires of a program.

The classical propagation of index sets (Griewank and Walther, Evaluating Derivatives, 2008, 7.1), for whole arrays at a
time. It never misses a dependence, and it holds at every point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jacli.errors import JacliError
from jacli.sparse.family import Ints, Mask
from jacli.sparse.wires import Hop, Wiring

#: Most places that a pattern, or that of an array on the way, may have.
MOST_PLACES = 10_000_000

#: A longer row of more than half of all columns is taken for a full one, and need not be stored.
LONG_ROW = 4_096


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """Rows of columns: row ``k`` has ``columns[starts[k]:starts[k + 1]]``, or all ``width`` of them where it is full.

    Columns of a row are in order and different. Full rows store none.
    """

    starts: Ints
    columns: Ints
    full: Mask
    width: int

    def __len__(self) -> int:
        return len(self.full)

    @property
    def empty(self) -> bool:
        """Whether no row has any column."""
        return not len(self.columns) and not self.full.any()

    def through(self, hop: Hop) -> Reach:
        """The reach of entries that are made of these. Raises JacliError where it would be too large to hold."""
        if hop.targets is None:
            return self._taken(hop.sources)
        full = np.zeros(hop.size, bool)
        full[hop.targets[self.full[hop.sources]]] = True
        used = ~full[hop.targets]
        rows = self._taken(hop.sources[used])
        return _of_places(hop.targets[used][rows.owners()], rows.columns, full, self.width)

    def owners(self) -> Ints:
        """The row of every stored column."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def places(self) -> tuple[Ints, Ints]:
        """Every place, row by row: rows and columns, full rows written out.

        Raises:
            JacliError: where there would be too many.
        """
        lengths = np.where(self.full, self.width, np.diff(self.starts))
        total = int(lengths.sum())
        _refuse_dense(total)
        rows = np.repeat(np.arange(len(self)), lengths)
        columns = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        columns[~self.full[rows]] = self.columns
        return rows, columns

    def _taken(self, sources: Ints) -> Reach:
        """Some rows, in another order, again and again if need be."""
        lengths = np.diff(self.starts)[sources]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        _refuse_dense(int(starts[-1]))
        places = np.arange(int(starts[-1])) + np.repeat(self.starts[:-1][sources] - starts[:-1], lengths)
        return Reach(starts, self.columns[places], self.full[sources], self.width)


def nothing(size: int, width: int) -> Reach:
    """Rows without a column."""
    return Reach(np.zeros(size + 1, np.int64), np.zeros(0, np.int64), np.zeros(size, bool), width)


def own(columns: Ints, width: int) -> Reach:
    """Row ``k`` has ``columns[k]``."""
    return _of_places(np.arange(len(columns)), columns, np.zeros(len(columns), bool), width)


def union(parts: Sequence[Reach], size: int, width: int) -> Reach:
    """What the rows of all parts have together."""
    several = [part for k, part in enumerate(parts) if not part.empty and part not in parts[:k]]
    if not several:
        return nothing(size, width)
    if len(several) == 1:
        return several[0]
    full = np.logical_or.reduce([part.full for part in several])
    return _of_places(
        np.concatenate([part.owners() for part in several]),
        np.concatenate([part.columns for part in several]),
        full,
        width,
    )


def _of_places(rows: Ints, columns: Ints, full: Mask, width: int) -> Reach:
    """The rows of some places, which may come again and again; those that are full have none of them."""
    kept = ~full[rows]
    keys = np.sort(rows[kept] * width + columns[kept])
    keys = keys[np.diff(keys, prepend=-1) != 0]
    rows = keys // width if width else keys
    lengths = np.bincount(rows, minlength=len(full))
    more = (lengths == width) | ((lengths > LONG_ROW) & (2 * lengths > width))
    if more.any():
        keys, lengths, full = keys[~more[rows]], np.where(more, 0, lengths), full | more
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return Reach(starts, keys % width if width else keys, full, width)


def reach(wiring: Wiring, columns: Mapping[int, Ints], width: int) -> Reach:
    """What the outputs can depend on, a row an entry.

    Args:
        wiring: the wires of the program.
        columns: for the nodes of variables that are differentiated by, the columns of their entries.
        width: how many columns there are.

    Raises:
        JacliError: the pattern, or that of an array on the way, would be too large to hold.
    """
    last = {arg: node for node in wiring.order for arg in wiring.program.nodes[node].args}
    found: dict[int, Reach] = {}
    for node in wiring.order:
        args = wiring.program.nodes[node].args
        size = wiring.size(node)
        parts = [own(columns[node], width)] if node in columns else []
        for arg, hops in zip(args, wiring.hops[node], strict=True):
            if hops is None or found[arg].empty:
                continue
            part = found[arg]
            for hop in hops:
                part = part.through(hop)
            parts.append(part)
        found[node] = union(parts, size, width)
        for arg in set(args):
            if last[arg] == node and arg not in wiring.program.outputs:
                del found[arg]
    return _joined([found[node] for node in wiring.program.outputs], width)


def _joined(parts: Sequence[Reach], width: int) -> Reach:
    """One below another."""
    lengths = np.concatenate([np.diff(part.starts) for part in parts])
    columns = np.concatenate([part.columns for part in parts])
    return Reach(
        np.concatenate([[0], np.cumsum(lengths)]), columns, np.concatenate([part.full for part in parts]), width
    )


def _refuse_dense(places: int) -> None:
    if places > MOST_PLACES:
        raise JacliError(
            f"{places:,} entries of the Jacobian, or of an array on the way to it, can differ from zero; "
            f"at most {MOST_PLACES:,} are held",
            None,
            "vjp and jvp never build it; --wrt differentiates by some of the variables",
            kind="limit",
        )
