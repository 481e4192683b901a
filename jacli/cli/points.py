"""``--points``: many points from a file or a stream, one result for each."""

from __future__ import annotations

import io
import os
import signal
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

from jacli.cli import ALL_AGREE, SOME_DO_NOT, streams
from jacli.cli.commands import CHECK, POINTS_ONLY, Command
from jacli.cli.request import View, arguments_of, text_of, view_of
from jacli.errors import JacliError
from jacli.render import FORMATS, Format
from jacli.text import printable

if TYPE_CHECKING:
    from jacli.stream.bulk import Bulk
    from jacli.stream.run import Tally
    from jacli.stream.sink import Sink
    from jacli.stream.source import Bad, Source
    from jacli.stream.task import Task

POINT_FORMATS = {name: FORMATS[name] for name in ("table", "plain", "csv", "tsv", "jsonl", "npy")} | {
    "parquet": Format("parquet", "", binary=True)
}
_CHOICES = {
    "check": ("suspect", "all", "none"),
    "dtype": ("float64", "float32"),
    "device": ("cpu", "cuda"),
    "engine": ("local", "dask"),
}

#: Blocks that are computed at once: beyond these, threads wait for Python more than they compute.
_MOST_THREADS = 4

#: A bad line is shown up to this many characters.
_SHOWN = 200

#: Seconds between two looks of the progress bar.
_PULSE = 0.2


class ReaderLeftError(Exception):
    """Whoever read standard output has left: there is no point in going on."""


def compute(command: Command, given: Mapping[str, Any]) -> int:
    """Serve one command for many points; the exit status."""
    from jacli.stream.sink import format_of

    _check(command, given)
    if given["engine"] == "dask":
        from jacli.cli import cluster

        return cluster.compute(command, given)
    if given["output"] not in (None, "-") and _same_file(given["points"], given["output"]):
        hint = "another --output: results are written while points are read"
        raise JacliError("the points and the results are the same file", None, hint, kind="option")
    asked = given["format"] or format_of(given["output"])
    view = view_of({**given, "format": asked}, POINT_FORMATS)
    text = text_of(command, given)
    arguments = arguments_of(command, given)
    if view.format.binary and view.output is None and not view.quiet:
        hint = f"--output FILE.{view.format.name}"
        raise JacliError(f"{view.format.name} is not written to a stream", None, hint, kind="option")
    return _stream(command, text, arguments, given, view)


def _check(command: Command, given: Mapping[str, Any]) -> None:
    if given["at"] is not None:
        raise JacliError("the points are given twice, by --at and --points", kind="option")
    if given["points"] == "-" and given["file"] == "-":
        raise JacliError("standard input cannot hold both the expression and the points", kind="option")
    for option in command.required:
        if option.key != "at" and given[option.key] is None:
            raise JacliError(
                f"{command.name} needs {option.name}", hint=f"for example: {command.example}", kind="option"
            )
    for key, choices in _CHOICES.items():
        if given[key] not in (None, *choices):
            raise JacliError(f"--{key} is {', '.join(choices)}, not {given[key]}", kind="option")
    if given["scheduler"] is not None and given["engine"] != "dask":
        raise JacliError("--scheduler goes with --engine dask", kind="option")
    if given["resume"] and given["output"] in (None, "-"):
        raise JacliError("--resume needs the file to go on with", None, "--output FILE", kind="option")


def _same_file(points: str, output: str) -> bool:
    """Whether writing ``output`` would overwrite the points, under whatever name, also when they come by ``<``."""
    try:
        there = Path(output).stat()
        here = os.fstat(sys.stdin.fileno()) if points == "-" else Path(points).stat()
    except (OSError, ValueError, AttributeError):  # one of them is no file here
        return False
    return os.path.samestat(here, there) and stat.S_ISREG(there.st_mode)


def refuse_without_points(given: Mapping[str, Any]) -> None:
    """Options that only mean something beside ``--points``; ``--check`` is for large programs, too."""
    for option in POINTS_ONLY:
        if option is not CHECK and given.get(option.key):
            raise JacliError(f"{option.name} goes with --points", kind="option")


def _stream(command: Command, text: str, arguments: Mapping[str, Any], given: Mapping[str, Any], view: View) -> int:
    from jacli.language.parser import read
    from jacli.stream.source import open_source
    from jacli.stream.task import prepare

    if "show" in arguments:
        raise JacliError("--show is for one point", kind="option")
    with closing(open_source(given["points"], len(read(text).variables))) as source:
        task = prepare(command.name, text, source.columns, source.width, **arguments)
        remark_unused(view, source.columns, task)
        return _run(source, task, given, view)


def _run(source: Source, task: Task, given: Mapping[str, Any], view: View) -> int:
    """Open the output, compute, and conclude."""
    from jacli.stream.run import Tally, run

    bulk, tally, watch = _bulk(task, given), Tally(), Watch(source, view)
    sink = _sink(task, source, tally, view)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does: with whole rows
    try:
        with closing(_opened(view)) as file, closing(sink):
            kept = sink.open(file, resume=bool(given["resume"]))
            run(source, bulk, sink, kept, watch, tally, strict=bool(given["strict"]), threads=_threads(source, bulk))
    except ReaderLeftError:
        return status(tally)
    except OSError as error:
        raise JacliError(f"cannot write {view.output or 'to standard output'}: {error.strerror}", kind="file") from None
    finally:
        watch.clear()
        signal.signal(signal.SIGTERM, before)
    _conclude(view, tally, source.unit)
    return status(tally)


