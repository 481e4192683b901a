"""From a source to a sink: blocks of points, each computed, settled where it must be, and written in order."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Protocol

from jacli.errors import JacliError
from jacli.stream.answer import POINT_STATUSES, Answer
from jacli.stream.bulk import Bulk
from jacli.stream.settle import Settler
from jacli.stream.sink import Kept, Sink, Text
from jacli.stream.source import Bad, Rows, Source


@dataclass(slots=True)
class Tally:
    """What was seen.

    Attributes:
        points: how many points have a result.
        settled: how many of them the prover settled.
        bad: how many lines were no points.
        counts: points by status.
        first: by status, the first line that has it and why.
        gap: the largest relative difference between the two readings, and its line.
        stopped: a bad line ended everything.
    """

    points: int = 0
    settled: int = 0
    bad: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, tuple[int, str]] = field(default_factory=dict)
    gap: tuple[float, int] = (0.0, 0)
    stopped: bool = False

    @property
    def worst(self) -> str:
        """The worst status."""
        seen = [name for name, count in self.counts.items() if count]
        return max((name for name in seen if name != "unchecked"), key=POINT_STATUSES.index, default="agree")

    @property
    def flawless(self) -> bool:
        """Every line was a point, and no check of a point failed."""
        return not self.bad and self.worst == "agree"

    def add(self, lines: Any, answer: Answer) -> None:
        """Count the results at some points."""
        import numpy as np

        self.points += len(lines)
        self.settled += len(answer.suspects)
        for code, count in enumerate(np.bincount(answer.status, minlength=len(POINT_STATUSES)).tolist()):
            name = POINT_STATUSES[code]
            if count and name not in ("agree", "unchecked") and name not in self.first:
                row = int(np.argmax(answer.status == code))
                self.first[name] = int(lines[row]), answer.reasons.get(row, "")
            self.counts[name] = self.counts.get(name, 0) + count
        gaps = np.where(np.isfinite(answer.gap), answer.gap, 0.0)
        row = int(np.argmax(gaps)) if len(gaps) else 0
        if len(gaps) and gaps[row] > self.gap[0]:
            self.gap = float(gaps[row]), int(lines[row])

    def merge(self, other: Tally) -> None:
        """Count what was seen elsewhere, whichever of the two comes first."""
        self.points += other.points
        self.settled += other.settled
        self.bad += other.bad
        for name, count in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        for name, seen in other.first.items():
            self.first[name] = min(seen, self.first.get(name, seen))
        self.gap = max(self.gap, other.gap, key=lambda gap: (gap[0], -gap[1]))


class Watcher(Protocol):
    """Whoever looks on."""

    def bad(self, bad: Bad) -> None:
        """A line that is no point."""

    def progress(self, tally: Tally) -> None:
        """Some points are done."""


def run(
    source: Source,
    bulk: Bulk,
    sink: Sink,
    kept: Kept,
    watch: Watcher,
    tally: Tally,
    *,
    strict: bool,
    threads: int = 1,
) -> None:
    """Compute every point of ``source``, in order, into ``sink``; ``tally`` is filled on the way.

    Args:
        source: where the points come from.
        bulk: what to compute.
        sink: where the results go, open.
        kept: what is there already: as many points are passed over.
        watch: whoever wants to know how it goes.
        tally: what was seen, up to date at any moment.
        strict: stop at the first line that is no point.
        threads: how many blocks are computed at once.
    """
    settle = Settler(bulk.task, single=bulk.single)
    for name, count in (kept.counts or {}).items():
        tally.counts[name] = count
    tally.points = kept.rows

    def check(row: Rows, back: int) -> None:
        answer = bulk(row.numbers)
        settle(row, answer)
        if kept.same is not None and not kept.same(row, answer, bulk.leeway(row.numbers)[0], back):
            raise JacliError(
                f"the file to resume holds the results of something else: at {source.unit} {row.lines[0]} they differ",
                None,
                "the command that began it, or another --output",
                kind="file",
            )

    def passed(bad: Sequence[Bad]) -> None:  # they were reported when the rows around them were written
        tally.bad += len(bad)

    blocks = _beyond(source.read(bulk.task.layout.sources), kept, check, passed)
    parts = (part for rows in blocks for part in _parts(rows, bulk.together, strict=strict))
    first = next(parts, None)
    if first is None:
        return
    whole = len(first.lines) == bulk.together
    with (
        _writing(sink, bulk, apart=whole and threads > 1) as write,
        closing(_computed(chain((first,), parts), bulk, threads)) as computed,
    ):
        for part, answer in computed:
            settle(part, answer)
            write(part, answer)
            tally.add(part.lines, answer)
            tally.bad += len(part.bad)
            for bad in part.bad:
                watch.bad(bad)
            if part.bad and strict:
                tally.stopped = True
                return
            watch.progress(tally)


def _writing(sink: Sink, bulk: Bulk, *, apart: bool) -> AbstractContextManager[Callable[[Rows, Answer], None]]:
    """How to write: text in a process apart where there is much of it, for it costs more than the computation."""
    from jacli.stream.scribe import POSSIBLE, scribe

    return scribe(sink, bulk) if apart and POSSIBLE and isinstance(sink, Text) else nullcontext(sink.write)


def _computed(parts: Iterator[Rows], bulk: Bulk, threads: int) -> Generator[tuple[Rows, Answer]]:
    """Each part with its answer, in order; some are read and computed while those before them are written."""
    if threads == 1:
        yield from ((part, bulk(part.numbers)) for part in parts)
        return
    error: JacliError | None = None
    waiting: deque[tuple[Rows, Future[Answer]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        while True:
            try:
                part = next(parts)
            except StopIteration:
                break
            except JacliError as caught:  # what was read before is answered before it is said
                error = caught
                break
            waiting.append((part, pool.submit(bulk, part.numbers)))
            if len(waiting) > threads:
                yield _awaited(waiting)
        while waiting:
            yield _awaited(waiting)
    if error is not None:
        raise error


def _awaited(waiting: deque[tuple[Rows, Future[Answer]]]) -> tuple[Rows, Answer]:
    part, answer = waiting.popleft()
    return part, answer.result()


def _parts(rows: Rows, together: int, *, strict: bool) -> Iterator[Rows]:
    """At most ``together`` points at a time, with the bad lines up to the last of them; when strict, to the first."""
    lines, numbers, bad = rows.lines, rows.numbers, list(rows.bad)
    if strict and bad:
        before = lines < bad[0].line
        lines, numbers, bad = lines[before], numbers[before], bad[:1]
    for start in range(0, max(len(lines), 1), together):
        stop = min(start + together, len(lines))
        here = [line for line in bad if stop == len(lines) or line.line < lines[stop]]
        bad = bad[len(here) :]
        yield replace(rows, lines=lines[start:stop], numbers=numbers[start:stop], bad=tuple(here))


def _beyond(
    blocks: Iterator[Rows],
    kept: Kept,
    check: Callable[[Rows, int], None],
    passed: Callable[[Sequence[Bad]], None],
) -> Iterator[Rows]:
    """The rows after those that were kept, which must be of the same points.

    The last point among them is given to ``check``, with the number of kept rows that come after it, and the lines
    among them that are no points to ``passed``.
    """
    import numpy as np

    left = kept.rows
    for rows in blocks:
        marks = rows.lines
        if kept.gaps:
            marks = np.sort(np.concatenate([marks, np.array([bad.line for bad in rows.bad], np.int64)]))
        if not left:
            yield rows
        elif len(marks) < left:
            left -= len(marks)
            passed(rows.bad)
        else:
            last, left = int(marks[left - 1]), 0
            if kept.last not in (None, last):
                raise _others(f"its last row is of {kept.last}")
            later = rows.lines > last
            place = int(np.count_nonzero(~later)) - 1
            if place >= 0:
                here = slice(place, place + 1)
                row = replace(rows, lines=rows.lines[here], numbers=rows.numbers[here], bad=())
                check(row, int(np.count_nonzero((marks > row.lines[0]) & (marks <= last))))
            bad = tuple(bad for bad in rows.bad if bad.line > last)
            passed(rows.bad[: len(rows.bad) - len(bad)])
            yield replace(rows, lines=rows.lines[later], numbers=rows.numbers[later], bad=bad)
    if left:
        raise _others("it has more rows")


def _others(why: str) -> JacliError:
    return JacliError(f"the file to resume was made from other points: {why}", kind="file")


def relative(gap: float) -> str:
    """A relative difference, for the eye."""
    return "0" if gap == 0 else "inf" if math.isinf(gap) else f"{gap:.1e}"
