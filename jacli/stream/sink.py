"""Where results go: one small class a format. Rows are written whole, chunk by chunk."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from jacli.errors import JacliError
from jacli.stream.answer import POINT_STATUSES, Answer
from jacli.stream.source import Rows
from jacli.stream.task import Task


@dataclass(frozen=True, slots=True)
class Kept:
    """What an interrupted run left that is worth keeping.

    Attributes:
        rows: how many whole rows.
        size: the bytes that they and what comes before them take.
        last: the line that the last row belongs to, or None where the format does not say.
        counts: rows by status, as far as the format says.
        gaps: lines that are no points have rows too.
        same: whether a point's results are those of a kept row: given the point, its results, how far each may be off,
            and how many rows after that row were kept.
    """

    rows: int = 0
    size: int = 0
    last: int | None = None
    counts: dict[str, int] | None = None
    gaps: bool = False
    same: Callable[[Rows, Answer, Any, int], bool] | None = None


class Sink(Protocol):
    """One format."""

    def open(self, file: BinaryIO, *, resume: bool) -> Kept:
        """Begin writing, or go on after what is there."""

    def write(self, rows: Rows, answer: Answer) -> None:
        """The results at some points, and the lines among them that are no points."""

    def close(self) -> None:
        """Make the file valid; also after an interruption."""


def sink_for(name: str, task: Task, unit: str) -> Sink:
    """The sink of a format."""
    if name == "npy":
        return Npy(task)
    if name == "parquet":
        return Parquet(task, unit)
    if name == "jsonl":
        return Text(Lines(task, unit))
    return Text(Separated(task, unit, "," if name == "csv" else "\t"))


# ---- text

#: Rows that are put into words at once: their text stays in the processor's cache.
_AT_ONCE = 1024


class Separated:
    """CSV and TSV: line, point, values, derivative, status."""

    def __init__(self, task: Task, unit: str, separator: str) -> None:
        from jacli.render.delimited import write_rows

        self._places = len(task.layout.names)
        self.separator = separator.encode()
        self.head = write_rows([(unit, *names_of(task), "status")], separator).encode()
        self._ends = [self.separator + name.encode() + b"\n" for name in POINT_STATUSES]
        self.ends = dict(zip(POINT_STATUSES, self._ends, strict=True))

    def line_of(self, row: bytes) -> int:
        """The line that a row says it belongs to."""
        return int(row.split(self.separator, 1)[0])

    def parts(self, row: bytes) -> tuple[list[float], list[float], str]:
        """A row's point, its results, and its status. Raises ValueError."""
        *cells, status = row.decode().rstrip("\n").split(self.separator.decode())
        numbers = [float(cell or "nan") for cell in cells[1:]]
        return numbers[: self._places], numbers[self._places :], status

    def rows(self, lines: Any, points: Any, answer: Answer) -> bytes:
        """A number that is missing is an empty field."""
        numbers = numbers_of(points, answer)
        parts = [slice(start, start + _AT_ONCE) for start in range(0, len(lines), _AT_ONCE)]
        return b"".join(self._rows(lines[part], numbers[part], answer.status[part]) for part in parts)

    def _rows(self, lines: Any, numbers: Any, status: Any) -> bytes:
        import numpy as np

        text = shortest(numbers)
        text = text if np.isfinite(numbers).all() else text.replace(b"null", b"")  # looking for it in text costs more
        text = text if self.separator == b"," else text.replace(b",", self.separator)
        cells = text.replace(b"[", b"").split(b"]")[: len(lines)]  # each begins with the separator, but for the first
        cells[0] = self.separator + cells[0]
        return _interleaved(shortest(lines)[1:-1].split(b","), cells, map(self._ends.__getitem__, status.tolist()))


class Lines:
    """JSON lines, with the keys of the one-point document."""

    head = b""

    def __init__(self, task: Task, unit: str) -> None:
        import json

        self.task = task
        self.unit = unit
        self.ends = {name: f'"status":"{name}"}}\n'.encode() for name in POINT_STATUSES}
        at = ",".join(json.dumps(name, ensure_ascii=False) + ":%b" for name in task.layout.names)
        value = ",".join(["%b"] * len(task.outputs))
        entries = ",".join(["%b"] * task.shape[-1])
        if len(task.shape) == 2:
            entries = ",".join([f"[{entries}]"] * task.shape[0])
        self._form = f'{{"{unit}":%d,"at":{{{at}}},"value":[{value}],"{task.command}":[{entries}],'.encode()

    def line_of(self, row: bytes) -> int:
        """The line that a row says it belongs to."""
        return int(row.split(b":", 1)[1].split(b",", 1)[0])

    def parts(self, row: bytes) -> tuple[list[float], list[float], str]:
        """A row's point, its results, and its status. Raises ValueError."""
        import orjson

        read = orjson.loads(row)
        if list(read) != [self.unit, "at", "value", self.task.command, "status"]:
            raise ValueError
        if tuple(read["at"]) != self.task.layout.names:
            raise ValueError
        entries = read[self.task.command]
        if len(self.task.shape) == 2:
            entries = [*chain.from_iterable(entries)]
        numbers = [math.nan if each is None else float(each) for each in (*read["value"], *entries)]
        return list(read["at"].values()), numbers, read["status"]

    def rows(self, lines: Any, points: Any, answer: Answer) -> bytes:
        """A number that is not finite is null."""
        cells = [row.split(b",") for row in shortest(numbers_of(points, answer))[2:-2].split(b"],[")]
        ends = [self.ends[POINT_STATUSES[i]] for i in answer.status.tolist()]
        form = self._form
        return b"".join(form % (line, *row) + end for line, row, end in zip(lines.tolist(), cells, ends, strict=True))


