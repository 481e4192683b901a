"""Points as binary columns: npy and Parquet. Never through pickle."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from jacli.errors import JacliError
from jacli.stream.source import Bad, Rows, columns_of

#: Characters of what pyarrow says that a message shows.
_LONGEST = 300

#: Points that are read at once.
_ROWS = 1 << 15


class Npy:
    """An array, a row a point, mapped into memory block by block."""

    unit = "row"
    columns: tuple[str, ...] | None = None

    def __init__(self, path: str, file: BinaryIO) -> None:
        import numpy as np

        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(file)
        except (
            ValueError,
            TypeError,
            EOFError,
            MemoryError,
            RecursionError,
        ):  # whatever a header makes Python's parser say
            raise JacliError(f"{path} is not an array in .npy format (pickles are never loaded)", kind="file") from None
        if dtype.kind not in "fiu" or dtype.itemsize > 8 or not shape or min(shape) < 0:
            raise JacliError(f"{path} must hold rows of real numbers, not {dtype} in shape {shape}", kind="file")
        if fortran and len(shape) > 1:
            raise JacliError(
                f"{path} is stored column by column", None, "save it with numpy.ascontiguousarray", kind="file"
            )
        if not shape[0]:
            raise JacliError(f"there are no points in {path}", kind="file")
        self._path, self._dtype, self._offset = path, dtype, file.tell()
        self._count, self._done = shape[0], 0
        self.width = math.prod(shape[1:])
        file.close()

    def progress(self) -> float | None:
        """The part that has been read."""
        return self._done / self._count if self._count else 1.0

    def close(self) -> None:
        """Each block closes itself."""

    def read(self, chosen: Sequence[int]) -> Iterator[Rows]:
        """Every point's numbers in the chosen columns."""
        import numpy as np

        stride = self.width * self._dtype.itemsize
        for start in range(0, self._count, _ROWS):
            count = min(_ROWS, self._count - start)
            try:  # a map of its own for each block: pages that were read do not pile up
                block = np.memmap(self._path, self._dtype, "r", self._offset + start * stride, (count, self.width))
            except (OSError, ValueError):
                raise JacliError(f"{self._path} is shorter than its header says", kind="file") from None
            self._done = start + count
            yield finite_rows(start + 1, np.asarray(columns_of(block, chosen), np.float64))


class Parquet:
    """A table; its columns bind by name.

    Args:
        path: its name.
        file: the file itself where the system does not open it by its name.
        groups: the row groups to read; all where None.
        before: how many rows come before these.
    """

    unit = "row"

    def __init__(
        self, path: str, file: BinaryIO | None = None, groups: Sequence[int] | None = None, before: int = 0
    ) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise JacliError("Parquet needs pyarrow", None, "pip install 'jacli[parquet]'", kind="file") from None
        try:
            self._file = pq.ParquetFile(path if file is None else file)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise JacliError(f"{path} is not a Parquet file", kind="file") from None
        self._path = path
        self.columns: tuple[str, ...] | None = tuple(self._file.schema_arrow.names)
        self.width = len(self._file.schema_arrow.names)
        self._groups = range(self._file.num_row_groups) if groups is None else groups
        self._done = before

    def progress(self) -> float | None:
        """The part that has been read."""
        return self._done / self._file.metadata.num_rows if self._file.metadata.num_rows else 1.0

    def close(self) -> None:
        """Nothing more will be read."""
        self._file.close()

    @property
    def counts(self) -> tuple[int, ...]:
        """How many rows each row group has."""
        return tuple(self._file.metadata.row_group(group).num_rows for group in range(self._file.num_row_groups))

    def read(self, chosen: Sequence[int]) -> Iterator[Rows]:
        """Every point's numbers in the chosen columns.

        No block spans two row groups: what is computed together is the same where only some of them are read, for the
        last digit of torch's functions can depend on it.
        """
        import numpy as np

        names = [self._file.schema_arrow.names[column] for column in chosen]
        for batch in self._batches(list(dict.fromkeys(names))):
            numbers = np.empty((batch.num_rows, len(names)))
            for place, name in enumerate(names):
                numbers[:, place] = self._column(batch, name)
            first, self._done = self._done + 1, self._done + batch.num_rows
            yield finite_rows(first, numbers)

    def _batches(self, names: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        for group in self._groups:
            try:
                yield from self._file.iter_batches(_ROWS, row_groups=[group], columns=names)
            except (OSError, pa.ArrowException) as error:
                raise JacliError(f"{self._path} cannot be read: {error}"[:_LONGEST], kind="file") from None

    def _column(self, batch: Any, name: str) -> Any:
        import pyarrow as pa

        try:
            return batch.column(name).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise JacliError(f"the column {name} of {self._path} does not hold numbers", kind="file") from None


def finite_rows(first: int, numbers: Any) -> Rows:
    """Rows counted from ``first``; those with a number that is not finite are bad."""
    import numpy as np

    lines = np.arange(first, first + len(numbers))
    good = np.isfinite(numbers).all(axis=1)
    if good.all():
        return Rows(lines, numbers)
    bad = [
        Bad(int(lines[row]), ",".join(map(repr, numbers[row].tolist())), "a value is missing or not finite")
        for row in np.flatnonzero(~good)
    ]
    return Rows(lines[good], numbers[good], tuple(bad))
