"""Where the results at many points go: a file, a pipe, a device, or nowhere."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from jacli.cli.request import View
from jacli.errors import JacliError


class ReaderLeftError(Exception):
    """Whoever read standard output has left: there is no point in going on."""


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


def opened(view: View) -> BinaryIO:
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
