"""The server: it imports everything, forks workers in advance, and puts a new one in the place of each that is taken.

It answers nothing itself. The kernel gives each client to one of the waiting workers, and whatever happens to a worker
is of no concern to the server or to another worker.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from socket import AF_UNIX, SOCK_STREAM, socket
from typing import NoReturn

from jacli.errors import JacliError
from jacli.warm import meeting
from jacli.warm.worker import Place, work

#: Workers that wait, and workers altogether. A client for whom there is none does its work itself.
_WAITING, _MOST = 4, 64

#: Seconds until another try where something kills the workers or keeps them from being forked.
_BREATH = 1.0

_STOP = frozenset((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
_SIGNALS = _STOP | {signal.SIGCHLD}


def serve(place: str, idle: float, ready: Callable[[], None]) -> None:
    """Serve until a signal says stop, or nobody has come for ``idle`` seconds. Requests being answered are finished.

    Raises:
        JacliError: when there is a server already, or the folder is not private.
    """
    from jacli.warm.rehearsal import rehearse

    with _locked(place) as lock, _listening(place) as listener:
        rehearse()
        pool = Pool.around(listener, idle, private=(lock,))
        ready()
        pool.run()


@contextmanager
def _locked(folder: str) -> Iterator[int]:
    """The folder, for one server at a time."""
    try:
        os.makedirs(folder, 0o700, exist_ok=True)  # noqa: PTH103
    except OSError as error:
        raise JacliError(f"cannot make {folder}: {error.strerror}", kind="file") from None
    if not meeting.is_private(folder):
        hint = "it must be a directory of yours with mode 700, and no link"
        raise JacliError(f"others may enter {folder}", hint=hint, kind="file")
    lock = os.open(f"{folder}/lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield lock
    except BlockingIOError:
        raise JacliError("a server is running already", hint="jacli serve --stop stops it", kind="serve") from None
    finally:
        os.close(lock)


@contextmanager
def _listening(folder: str) -> Iterator[socket]:
    """The socket, in the place of what a server that was killed may have left."""
    path = meeting.address(folder)
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108
    listener = socket(AF_UNIX, SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        listener.bind(path)
    except OSError as error:
        raise JacliError(f"cannot listen at {path}: {error.strerror or error}", kind="file") from None
    finally:
        os.umask(mask)
    listener.listen(_MOST)
    listener.setblocking(False)  # a worker that was too slow goes on waiting
    try:
        yield listener
    finally:
        listener.close()
        with suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108


@dataclass(slots=True)
class Pool:
    """The workers.

    Attributes:
        place: what a worker gets to know.
        idle: how many seconds without an event end the server.
        private: open files that are not for workers.
        taken: where workers say that a client has come.
        woken: where signals arrive.
        waiting: the processes that nobody has asked anything yet.
        busy: the others.
    """

    place: Place
    idle: float
    private: tuple[int, ...]
    taken: int
    woken: int
    waiting: set[int] = field(default_factory=set)
    busy: set[int] = field(default_factory=set)

    @classmethod
    def around(cls, listener: socket, idle: float, private: tuple[int, ...]) -> Pool:
        """An empty pool. From now on signals arrive in a pipe."""
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # no other thread may run here: a fork would lose it, and what it holds
        alive, ours = os.pipe()
        taken, told = os.pipe()
        woken, waker = os.pipe()
        for descriptor in (taken, waker):
            os.set_blocking(descriptor, False)
        for number in _SIGNALS:
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(waker)
        about = (b"%d" % os.getpid(), b"%d" % time.time(), b"%g" % idle)
        place = Place(listener, alive, told, about, threads)
        return cls(place, idle, (*private, ours, taken, woken, waker), taken, woken)

    def run(self) -> None:
        """Keep workers waiting until it is time to stop; those that wait then end by themselves."""
        last = time.monotonic()
        while True:
            self._fill()
            patience = None if self.busy else max(0.0, last + self.idle - time.monotonic())
            if not self.waiting:
                patience = _BREATH
            ready, _, _ = select.select([self.taken, self.woken], [], [], patience)
            if self.woken in ready and _STOP.intersection(os.read(self.woken, 4096)):
                return
            if ready:
                last = time.monotonic()
                self._count()
            elif not self.busy and time.monotonic() >= last + self.idle:
                return

    def _count(self) -> None:
        """Who has been taken, and who has ended: asked in the other order, for the dead have said all they will."""
        dead = set(_dead())
        came = set(self._came())
        untouched = dead & self.waiting - came
        self.waiting -= came | dead
        self.busy = (self.busy | came) - dead
        if untouched:
            time.sleep(_BREATH)

    def _came(self) -> Iterator[int]:
        with suppress(BlockingIOError):
            while told := os.read(self.taken, 4):
                yield int.from_bytes(told, sys.byteorder)

    def _fill(self) -> None:
        if self.busy and len(self.waiting) > _WAITING // 2:
            return  # the request first: a new worker has much to do, and can wait for the end of that
        with suppress(OSError):  # no memory, or too many processes: later, perhaps
            while len(self.waiting) < _WAITING and len(self.waiting) + len(self.busy) < _MOST:
                self.waiting.add(self._fork())

    def _fork(self) -> int:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            process = os.fork()
            if process == 0:
                self._become_worker()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        return process

    def _become_worker(self) -> NoReturn:
        try:
            os.setsid()  # the server's terminal is not the client's
            signal.set_wakeup_fd(-1)
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            for descriptor in self.private:
                os.close(descriptor)
            work(self.place)
        finally:
            os._exit(1)


def _dead() -> Iterator[int]:
    with suppress(ChildProcessError):
        while process := os.waitpid(-1, os.WNOHANG)[0]:
            yield process
