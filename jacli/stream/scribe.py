"""Rows put into words, and written, by a process of their own.

Python reads text and makes text one at a time, however many threads there are. The numbers reach the other process
through memory that both see, and it writes to the file that is open in both.
"""

from __future__ import annotations

import math
import mmap
import multiprocessing
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from jacli.errors import JacliError
from jacli.stream.answer import Answer
from jacli.stream.bulk import Bulk
from jacli.stream.sink import Text
from jacli.stream.source import Rows

Write = Callable[[Rows, Answer], None]

#: Blocks that are on their way to the other process.
_DESKS = 2

#: Whether a process can be split in two where much is imported.
POSSIBLE = sys.platform == "linux"


@dataclass(frozen=True, slots=True)
class Desk:
    """Room for one block that both processes see: what text is made of, as in ``Rows`` and ``Answer``."""

    lines: Any
    numbers: Any
    values: Any
    entries: Any
    status: Any

    @classmethod
    def of(cls, bulk: Bulk) -> Desk:
        """Room for as many points as are computed together."""
        count, task, kind = bulk.together, bulk.task, "f4" if bulk.single else "f8"
        numbers = _shared((count, len(task.layout.names)), "f8")
        values, entries = (_shared((count, len(names)), kind) for names in (task.outputs, task.entries))
        return cls(_shared((count,), "i8"), numbers, values, entries, _shared((count,), "u1"))

    def put(self, rows: Rows, answer: Answer) -> None:
        """Lay a block down, which may be shorter than the first."""
        count = len(rows.lines)
        self.lines[:count], self.numbers[:count] = rows.lines, rows.numbers
        self.values[:count], self.entries[:count], self.status[:count] = answer.values, answer.entries, answer.status

    def taken(self, count: int) -> tuple[Rows, Answer]:
        """The block that lies there."""
        answer = Answer(self.values[:count], self.entries[:count], self.status[:count], gap=None)
        return Rows(self.lines[:count], self.numbers[:count]), answer


@contextmanager
def scribe(sink: Text, bulk: Bulk) -> Iterator[Write]:
    """A ``write`` as that of ``sink``, which is open, but it does not wait; at the end all is written.

    No other thread may run when it begins: the other process would lose it, and what it holds.

    Raises:
        JacliError: when the other process was killed; what writing raises is raised here, at the latest at the end.
    """
    desks, size = [Desk.of(bulk) for _ in range(_DESKS)], _shared((1,), "i8")
    size[0] = sink.size
    context = multiprocessing.get_context("fork")
    mine, orders = context.Pipe(duplex=False)
    answers, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sink, desks, size, mine, theirs, (orders, answers)), daemon=True)
    try:
        process.start()
    except OSError:  # no more processes are allowed here
        yield sink.write
        return
    finally:
        mine.close()
        theirs.close()
    free, busy = deque(range(_DESKS)), deque[int]()

    def finish() -> None:
        """Wait for the oldest block."""
        try:
            error = answers.recv()
        except EOFError:
            message, hint = "the process that writes the results was killed", "with --output, --resume goes on"
            raise JacliError(message, hint=hint, kind="file") from None
        if error is not None:
            raise error
        free.append(busy.popleft())

    def write(rows: Rows, answer: Answer) -> None:
        if not free:
            finish()
        desks[free[0]].put(rows, answer)
        try:
            orders.send((free[0], len(rows.lines)))
        except OSError:  # it has left, and has said why, or was killed
            while True:
                finish()
        busy.append(free.popleft())

    try:
        yield write
        while busy:
            finish()
    finally:
        orders.close()
        try:
            process.join()  # what lies on the desks is still written
        finally:
            process.kill()  # whoever interrupts a second time does not want to wait
            process.join()
            sink.size = int(size[0])


def _work(
    sink: Text,
    desks: Sequence[Desk],
    size: Any,
    orders: Connection,
    answers: Connection,
    others: Iterable[Connection],
) -> None:
    """What the other process does, until nothing more will come or something went wrong."""
    for end in others:
        end.close()
    for number in (signal.SIGINT, signal.SIGTERM):  # whoever interrupts means the first process, which tells this one
        signal.signal(number, signal.SIG_IGN)
    error = None
    with suppress(EOFError, BrokenPipeError):  # the first process has ended
        while error is None:
            desk, count = orders.recv()
            error = _written(sink, *desks[desk].taken(count))
            size[0] = sink.size
            answers.send(error)


def _written(sink: Text, rows: Rows, answer: Answer) -> Exception | None:
    """Write a block; what went wrong."""
    try:
        sink.write(rows, answer)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where it can be handled
        return error
    return None


def _shared(shape: tuple[int, ...], kind: str) -> Any:
    """An array in memory that a later child process will share."""
    import numpy as np

    size = math.prod(shape)
    return np.frombuffer(mmap.mmap(-1, max(8 * size, 1)), kind, size).reshape(shape)
