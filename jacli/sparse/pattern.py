"""What the places of a sparse matrix tell: rows' lengths, bandwidth, colours, a picture. No value is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jacli.sparse.colour import colours
from jacli.sparse.family import Ints

#: Places beyond which no colours are looked for: greedy colouring is a loop over them.
MOST_COLOURED = 4_000_000


@dataclass(frozen=True, eq=False)
class Pattern:
    """The places of a matrix that can differ from zero: two arrays of equal length, no place twice."""

    shape: tuple[int, int]
    rows: Ints
    columns: Ints

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def per_row(self) -> Ints:
        """How many places each row has."""
        return np.bincount(self.rows, minlength=self.shape[0])

    @property
    def bandwidth(self) -> tuple[int, int]:
        """How far places lie below and above the diagonal."""
        if not len(self):
            return 0, 0
        offset = self.columns - self.rows
        return max(0, -int(offset.min())), max(0, int(offset.max()))

    @property
    def forward_colours(self) -> int | None:
        """Jacobian-vector products that give every entry: groups of columns that share no row. None: too large."""
        return self._count(self.columns, self.rows, self.shape[1], self.shape[0])

    @property
    def reverse_colours(self) -> int | None:
        """Vector-Jacobian products that give every entry: groups of rows that share no column. None: too large."""
        return self._count(self.rows, self.columns, self.shape[0], self.shape[1])

    def _count(self, items: Ints, through: Ints, count: int, others: int) -> int | None:
        if len(self) > MOST_COLOURED:
            return None
        found = colours(items, through, count, others)
        return None if found is None else int(found.max(initial=-1)) + 1

    def picture(self, width: int = 60, height: int = 30) -> list[str]:
        """The pattern in Braille, two by four places a character at most; a dot says that something is there."""
        rows, columns = max(1, self.shape[0]), max(1, self.shape[1])
        scale = max(1.0, rows / (4 * height), columns / (2 * width))
        down, across = int(np.ceil(rows / scale)), int(np.ceil(columns / scale))
        dots = np.zeros((-(-down // 4) * 4, -(-across // 2) * 2), bool)
        dots[(self.rows / scale).astype(int), (self.columns / scale).astype(int)] = True
        cells = dots.reshape(dots.shape[0] // 4, 4, dots.shape[1] // 2, 2).transpose(0, 2, 1, 3)
        return ["".join(chr(0x2800 + int((cell * _DOTS).sum())) for cell in line) for line in cells]


#: The bits of the eight dots (Unicode 15, chapter 21.1).
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
