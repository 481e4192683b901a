"""Which source reads a file or a stream: by its ending, or by its first bytes."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from jacli.errors import JacliError
from jacli.stream.source import Feed, Source

#: Bytes at the beginning in which UTF-16 shows.
_LOOKED_AT = 64


def open_source(path: str, expected: int) -> Source:
    """Points from a file, or from standard input for ``-``.

    Args:
        path: its ending tells the format; without one, and for a stream, the first bytes do.
        expected: how many numbers a point should have, to tell separators apart.

    Raises:
        JacliError: when it cannot be opened or holds nothing that looks like points.
    """
    suffix = Path(path).suffix.lower()
    if path == "-":
        return _text(Feed.of_stream(), "standard input", "", expected)
    try:
        with ExitStack() as opened:
            source = _file(path, suffix, expected, opened)
            opened.pop_all()  # it stays open, being what was asked for
            return source
    except OSError as error:
        raise JacliError(f"cannot read {path}: {error.strerror or error}", kind="file") from None


def _file(path: str, suffix: str, expected: int, opened: ExitStack) -> Source:
    if suffix in (".parquet", ".pq"):
        from jacli.stream.columnar import Parquet

        table = Parquet(path)
        if not sum(table.counts):
            table.close()
            raise JacliError(f"there are no points in {path}", kind="file")
        return table
    file = opened.enter_context(Path(path).open("rb"))  # noqa: SIM115 - closed by the stack, or by the source
    if suffix == ".npy":
        from jacli.stream.columnar import Npy

        return Npy(path, file)
    size = os.fstat(file.fileno()).st_size if Path(path).is_file() else None
    return _text(Feed(file, size), path, suffix, expected)


def _text(feed: Feed, name: str, suffix: str, expected: int) -> Source:
    from jacli.stream.delimited import Delimited
    from jacli.stream.documents import Documents

    start = feed.peek().lstrip()
    if not start:
        raise JacliError(f"there are no points in {name}", kind="file")
    if start.startswith((b"\x93NUMPY", b"PAR1")):
        raise JacliError(f"{name} is not text", None, "give the file its ending, .npy or .parquet", kind="file")
    if b"\0" in start[:_LOOKED_AT]:
        raise JacliError(f"{name} is not UTF-8 text", None, "save it as UTF-8", kind="file")
    if b"\r" in start.rstrip() and b"\n" not in start:
        raise JacliError(f"the lines of {name} end with CR alone", None, "end them with LF", kind="file")
    if suffix in (".jsonl", ".ndjson", ".json") or (suffix not in (".csv", ".tsv", ".txt") and start[:1] in b"[{"):
        return Documents(feed, name)
    return Delimited(feed, name, expected)