def _threads(source: Source, bulk: Bulk) -> int:
    """How many blocks to compute at once: one of a stream, which may pause and wants its answers before it goes on."""
    if source.progress() is None or bulk.device != "cpu":
        return 1
    return min(_MOST_THREADS, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def _sink(task: Task, source: Source, tally: Tally, view: View) -> Sink:
    if view.format.name in ("table", "plain"):
        from jacli.stream.board import Board

        return Board(task, source.unit, tally, view.options, view.format.name)
    from jacli.stream.sink import sink_for

    return sink_for(view.format.name, task, source.unit)


def _bulk(task: Task, given: Mapping[str, Any]) -> Bulk:
    from jacli.readings.floats import torch
    from jacli.stream.bulk import Bulk

    t = torch()
    t.set_num_threads(1)  # below a hundred thousand points at once, a second thread costs more than it brings
    device = given["device"] or "cpu"
    if device == "cuda" and not t.cuda.is_available():
        raise JacliError("torch finds no CUDA device here", None, "--device cpu", kind="option")
    return Bulk(task, given["check"] or "suspect", given["dtype"] or "float64", device)


def remark_unused(view: View, columns: Sequence[str] | None, task: Task) -> None:
    """Say which columns the program does not need."""
    unused = [
        name or "a column without a name"
        for place, name in enumerate(columns or ())
        if place not in task.layout.sources
    ]
    if unused:
        view.remark(f"not used by the program: {', '.join(unused)}"[:_SHOWN])


def _conclude(view: View, tally: Tally, unit: str) -> None:
    from jacli.stream.board import verdict

    if tally.stopped:
        streams_error(view, "error: stopped at the first line that could not be read (--strict)\n")
    if view.format.name not in ("table", "plain") and not tally.flawless:
        view.remark(verdict(tally, unit))


def status(tally: Tally) -> int:
    """The exit status."""
    return ALL_AGREE if tally.flawless else SOME_DO_NOT


def streams_error(view: View, text: str) -> None:
    """A line on standard error, unless quiet was asked for."""
    if not view.quiet:
        streams.write_error(text)


# ---- where results go


class Pipe:
    """Standard output as a file that cannot be sought; one whose reader has left ends everything."""

    def write(self, data: bytes) -> int:
        """Write at once, or raise ReaderLeftError."""
        if sys.stdout is None:
            return len(data)
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            with suppress(OSError, ValueError):  # give Python's own last flush somewhere to go
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise ReaderLeftError from None
        return len(data)

    def flush(self) -> None:
        """Every write is flushed."""

    def seekable(self) -> bool:
        """Never: what was written cannot be taken back."""
        return False

    def close(self) -> None:
        """Standard output stays open."""


class Nowhere(Pipe):
    """For --quiet."""

    def write(self, data: bytes) -> int:
        """Nothing is written."""
        return len(data)


class Special(io.FileIO):
    """A pipe or a device: what was written cannot be taken back."""

    def seekable(self) -> bool:
        """Never, whatever the system says."""
        return False


def _opened(view: View) -> BinaryIO:
    """The file of ``--output``, as it is: results are added to it row by row."""
    if view.output is None:
        return cast(BinaryIO, Nowhere() if view.quiet else Pipe())
    path = Path(view.output)
    try:
        if path.exists() and not path.is_file():
            return cast(BinaryIO, Special(path, "wb"))
        return path.open("r+b" if path.exists() else "x+b")
    except OSError as error:
        raise JacliError(f"cannot write {view.output}: {error.strerror}", kind="file") from None


class Reported(Protocol):
    """What is watched: what its places are called, and how far it is."""

    @property
    def unit(self) -> str:
        """``line`` or ``row``."""

    def progress(self) -> float | None:
        """The part that is done, or None where nobody knows."""


class Watch:
    """What a person sees while it runs: bad lines, and on a terminal how far it is."""

    def __init__(self, source: Reported, view: View) -> None:
        self._source, self._view = source, view
        self._shows = not view.quiet and streams.is_terminal(sys.stderr)
        self._began = self._looked = time.monotonic()
        self._drawn = False

    def bad(self, bad: Bad) -> None:
        """A line that is no point."""
        self.clear()
        text = printable(bad.text)
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + f"… ({len(text)} characters)"
        streams_error(self._view, f"error: {self._source.unit} {bad.line}: {bad.message}: {shown}\n")

    def progress(self, tally: Tally) -> None:
        """Draw the bar, not too often."""
        now = time.monotonic()
        if not self._shows or now - self._looked < _PULSE:
            return
        self._looked = now
        spent = now - self._began
        part = self._source.progress()
        text = f"{tally.points:,} points  {tally.points / spent:,.0f}/s"
        if part:
            full = int(part * 20)
            text = f"[{'#' * full}{'.' * (20 - full)}] {part:4.0%}  {text}  {spent * (1 - part) / part:.0f} s left"
        self._drawn = True
        streams.write_error(f"\r\x1b[K{text}")

    def clear(self) -> None:
        """Take the bar away."""
        if self._drawn:
            streams.write_error("\r\x1b[K")
            self._drawn = False