class Text:
    """Rows of text, in a file or a pipe.

    Attributes:
        form: puts rows into words.
        size: how many bytes of whole rows there are.
    """

    def __init__(self, form: Separated | Lines) -> None:
        self.form = form
        self._file: BinaryIO | None = None
        self.size = 0

    def open(self, file: BinaryIO, *, resume: bool) -> Kept:
        """Begin, or cut what an interruption left of a row and go on."""
        kept = self._kept(file) if resume else Kept()
        self._file = file
        self.size = kept.size
        if file.seekable():
            file.truncate(kept.size)
            file.seek(kept.size)
        if not kept.size:
            self._write(self.form.head)
        return kept

    def write(self, rows: Rows, answer: Answer) -> None:
        """A row says which line it belongs to; nothing stands for a line that is no point."""
        if len(rows.lines):
            self._write(self.form.rows(rows.lines, rows.numbers, answer))

    def close(self) -> None:
        """Drop what an interruption left of a chunk."""
        if self._file is not None and self._file.seekable():
            self._file.flush()
            if self._file.tell() > self.size:
                self._file.truncate(self.size)

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        self._file.write(data)
        self._file.flush()
        self.size += len(data)

    def _kept(self, file: BinaryIO) -> Kept:
        """The whole rows of a file, counted by their ends."""
        file.seek(0)
        head = file.read(len(self.form.head))
        if head != self.form.head:
            if self.form.head.startswith(head):
                return Kept()
            raise JacliError("the file to resume holds something else: its first line differs", kind="file")
        rows, size, rest, last = 0, len(head), b"", b""
        counts = dict.fromkeys(POINT_STATUSES, 0)
        while block := file.read(1 << 20):
            whole = rest + block
            cut = whole.rfind(b"\n") + 1
            whole, rest = whole[:cut], whole[cut:]
            rows += whole.count(b"\n")
            size += cut
            for name, end in self.form.ends.items():
                counts[name] += whole.count(end)
            last = whole[whole.rfind(b"\n", 0, cut - 1) + 1 :] or last
        try:
            return Kept(rows, size, self.form.line_of(last) if rows else None, counts, same=partial(self._same, last))
        except (ValueError, IndexError):
            raise JacliError("the file to resume holds something else", kind="file") from None

    def _same(self, last: bytes, rows: Rows, answer: Answer, leeway: Any, _: int) -> bool:
        """Whether the last row is of this request."""
        try:
            at, numbers, status = self.form.parts(last)
        except (ValueError, TypeError, KeyError):
            return False
        here, found, verdict = self.form.parts(self.form.rows(rows.lines, rows.numbers, answer))
        statuses = {status, verdict}
        return repr(at) == repr(here) and _alike(numbers, found, leeway) and (len(statuses) == 1 or statuses == _NEXT)


def _interleaved(*columns: Iterable[bytes]) -> bytes:
    """The first of each, the second of each, and so on, put together; all are of one length."""
    lists = [list(column) for column in columns]
    pieces = [b""] * (len(lists) * len(lists[0]))
    for place, cells in enumerate(lists):
        pieces[place :: len(lists)] = cells
    return b"".join(pieces)


def _alike(kept: Any, found: Any, leeway: Any) -> bool:
    """Whether these numbers are those; what is not finite is not told apart."""
    import numpy as np

    a, b = np.asarray(kept, np.float64), np.asarray(found, np.float64)
    if a.shape != b.shape:
        return False
    finite = np.isfinite(a)
    if (finite != np.isfinite(b)).any():
        return False
    return bool((np.abs(a[finite] - b[finite]) <= leeway[finite]).all())


#: The last digits, which depend on what is computed beside a point, may decide between these.
_NEXT = {"agree", "rounding"}


def names_of(task: Task) -> tuple[str, ...]:
    """The names of a row's numbers."""
    return (*task.layout.names, *task.outputs, *task.entries)


def numbers_of(points: Any, answer: Answer) -> Any:
    """(points, numbers of a row), in the type that was computed in."""
    import numpy as np

    with np.errstate(over="ignore"):  # what is beyond single precision is shown as missing
        return np.concatenate([points.astype(answer.entries.dtype), answer.values, answer.entries], axis=1)


def shortest(table: Any) -> bytes:
    """``[[a,b],[c,d]]`` with the shortest decimals that read back as the same numbers; null for what is not finite."""
    import numpy as np
    import orjson

    return orjson.dumps(np.ascontiguousarray(table), option=orjson.OPT_SERIALIZE_NUMPY)  # it takes rows and no columns


