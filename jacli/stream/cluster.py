"""Points of a Parquet dataset on a dask cluster: each part of it is computed where there is room, as ``run`` would.

A part of the result is written under a temporary name and gets its own when it is whole, so that a part that is
computed again, or twice at once, because a worker was lost or thought to be lost, is there once.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, BinaryIO
from uuid import uuid4

from jacli.errors import JacliError
from jacli.stream.bulk import Bulk
from jacli.stream.columnar import Parquet
from jacli.stream.run import Tally, run
from jacli.stream.sink import Parquet as Sink
from jacli.stream.source import Bad
from jacli.stream.task import Task

#: Row groups of one file are a part of their own when they have this many rows together.
PART_ROWS = 1 << 17

#: How often a part is tried again that failed without anybody's fault: a network, a file system.
_RETRIES = 3

#: Seconds to wait for the scheduler.
_PATIENCE = 10

#: Who would write on standard error, tracebacks too, when a connection is lost or a call interrupted.
_LOGS = ("distributed", "distributed.client", "tornado.application", "asyncio")

#: Lines that are no points are shown up to this number; all are counted.
MOST_BAD = 100

#: Where parts are until they are whole. Readers of datasets pass over what begins like this.
_DRAFTS = "_unfinished"

#: Torch's threads, the prover's precision: one part at a time, however many threads the worker has.
_ALONE = threading.Lock()


@dataclass(frozen=True, slots=True)
class Part:
    """Some row groups of one file.

    Attributes:
        number: its place in the dataset.
        url: the file.
        groups: the row groups.
        before: rows of the dataset that come before them.
    """

    number: int
    url: str
    groups: tuple[int, ...]
    before: int

    @property
    def name(self) -> str:
        """The file of its results."""
        return f"part-{self.number:06}.parquet"


@dataclass(frozen=True, eq=False)
class Job:
    """What is to be done with every part.

    Attributes:
        task: what to compute.
        check, dtype, device: as ``Bulk`` takes them.
        output: the directory of the results.
        mark: the request, as it stands in the results.
        resume: parts that are there already are kept.
        versions: of jacli and torch, which every worker must have.
    """

    task: Task
    check: str
    dtype: str
    device: str
    output: str
    mark: str
    resume: bool
    versions: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Found:
    """What was seen in a part, and the first lines of it that are no points."""

    tally: Tally
    bad: list[Bad] = field(default_factory=list)

    def to_json(self) -> str:
        """As it stands in the part's file."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: bytes) -> Found:
        """The other way."""
        read = json.loads(text)
        tally = Tally(**read["tally"])
        tally.first = {name: (line, why) for name, (line, why) in tally.first.items()}
        tally.gap = (tally.gap[0], tally.gap[1])
        return cls(tally, [Bad(**bad) for bad in read["bad"]])


def versions() -> tuple[str, str]:
    """What the last digit depends on."""
    from importlib.metadata import version

    from jacli.version import __version__

    return __version__, version("torch")


# ---- files, by fsspec


@contextmanager
def _plainly(what: str) -> Iterator[None]:
    """Whatever a file system raises, in one sentence."""
    try:
        yield
    except JacliError:
        raise
    except ImportError as error:
        raise JacliError(f"cannot {what}: {error}", kind="file") from None
    except Exception as error:  # noqa: BLE001 - each file system has errors of its own
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise JacliError(f"cannot {what}: {reason}", kind="file") from None


def files_of(url: str) -> list[str]:
    """The files of a dataset in the order of their names: a file, a pattern, or all Parquet files of a directory."""
    from fsspec import url_to_fs

    with _plainly(f"read {url}"):
        system, path = url_to_fs(url)
        if system.isdir(path):
            names = [name for name in system.find(path) if _is_data(name.removeprefix(path))]
        else:
            names = system.glob(path) if "*" in path else [path]
    if not names:
        raise JacliError(f"there are no Parquet files in {url}", kind="file")
    return [system.unstrip_protocol(name).removeprefix("file://") for name in sorted(names)]


def _is_data(name: str) -> bool:
    hidden = any(word.startswith(("_", ".")) for word in name.split("/"))
    return name.lower().endswith((".parquet", ".pq")) and not hidden


