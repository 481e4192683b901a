"""A call of ``jacli`` where a server may be waiting: hand everything over, and end as the worker ends."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Sequence

#: How long a worker has to say hello, in seconds, before this process does the work itself.
_PATIENCE = 2.0

_BUG, _INTERRUPTED = 70, 130

_CRASHED = b"error: the server's process for this request was killed or crashed; JACLI_SERVER=off does without it\n"


def ask(words: Sequence[str]) -> int | None:
    """The exit status of a run by the warm server; None where this process has to do the work itself.

    Until the request is sent nothing has happened, so that whatever is not right is a reason to run here.
    """
    if not _worth_asking(words):
        return None
    from jacli.warm import meeting

    connection = meeting.connected(meeting.folder())
    if connection is None:
        return None
    try:
        worker = _handed_over(connection, words)
        return None if worker is None else _status(connection, worker)
    except KeyboardInterrupt:  # a worker that has lost its client ends
        return _INTERRUPTED
    finally:
        connection.close()


def _worth_asking(words: Sequence[str]) -> bool:
    """Whether anyone may be there, and the request means the same in another process.

    A path like /dev/fd/63 or /dev/tty means a file of this process; and a stream that is closed cannot be handed over.
    """
    if os.environ.get("JACLI_SERVER") == "off" or sys.platform != "linux" or words[:1] == ["serve"]:
        return False
    if None in (sys.stdin, sys.stdout, sys.stderr):
        return False
    return not any("/dev/" in word or "/proc/" in word for word in words)


def _handed_over(connection: socket, words: Sequence[str]) -> int | None:
    """A handle on the worker that has the whole request; None where there is no worker like this process."""
    from jacli.warm import meeting

    connection.settimeout(_PATIENCE)
    try:
        hello = meeting.receive(connection)
        if hello is None or hello[0][0] != meeting.likeness():
            return None
        meeting.send(connection, _request(words), [0, 1, 2, os.open(".", os.O_PATH | os.O_DIRECTORY)])
    except OSError:  # too slow, or it left before it had everything
        return None
    return hello[1][0]


def _request(words: Sequence[str]) -> list[bytes]:
    mask = os.umask(0o077)
    os.umask(mask)
    settings = [name + b"=" + value for name, value in os.environb.items()]
    return [b"%d" % mask, b"%d" % len(words), *map(os.fsencode, words), *settings]


def _status(connection: socket, worker: int) -> int:
    """What the worker says when it is done. Signals are for the worker, which knows how to end."""
    import _signal  # type: ignore[import-not-found]  # the rest of the module signal costs more than the call

    ended = []

    def end(number: int, _: object) -> None:
        ended.append(number)
        _tell(worker, number)

    if _signal.getsignal(_signal.SIGTERM) == _signal.SIG_DFL:
        _signal.signal(_signal.SIGTERM, end)
    connection.settimeout(None)
    while True:
        try:
            said = connection.recv(1)
        except KeyboardInterrupt:
            _tell(worker, _signal.SIGINT)
        except OSError:
            said = b""
            break
        else:
            break
    if said:
        return said[0]
    if ended:  # as a process that does the work itself
        _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)
        os.kill(os.getpid(), _signal.SIGTERM)
    os.write(2, _CRASHED)
    return _BUG


def _tell(worker: int, number: int) -> None:
    from contextlib import suppress
    from signal import pidfd_send_signal

    with suppress(OSError):  # it is done
        pidfd_send_signal(worker, number)
