"""Text written by a process of its own: the same bytes, the same errors, nothing lost when it is interrupted."""

from __future__ import annotations

import io
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from jacli.errors import JacliError
from jacli.stream.answer import Answer
from jacli.stream.bulk import Bulk
from jacli.stream.open import open_source
from jacli.stream.run import Tally, run
from jacli.stream.scribe import POSSIBLE, scribe
from jacli.stream.sink import Kept, Text, sink_for
from jacli.stream.source import Rows
from jacli.stream.task import prepare

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="no process is split in two on this system")

TASK = prepare("jacobian", "x*y, sin(x)", None, 2)
POINTS = np.random.default_rng(0).normal(size=(300, 2))
BLOCK = 64


class Silent:
    """Nobody looks on."""

    def bad(self, bad) -> None:
        """Nothing is said."""

    def progress(self, tally) -> None:
        """Nothing is drawn."""


def bulk(dtype: str = "float64") -> Bulk:
    """Small blocks."""
    made = Bulk(TASK, "suspect", dtype)
    made.together = BLOCK
    return made


def blocks(count: int) -> list[tuple[Rows, Answer]]:
    """Some blocks with their answers."""
    parts = [POINTS[start : start + BLOCK] for start in range(0, count * BLOCK, BLOCK)]
    compute = bulk()
    return [(Rows(np.arange(len(part)) + 1, part), compute(part)) for part in parts]


@contextmanager
def opened(path: Path, form: str = "csv") -> Iterator[Text]:
    """A sink of text on a file."""
    sink = sink_for(form, TASK, "line")
    assert isinstance(sink, Text)
    with path.open("w+b") as file:
        sink.open(file, resume=False)
        yield sink
        sink.close()


def told(sink: Text, count: int, then: Callable[[], None] = lambda: None) -> None:
    """Some blocks written by a scribe; after each of them something else happens."""
    given = blocks(count)
    with scribe(sink, bulk()) as write:
        for rows, answer in given:
            write(rows, answer)
            then()


def kill() -> None:
    """Kill the other process."""
    for process in multiprocessing.active_children():
        process.kill()
        process.join()


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_same_bytes(form, dtype, tmp_path) -> None:
    lines = [",".join(map(repr, point)) for point in POINTS.tolist()]
    lines[77] = "1,oops"  # the row after it says which line it is of
    (tmp_path / "p.csv").write_text("\n".join(lines))
    texts, tallies = [], []
    for threads in (1, 2):
        tally, path = Tally(), tmp_path / f"{threads}.{form}"
        with opened(path, form) as sink, closing(open_source(str(tmp_path / "p.csv"), 2)) as source:
            run(source, bulk(dtype), sink, Kept(), Silent(), tally, strict=False, threads=threads)
        texts.append(path.read_bytes())
        tallies.append((tally.points, tally.bad, tally.counts, sink.size))
    assert texts[0] == texts[1]
    assert tallies[0] == tallies[1] == (299, 1, tallies[0][2], len(texts[0]))


def test_an_interruption_loses_nothing(tmp_path) -> None:
    def interrupt() -> None:
        if next(blows):
            raise KeyboardInterrupt

    blows = iter([False, False, True])
    with opened(tmp_path / "o.csv") as sink, pytest.raises(KeyboardInterrupt):
        told(sink, 5, interrupt)
    written = (tmp_path / "o.csv").read_bytes()
    assert written.count(b"\n") == 1 + 3 * BLOCK
    assert sink.size == len(written)


def test_what_cannot_be_written_is_said_here() -> None:
    sink = sink_for("csv", TASK, "line")
    assert isinstance(sink, Text)
    with Path("/dev/full").open("wb", buffering=0) as full:
        sink.open(io.BytesIO(), resume=False)  # the first line goes elsewhere
        sink._file = full
        with pytest.raises(OSError, match="No space left"):
            told(sink, 4)


def test_a_scribe_that_is_killed_is_missed(tmp_path) -> None:
    with opened(tmp_path / "o.csv") as sink, pytest.raises(JacliError, match="was killed"):
        told(sink, 4, kill)


def test_where_no_more_processes_are_allowed_one_does_everything(tmp_path, monkeypatch) -> None:
    def refuse(_: object) -> None:
        raise BlockingIOError

    monkeypatch.setattr(multiprocessing.get_context("fork").Process, "start", refuse)
    with opened(tmp_path / "o.csv") as sink:
        told(sink, 2)
    assert (tmp_path / "o.csv").read_bytes().count(b"\n") == 1 + 2 * BLOCK


def test_no_process_is_left(tmp_path) -> None:
    seen: list[int] = []
    with opened(tmp_path / "o.csv") as sink:
        told(sink, 1, lambda: seen.append(len(multiprocessing.active_children())))
    assert (seen, multiprocessing.active_children()) == ([1], [])