@contextmanager
def _opened(url: str, *where: Any) -> Iterator[Parquet]:
    """A file, or some row groups of it, to be read."""
    from fsspec.core import open as open_url

    with open_url(url, "rb") as file, closing(Parquet(url, file, *where)) as source:
        yield source


def columns_of(url: str) -> tuple[str, ...]:
    """The names of a file's columns."""
    with _plainly(f"read {url}"), _opened(url) as source:
        return source.columns or ()


def check_output(output: str, points: str, *, resume: bool) -> None:
    """The results have a directory of their own; one that holds something is for ``resume``."""
    with _plainly(f"write {output}"):
        there, here = (system.unstrip_protocol(path) + "/" for system, path in map(_at, (output, points)))
        if there.startswith(here):
            raise JacliError(f"{output} lies among the points", None, "a directory elsewhere", kind="option")
        if _names(output) and not resume:
            raise JacliError(
                f"{output} is not empty", None, "a new directory, or --resume to go on with this one", kind="option"
            )


def _begin(output: str, parts: Sequence[Part]) -> None:
    """Make the directory of the results, which may hold these parts and nothing else."""
    with _plainly(f"write {output}"):
        unknown = _names(output) - {part.name for part in parts}
        if unknown:
            raise JacliError(f"{output} holds something else: {min(unknown)}", kind="file")
        system, root = _at(output)
        system.makedirs(f"{root}/{_DRAFTS}", exist_ok=True)


def _end(output: str) -> None:
    """Sweep up what lost workers left behind."""
    system, root = _at(output)
    with suppress(OSError):
        system.rm(f"{root}/{_DRAFTS}", recursive=True)


def _names(output: str) -> set[str]:
    """What there is in the directory of the results."""
    system, root = _at(output)
    if system.isfile(root):
        raise JacliError(f"{output} is a file; the results are a directory of files", kind="file")
    found = system.ls(root, detail=False) if system.exists(root) else []
    return {name.rstrip("/").rsplit("/", 1)[-1] for name in found} - {_DRAFTS}


def _at(output: str) -> tuple[Any, str]:
    from fsspec import url_to_fs

    system, root = url_to_fs(output)
    return system, root.rstrip("/")


@contextmanager
def _draft(output: str, name: str) -> Iterator[BinaryIO]:
    """A file that appears under its name when it is whole, and in the place of one that is there already."""
    system, root = _at(output)
    draft = f"{root}/{_DRAFTS}/{uuid4().hex}"
    with system.open(draft, "wb") as file:
        yield file
    system.mv(draft, f"{root}/{name}")


# ---- on a worker


def answer(part: Part, job: Job) -> Found | JacliError:
    """Compute one part and write it. What would be wrong again is returned, for whatever is raised is tried again."""
    try:
        with _ALONE:
            return (_kept(part, job) if job.resume else None) or _computed(part, job)
    except JacliError as error:
        return error


def _computed(part: Part, job: Job) -> Found:
    found, sink = Found(Tally()), Sink(job.task, "row")
    bulk, watch = _bulk(job), _Watch(found)
    with _opened(part.url, part.groups, part.before) as source, _draft(job.output, part.name) as file, closing(sink):
        run(source, bulk, sink, sink.open(file, resume=False), watch, found.tally, strict=False)
        sink.note({"jacli": job.mark, "jacli.found": found.to_json(), "jacli.part": json.dumps(asdict(part))})
    return found


def _kept(part: Part, job: Job) -> Found | None:
    """What was seen when this part was written, if it was."""
    from pyarrow import parquet

    system, root = _at(job.output)
    if not system.exists(f"{root}/{part.name}"):
        return None
    with system.open(f"{root}/{part.name}", "rb") as file:
        notes = parquet.read_metadata(file).metadata or {}
    if (notes.get(b"jacli"), notes.get(b"jacli.part")) != (job.mark.encode(), json.dumps(asdict(part)).encode()):
        raise JacliError(f"{job.output} holds something else: {part.name} is of another request", kind="file")
    return Found.from_json(notes[b"jacli.found"])


