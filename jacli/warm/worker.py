"""One interpreter of the pool: it waits for a client, answers one request as a process of its own would, and ends."""

from __future__ import annotations

import fcntl
import os
import select
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from socket import MSG_DONTWAIT, MSG_PEEK, socket
from typing import NoReturn

from jacli.cli import BUG, INTERRUPTED
from jacli.warm import meeting

#: How long a client may take to send its request, in seconds.
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class Place:
    """What a worker gets to know.

    Attributes:
        listener: where clients connect; it does not block.
        alive: a pipe that ends when the server does.
        told: a pipe in which to tell the server that a client has come.
        about: what to say to a client that only asks: the server's process, since when it runs, its idle time-out.
        threads: how many threads torch has in a process of its own.
    """

    listener: socket
    alive: int
    told: int
    about: Sequence[bytes]
    threads: int


def work(place: Place) -> NoReturn:
    """Serve one request, and end."""
    import torch

    from jacli.warm.rehearsal import answer

    answer()
    torch.set_num_threads(place.threads)
    connection = _client(place.listener, place.alive)
    os.write(place.told, os.getpid().to_bytes(4, sys.byteorder))
    os.close(place.alive)
    os.close(place.told)
    place.listener.close()  # or a client could still connect when the server is gone
    with suppress(OSError):  # the client has left
        status = _guarded(connection, place.about)
        _watch(connection, on=False)
        connection.sendall(bytes(status))
    os._exit(0)


def _guarded(connection: socket, about: Sequence[bytes]) -> list[int]:
    try:
        return _answer(connection, about)
    except KeyboardInterrupt:
        return [INTERRUPTED]
    except OSError:
        raise
    except Exception as bug:  # noqa: BLE001 - it ends here, as in every process of jacli
        from jacli.cli.diagnostics import bug_report
        from jacli.cli.streams import write_error

        write_error(bug_report(bug))
        return [BUG]


def _client(listener: socket, alive: int) -> socket:
    """The next client. Ends the process when the server is no more."""
    while True:
        ready, _, _ = select.select([listener.fileno(), alive], [], [])
        if alive in ready:
            os._exit(0)
        with suppress(BlockingIOError, ConnectionAbortedError):  # another worker was faster
            return listener.accept()[0]


def _answer(connection: socket, about: Sequence[bytes]) -> list[int]:
    """Greet, receive, run: the exit status, or nothing when the client wanted no more than the greeting."""
    if meeting.peer(connection)[1] != os.getuid():
        return []
    connection.settimeout(_PATIENCE)
    meeting.send(connection, [meeting.likeness(), *about], [os.pidfd_open(os.getpid())])
    request = meeting.receive(connection)
    if request is None:
        return []
    connection.settimeout(None)
    _watch(connection, on=True)
    return [_run(*request)]


def _watch(connection: socket, *, on: bool) -> None:
    """Have the kernel end this process when the client is gone: SIGIO does that, even amid a long computation."""
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(connection, fcntl.F_GETFL)
    fcntl.fcntl(connection, fcntl.F_SETFL, flags | os.O_ASYNC if on else flags & ~os.O_ASYNC)
    if on:
        try:
            gone = not connection.recv(1, MSG_PEEK | MSG_DONTWAIT)
        except BlockingIOError:
            return
        if gone:
            os._exit(0)


def _run(fields: Sequence[bytes], descriptors: Sequence[int]) -> int:
    """Become the client's process: its folder, mask, environment, streams. Then run its words."""
    from jacli.cli import run

    mask, count = int(fields[0]), int(fields[1])
    words, settings = fields[2 : 2 + count], fields[2 + count :]
    os.umask(mask)
    os.fchdir(descriptors[3])
    os.environ.clear()
    for setting in settings:
        name, _, value = setting.partition(b"=")
        os.environb[name] = value
    for stream, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, stream)
    for descriptor in descriptors:
        os.close(descriptor)
    _open_streams()
    return run([os.fsdecode(word) for word in words])


def _open_streams() -> None:
    """Python's three, as a new process has them."""
    streams = {
        "stdin": open(0, closefd=False),  # noqa: SIM115
        "stdout": open(1, "w", closefd=False),  # noqa: SIM115
        "stderr": open(2, "w", 1, errors="backslashreplace", closefd=False),  # noqa: SIM115
    }
    for name, stream in streams.items():
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
