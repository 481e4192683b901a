"""``jacli serve``: start the server here or in the background, stop it, ask after it."""

from __future__ import annotations

import fcntl
import math
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from jacli.cli.streams import write_error, write_output
from jacli.errors import JacliError
from jacli.warm import meeting
from jacli.warm.server import serve

#: Minutes without a request after which a server ends.
DEFAULT_IDLE = 60.0

#: How long to wait for an answer, and for a server to end, in seconds.
_PATIENCE = 10.0


def run(given: Mapping[str, Any]) -> int:
    """Serve the words of ``jacli serve``; the exit status."""
    import sys

    if sys.platform != "linux":
        raise JacliError("serve needs Linux", hint="every command works without it", kind="serve")
    chosen = [f"--{name}" for name in ("background", "stop", "status") if given[name]]
    if len(chosen) > 1:
        raise JacliError(f"{' and '.join(chosen)} cannot be had together", kind="option")
    folder = meeting.folder()
    if given["stop"]:
        return stop(folder)
    if given["status"]:
        return status(folder)
    idle = 60 * _minutes(given["idle"])
    if given["background"]:
        return background(folder, idle)
    serve(folder, idle, lambda: write_error(f"note: serving as process {os.getpid()}; Ctrl-C stops\n"))
    return 0


def _minutes(text: str | None) -> float:
    if text is None:
        return DEFAULT_IDLE
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise JacliError(f"--idle is a number of minutes, not {text}", hint="--idle 30", kind="option")
    return value


def background(folder: str, idle: float) -> int:
    """Start a server that outlives this process, and wait until it serves."""
    connection = meeting.connected(folder)
    if connection is not None:
        connection.close()
        write_error("note: a server is running already\n")
        return 0
    heard, report = os.pipe()
    if os.fork() == 0:
        _detached(folder, idle, report)
    os.close(report)
    with os.fdopen(heard, "rb") as pipe:
        outcome, message, hint = (*pipe.read().decode().split("\0"), "", "", "")[:3]
    if outcome != "serving":
        raise JacliError(message or "the server could not start", hint=hint or None, kind="serve")
    write_error(f"note: serving as process {message}; jacli serve --stop stops it\n")
    return 0


def _detached(folder: str, idle: float, report: int) -> None:
    """Serve in a session of its own, away from this folder and these streams."""

    def say(*fields: str) -> None:
        os.write(report, "\0".join(fields).encode())
        os.close(report)

    try:
        os.setsid()
        os.chdir("/")
        os.closerange(0, report)  # what the shell had open is not kept open: who waits for its end need not wait
        os.closerange(report + 1, os.sysconf("SC_OPEN_MAX"))
        for _ in range(3):
            os.open(os.devnull, os.O_RDWR)
        serve(folder, idle, lambda: say("serving", str(os.getpid())))
    except JacliError as error:
        say("refused", error.message, error.hint or "")
    finally:
        os._exit(0)


def stop(folder: str) -> int:
    """Have the server end; requests being answered are finished."""
    connection = meeting.connected(folder)
    if connection is None:
        write_error("note: no server is running\n")
        return 0
    with closing(connection):
        os.kill(meeting.peer(connection)[0], signal.SIGTERM)
    if not _wait(lambda: _unlocked(folder)):
        raise JacliError("the server does not stop", hint=f"kill {meeting.peer(connection)[0]}", kind="serve")
    return 0


def status(folder: str) -> int:
    """Say whether a server is there; 1 when there is none."""
    connection = meeting.connected(folder)
    if connection is None:
        write_output(b"no server is running\n")
        return 1
    with closing(connection):
        connection.settimeout(_PATIENCE)
        try:
            hello = meeting.receive(connection)
        except OSError:
            hello = None
    if hello is None:
        write_output(b"a server is running, but it does not answer\n")
        return 1
    likeness, process, since, idle = hello[0]
    up = (time.time() - int(since)) / 60
    lines = f"a server is running: process {int(process)}, for {up:.0f} minutes\n"
    lines += f"it ends after {float(idle) / 60:g} minutes without a request\n"
    if likeness != meeting.likeness():
        lines += "it does not serve this shell, whose jacli, interpreter, limits or settings are others\n"
    write_output(lines.encode())
    return 0


def _unlocked(folder: str) -> bool:
    lock = os.open(f"{folder}/lock", os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


def _wait(done: Callable[[], bool]) -> bool:
    """Whether it is done in time."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        if done():
            return True
        time.sleep(0.02)
    return False
