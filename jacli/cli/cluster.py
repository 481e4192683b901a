"""``--points --engine dask``: a Parquet dataset on a cluster, a directory of results and a summary."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from jacli.cli import streams, watch
from jacli.cli.commands import Command
from jacli.cli.request import View, arguments_of, text_of, view_of
from jacli.errors import JacliError
from jacli.render import FORMATS

if TYPE_CHECKING:
    from jacli.stream.cluster import Job, Part
    from jacli.stream.run import Tally
    from jacli.stream.source import Bad
    from jacli.stream.task import Task

_NEEDED = ("distributed", "fsspec", "pyarrow")
_SUMMARIES = {name: FORMATS[name] for name in ("table", "plain")}


def compute(command: Command, given: Mapping[str, Any]) -> int:
    """Serve one command for a dataset; the exit status. What can be refused is, before a cluster is asked."""
    _refuse(given)
    asked = None if given["format"] == "parquet" else given["format"]
    view = view_of({**given, "format": asked}, _SUMMARIES)
    text, arguments = text_of(command, given), arguments_of(command, given)

    from jacli.language.parser import read
    from jacli.stream import cluster
    from jacli.stream.task import prepare

    read(text)
    urls = cluster.files_of(given["points"])
    columns = cluster.columns_of(urls[0])
    task = prepare(command.name, text, columns, len(columns), **arguments)
    watch.remark_unused(view, columns, task)
    job = _job(task, text, arguments, given)
    cluster.check_output(job.output, given["points"], resume=job.resume)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    try:
        with cluster.connected(given["scheduler"]) as client:
            if given["scheduler"] is None:
                view.remark(f"on this machine, {len(client.nthreads())} workers; --scheduler takes a cluster")
            tally = _run(client, cluster.parts_of(client, urls, columns), job, view)
    finally:
        signal.signal(signal.SIGTERM, before)
    _conclude(view, tally, task)
    return watch.status(tally)


def _refuse(given: Mapping[str, Any]) -> None:
    for name in _NEEDED:
        if find_spec(name) is None:
            raise JacliError(f"--engine dask needs {name}", None, "pip install 'jacli[dask]'", kind="option")
    if given["points"] == "-":
        raise JacliError("a stream is not for --engine dask", None, "a Parquet file or a directory", kind="option")
    if given["strict"]:
        raise JacliError("--strict is for one machine: on a cluster there is no first line", kind="option")
    if given["output"] in (None, "-"):
        raise JacliError("--engine dask writes a directory", None, "--output DIRECTORY", kind="option")


def _job(task: Task, text: str, arguments: Mapping[str, Any], given: Mapping[str, Any]) -> Job:
    from jacli.stream.cluster import Job, versions

    how = (given["check"] or "suspect", given["dtype"] or "float64", given["device"] or "cpu")
    request = (task.command, text, sorted(arguments.items()), task.weights, task.tangent, how, versions())
    mark = hashlib.sha256(repr(request).encode()).hexdigest()
    return Job(task, *how, given["output"], mark, bool(given["resume"]), versions())


def _run(client: Any, parts: list[Part], job: Job, view: View) -> Tally:
    """Compute every part, and show how far it is."""
    from jacli.stream.cluster import MOST_BAD, answers
    from jacli.stream.run import Tally

    tally, bad, counter = Tally(), list[Any](), _Counter(len(parts))
    watcher = watch.Watch(counter, view)
    try:
        for found in answers(client, parts, job):
            tally.merge(found.tally)
            bad = sorted((*bad, *found.bad), key=_line)[:MOST_BAD]
            counter.done += 1
            watcher.progress(tally)
    finally:
        watcher.clear()
    for each in bad:
        watcher.bad(each)
    return tally


def _line(bad: Bad) -> int:
    return bad.line


class _Counter:
    """How many parts are done, for the bar."""

    unit = "row"

    def __init__(self, parts: int) -> None:
        self.done, self._parts = 0, parts

    def progress(self) -> float | None:
        """The part of all parts."""
        return self.done / self._parts


def _conclude(view: View, tally: Tally, task: Task) -> None:
    """The summary goes to standard output, the results being elsewhere."""
    from jacli.stream.board import composed, summary

    if not view.quiet:
        streams.write_output(composed(summary(tally, task, "row"), view.options, view.format.name))
