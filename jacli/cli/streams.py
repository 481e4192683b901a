"""Bytes in and out: UTF-8 whatever the locale, files written whole or not at all, closed pipes silent."""

from __future__ import annotations

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


@contextmanager
def output_file(path: str) -> Iterator[BinaryIO]:
    """A file to write, opened now, that appears under its name only when the block ends well.

    What is no regular file (a pipe, a device) is written directly, for it cannot be replaced.
    """
    try:
        with _special(path) if _is_special(path) else _whole(path) as file:
            yield file
    except OSError as error:
        raise JacliError(f"cannot write {path}: {error.strerror}", kind="file") from None


def _is_special(path: str) -> bool:
    with suppress(FileNotFoundError):
        return not stat.S_ISREG(Path(path).stat().st_mode)
    return False


@contextmanager
def _special(path: str) -> Iterator[BinaryIO]:
    with Path(path).open("wb") as file, suppress(BrokenPipeError):
        yield file


@contextmanager
def _whole(path: str) -> Iterator[BinaryIO]:
    target = Path(os.path.realpath(path))  # a link stays a link: what it points to is replaced
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(13, "Permission denied")
    draft = target.with_name(f".{target.name[:200]}.{os.getpid()}.part")
    try:
        with draft.open("xb") as file:
            if target.exists():
                draft.chmod(stat.S_IMODE(target.stat().st_mode))
            yield file
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