@lru_cache(maxsize=2)
def _bulk(job: Job) -> Bulk:
    """Made once on every worker."""
    from jacli.readings.floats import torch

    if versions() != job.versions:
        here, there = (" and torch ".join(pair) for pair in (job.versions, versions()))
        raise JacliError(f"a worker has jacli {there}, and here is jacli {here}", kind="cluster")
    torch().set_num_threads(1)
    if job.device == "cuda" and not torch().cuda.is_available():
        raise JacliError("a worker's torch finds no CUDA device", None, "--device cpu", kind="option")
    return Bulk(job.task, job.check, job.dtype, job.device)


class _Watch:
    """Keeps the first lines that are no points."""

    def __init__(self, found: Found) -> None:
        self._bad = found.bad

    def bad(self, bad: Bad) -> None:
        """A line that is no point."""
        if len(self._bad) < MOST_BAD:
            self._bad.append(bad)

    def progress(self, tally: Tally) -> None:
        """Nobody looks on here."""


def _counts(url: str, columns: tuple[str, ...]) -> tuple[int, ...] | JacliError:
    """The rows of a file's row groups; its columns must be those of the first file."""
    try:
        with _opened(url) as source:
            if source.columns != columns:
                return JacliError(f"{url} has other columns than the first file of the dataset", kind="file")
            return source.counts
    except JacliError as error:
        return error


def _same(job: Job) -> Job:
    """The job as a result of its own: a worker that is lost takes no copy with it that cannot be made again."""
    return job


# ---- here


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """A client of the scheduler, or of a cluster on this machine."""
    from distributed import Client, LocalCluster

    for name in _LOGS:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters comes back as an error
    if address is None:
        here = LocalCluster(threads_per_worker=1, memory_limit=0, dashboard_address=None, silence_logs=logging.CRITICAL)
        with here, Client(here) as client:
            yield client
        return
    try:
        client = Client(address, timeout=_PATIENCE)
    except (OSError, ValueError):
        raise JacliError(
            f"there is no scheduler at {address}", None, "--scheduler tcp://HOST:8786", kind="cluster"
        ) from None
    with client:
        yield client


def parts_of(client: Any, urls: Sequence[str], columns: tuple[str, ...]) -> list[Part]:
    """The parts of a dataset, in order."""
    counted: dict[int, tuple[int, ...]] = dict(_results(client, client.map(_counts, urls, columns=columns, **_TRIED)))
    parts: list[Part] = []
    before = 0
    for place, url in enumerate(urls):
        for groups, rows in _together(counted[place]):
            parts.append(Part(len(parts), url, groups, before))
            before += rows
    return parts


def _together(counts: Sequence[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Row groups one after the other, some ``PART_ROWS`` rows together."""
    groups: tuple[int, ...] = ()
    rows = 0
    for group, count in enumerate(counts):
        groups, rows = (*groups, group), rows + count
        if rows >= PART_ROWS or group == len(counts) - 1:
            yield groups, rows
            groups, rows = (), 0


def answers(client: Any, parts: Sequence[Part], job: Job) -> Iterator[Found]:
    """What was found in each part, as it comes."""
    _begin(job.output, parts)
    shared = client.submit(_same, job, **_TRIED)
    for _, found in _results(client, client.map(answer, parts, job=shared, **_TRIED)):
        yield found
    _end(job.output)


#: Tasks are known by their names alone, and tried again.
_TRIED = {"retries": _RETRIES, "pure": False}


def _results(client: Any, futures: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Results as they come, each with its place; all is called off where one failed, or nobody waits any more."""
    from distributed import as_completed

    places = {future.key: place for place, future in enumerate(futures)}
    try:
        for future in as_completed(futures):
            if future.status != "finished":
                raise _failure(future)
            result = future.result()
            if isinstance(result, JacliError):
                raise result
            yield places[future.key], result
            future.release()
    finally:
        client.cancel(futures, force=True)


def _failure(future: Any) -> JacliError:
    """Why a part has no result in spite of everything."""
    from distributed import KilledWorker

    if future.status != "error":
        return JacliError("the cluster is gone, or has given up the work", None, "--resume goes on", kind="cluster")
    error = future.exception()
    if isinstance(error, KilledWorker):
        return JacliError("workers were lost again and again over the same part", None, "more memory?", kind="cluster")
    hint = "scheduler and workers need the same jacli[dask], and access to the files"
    return JacliError(f"the cluster failed: {type(error).__name__}: {error}", None, hint, kind="cluster")
