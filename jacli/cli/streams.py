"""Bytes in and out: UTF-8 whatever the locale, files written whole or not at all, closed pipes silent."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

from jacli.errors import JacliError

#: A program, as text, may be this long; more than that is refused before it is read.
LARGEST_TEXT = 16 * 2**20


def read_text(path: str) -> str:
    """The text of a file, or of standard input for ``-``."""
    name = "standard input" if path == "-" else path
    try:
        if path == "-":
            data = sys.stdin.buffer.read(LARGEST_TEXT + 1) if sys.stdin else b""
        else:
            with Path(path).open("rb") as file:
                data = file.read(LARGEST_TEXT + 1)
    except OSError as error:
        raise JacliError(f"cannot read {name}: {error.strerror}", kind="file") from None
    if len(data) > LARGEST_TEXT:
        raise JacliError(f"{name} is longer than {LARGEST_TEXT // 2**20} MiB", kind="limit")
    return decode(data, name).replace("\r\n", "\n")


def is_pipe(path: str) -> bool:
    """Whether a path names a pipe or a device, which ends when its writer says so."""
    with suppress(OSError, ValueError):
        mode = Path(path).stat().st_mode
        return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
    return False


def decode(data: bytes, name: str) -> str:
    """``data`` as UTF-8, a byte-order mark dropped."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise JacliError(
            f"{name} is not UTF-8 text: byte {error.start + 1} is 0x{data[error.start]:02x}",
            hint="save it as UTF-8",
            kind="file",
        ) from None


def is_terminal(stream: TextIO | None) -> bool:
    """Whether someone is looking."""
    return stream is not None and stream.isatty()


def write_error(text: str) -> None:
    """Text for standard error. If nobody can hear, so be it."""
    with suppress(OSError, ValueError):
        _write(sys.stderr, text.encode("utf-8", "backslashreplace"))


def write_output(data: bytes) -> None:
    """Bytes for standard output. A reader that has left is no error; a full disk is."""
    try:
        _write(sys.stdout, data)
    except BrokenPipeError:
        _leave_quietly()
    except OSError as error:
        _leave_quietly()
        raise JacliError(f"cannot write to standard output: {error.strerror}", kind="file") from None


def _write(stream: TextIO | None, data: bytes) -> None:
    if stream is None:  # the caller closed it before we started
        return
    stream.flush()
    stream.buffer.write(data)
    stream.buffer.flush()


def _leave_quietly() -> None:
    """Give Python's own last flush somewhere to go."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class OutputFile:
    """A file to write, opened now, that appears under its name only when it is written whole.

    What is no regular file (a pipe, a device) is written directly, for it cannot be replaced.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._draft: Path | None = None
        with self._plain_errors():
            self._target = Path(os.path.realpath(path))  # a link stays a link: what it points to is replaced
            self._file = Path(path).open("wb") if _is_special(path) else self._open_draft()  # noqa: SIM115 - see close

    def _open_draft(self) -> BinaryIO:
        mode = stat.S_IMODE(self._target.stat().st_mode) if self._target.exists() else None
        if mode is not None and not os.access(self._target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        draft = self._target.with_name(f".jacli-{os.getpid()}.part")
        file = draft.open("xb")
        self._draft = draft
        if mode is not None:
            draft.chmod(mode)
        return file

    def write(self, data: bytes) -> None:
        """Write everything, and put the file in its place."""
        with self._plain_errors():
            self._file.write(data)
            self._file.close()
            if self._draft:
                self._draft.replace(self._target)
                self._draft = None

    def close(self) -> None:
        """Leave nothing behind that was not written whole."""
        with suppress(OSError):
            self._file.close()
        if self._draft:
            self._draft.unlink(missing_ok=True)

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:  # a named pipe whose reader has left
            return
        except OSError as error:
            raise JacliError(f"cannot write {self._path}: {error.strerror}", kind="file") from None


def _is_special(path: str) -> bool:
    with suppress(FileNotFoundError):
        return not stat.S_ISREG(Path(path).stat().st_mode)
    return False