# ---- binary


class Npy:
    """The derivative alone, (points, *shape). A line without a point has a row of nan: rows keep their places."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._file: BinaryIO | None = None
        self._rows = 0

    def open(self, file: BinaryIO, *, resume: bool) -> Kept:
        """Begin, or go on after the whole rows."""
        kept = self._kept(file) if resume else Kept()
        self._file = file
        self._rows = kept.rows
        self._head()
        file.truncate(self._offset())
        return kept

    def write(self, rows: Rows, answer: Answer) -> None:
        """Rows, and then the header that counts them: the file is valid at any moment."""
        import numpy as np

        assert self._file is not None
        entries = np.ascontiguousarray(answer.entries, np.float64)
        if rows.bad:
            places = np.searchsorted(rows.lines, [bad.line for bad in rows.bad])
            entries = np.insert(entries, places, math.nan, axis=0)
        self._file.seek(self._offset())
        self._file.write(entries.data)
        self._rows += len(entries)
        self._head()

    def close(self) -> None:
        """Drop what an interruption left of a chunk."""
        if self._file is not None:
            self._head()
            self._file.truncate(self._offset())

    @property
    def _width(self) -> int:
        return math.prod(self.task.shape)

    def _offset(self) -> int:
        return _NPY_HEAD + 8 * self._width * self._rows

    def _head(self) -> None:
        assert self._file is not None
        shape = (self._rows, *self.task.shape)
        text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
        self._file.seek(0)
        self._file.write(b"\x93NUMPY\x01\x00" + (_NPY_HEAD - 10).to_bytes(2, "little"))
        self._file.write(text.ljust(_NPY_HEAD - 11).encode() + b"\n")
        self._file.flush()

    def _kept(self, file: BinaryIO) -> Kept:
        import numpy as np

        size = file.seek(0, 2)
        file.seek(0)
        try:
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        except ValueError:
            if size < _NPY_HEAD:
                return Kept()
            raise JacliError("the file to resume is not an array in .npy format", kind="file") from None
        if shape[1:] != self.task.shape or dtype != np.float64 or file.tell() != _NPY_HEAD:
            raise JacliError("the file to resume holds something else", kind="file")
        whole = (size - _NPY_HEAD) // (8 * self._width) if self._width else shape[0]
        rows = min(shape[0], whole)
        return Kept(rows, size, gaps=True, same=partial(self._same, file, rows))

    def _same(self, file: BinaryIO, rows: int, _: Rows, answer: Answer, leeway: Any, back: int) -> bool:
        """Whether the row of this point is of this request, and the rows after it are of none."""
        import numpy as np

        file.seek(_NPY_HEAD + 8 * self._width * (rows - 1 - back))
        kept = np.frombuffer(file.read(8 * self._width * (1 + back))).reshape(1 + back, self._width)
        return _alike(kept[0], answer.entries[0], leeway[answer.values.shape[1] :]) and bool(np.isnan(kept[1:]).all())


#: Room for a header that can be rewritten when there are more rows.
_NPY_HEAD = 192


class Parquet:
    """A table with a column a number, and the status."""

    def __init__(self, task: Task, unit: str) -> None:
        self.task = task
        self.unit = unit
        self._writer: Any = None

    def open(self, file: BinaryIO, *, resume: bool) -> Kept:
        """Begin. Raises JacliError when asked to go on, which the format does not allow."""
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise JacliError("Parquet needs pyarrow", None, "pip install 'jacli[parquet]'", kind="file") from None
        if resume:
            raise JacliError(
                "a Parquet file cannot be continued", None, "write csv, jsonl or npy to resume", kind="option"
            )
        self._schema = pa.schema(
            [
                (self.unit, pa.int64()),
                *((name, pa.float64()) for name in names_of(self.task)),
                ("status", pa.dictionary(pa.int8(), pa.string())),
            ]
        )
        self._writer = pq.ParquetWriter(file, self._schema)
        return Kept()

    def write(self, rows: Rows, answer: Answer) -> None:
        """One row group."""
        import numpy as np
        import pyarrow as pa

        table = numbers_of(rows.numbers, answer).astype(np.float64)
        status = pa.DictionaryArray.from_arrays(answer.status.astype(np.int8), list(POINT_STATUSES))
        columns = [pa.array(rows.lines), *(pa.array(np.ascontiguousarray(c)) for c in table.T), status]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))

    def note(self, notes: Mapping[str, str]) -> None:
        """What readers find beside the table, if they ask."""
        self._writer.add_key_value_metadata(notes)

    def close(self) -> None:
        """Write the table of contents, without which nothing can be read."""
        if self._writer is not None:
            self._writer.close()


def format_of(path: str | None) -> str | None:
    """The format that a file's ending asks for, or None."""
    suffix = Path(path or "").suffix.lower()
    return {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".npy": "npy", ".parquet": "parquet",
            ".pq": "parquet"}.get(suffix)  # fmt: skip
