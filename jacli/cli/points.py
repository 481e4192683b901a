"""``--points``: many points from a file or a stream, one result for each."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jacli.cli import outlets, watch
from jacli.cli.commands import CHECK, POINTS_ONLY, Command
from jacli.cli.request import View, arguments_of, text_of, view_of
from jacli.errors import JacliError
from jacli.render import FORMATS, Format

if TYPE_CHECKING:
    from jacli.stream.bulk import Bulk
    from jacli.stream.run import Tally
    from jacli.stream.sink import Sink
    from jacli.stream.source import Source
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
    from jacli.stream.open import open_source
    from jacli.stream.task import prepare

    if "show" in arguments:
        raise JacliError("--show is for one point", kind="option")
    with closing(open_source(given["points"], len(read(text).variables))) as source:
        task = prepare(command.name, text, source.columns, source.width, **arguments)
        watch.remark_unused(view, source.columns, task)
        return _run(source, task, given, view)


def _run(source: Source, task: Task, given: Mapping[str, Any], view: View) -> int:
    """Open the output, compute, and conclude."""
    from jacli.stream.run import Tally, run

    bulk, tally, watcher = _bulk(task, given), Tally(), watch.Watch(source, view)
    sink = _sink(task, source, tally, view)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does: with whole rows
    try:
        with closing(outlets.opened(view)) as file, closing(sink):
            kept = sink.open(file, resume=bool(given["resume"]))
            run(source, bulk, sink, kept, watcher, tally, strict=bool(given["strict"]), threads=_threads(source, bulk))
    except outlets.ReaderLeftError:
        return watch.status(tally)
    except OSError as error:
        raise JacliError(f"cannot write {view.output or 'to standard output'}: {error.strerror}", kind="file") from None
    finally:
        watcher.clear()
        signal.signal(signal.SIGTERM, before)
    _conclude(view, tally, source.unit)
    return watch.status(tally)


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


def _conclude(view: View, tally: Tally, unit: str) -> None:
    from jacli.stream.board import verdict

    if tally.stopped:
        watch.complain(view, "error: stopped at the first line that could not be read (--strict)\n")
    if view.format.name not in ("table", "plain") and not tally.flawless:
        view.remark(verdict(tally, unit))
