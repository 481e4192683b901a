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
        worker = _hello(connection)
        if worker is None:
            return None
        _hand_over(connection, words)
        return _status(connection, worker)
    except OSError:  # it left before it had the whole request
        return None
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


def _hello(connection: socket) -> int | None:
    """A handle on the worker's process, if it is there and like this one."""
    from jacli.warm.meeting import likeness, receive

    connection.settimeout(_PATIENCE)
    hello = receive(connection)
    if hello is None or hello[0][0] != likeness():
        return None
    return hello[1][0]


def _hand_over(connection: socket, words: Sequence[str]) -> None:
    from jacli.warm.meeting import send

    mask = os.umask(0o077)
    os.umask(mask)
    settings = [name + b"=" + value for name, value in os.environb.items()]
    counts = [b"%d" % number for number in (mask, len(words))]
    here = os.open(".", os.O_PATH | os.O_DIRECTORY)
    send(connection, [*counts, *map(os.fsencode, words), *settings], [0, 1, 2, here])


def _status(connection: socket, worker: int) -> int:
    """What the worker says when it is done. An interrupt is for the worker, which knows how to end."""
    connection.settimeout(None)
    while True:
        try:
            said = connection.recv(1)
            break
        except KeyboardInterrupt:
            from signal import SIGINT, pidfd_send_signal

            pidfd_send_signal(worker, SIGINT)
        except OSError:
            said = b""
            break
    if said:
        return said[0]
    os.write(2, _CRASHED)
    return _BUG
