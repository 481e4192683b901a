"""What client and server agree on: where they meet, how they tell that they are alike, and how they talk.

The client imports this on every call: nothing here may import more than it must, not even ``socket``, ``struct`` or
``typing``, which cost as much as the rest of a call.
"""

from __future__ import annotations

import os
import sys
from _socket import AF_UNIX, SO_PEERCRED, SOCK_STREAM, SOL_SOCKET, socket

from jacli import __path__ as package
from jacli.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Environment variables that Python and libraries read once, when they start: with others the answer could be another.
_READ_AT_START = ("PYTHON", "OMP_", "KMP_", "GOMP_", "MKL_", "OPENBLAS_", "LD_", "TORCH", "PYTORCH", "ATEN_", "SYMPY_")

#: How many resource limits Linux knows (what ulimit shows).
_LIMITS = 16

_SCM_RIGHTS = 1
_BYTES_OF_LENGTH = 8


def folder() -> str:
    """The folder of the socket: of this user, for this user only."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isdir(runtime):  # noqa: PTH112 - pathlib costs more than the call
        return f"{runtime}/jacli"
    return f"{os.environ.get('TMPDIR') or '/tmp'}/jacli-{os.getuid()}"  # noqa: S108 - its owner and mode are checked


def is_private(path: str) -> bool:
    """Whether a folder is this user's and nobody else can enter it."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    directory = found.st_mode & 0o170000 == 0o040000
    return directory and found.st_uid == os.getuid() and not found.st_mode & 0o077


def address(place: str) -> str:
    """The socket in its folder."""
    return f"{place}/socket"


def likeness() -> bytes:
    """Everything in which a served run could differ from one of this process; both sides must have the same."""
    from resource import getrlimit

    settings = sorted(item for item in os.environ.items() if item[0].startswith(_READ_AT_START))
    limits = [getrlimit(which) for which in range(_LIMITS)]
    interpreter = (sys.version, sys.prefix, tuple(sys.flags), sys.warnoptions, sys.getfilesystemencoding())
    return repr((__version__, list(package), interpreter, limits, settings)).encode("utf-8", "backslashreplace")


def connected(place: str) -> socket | None:
    """A connection to the server that listens there, if there is one and it is this user's."""
    if not is_private(place):
        return None
    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        connection.connect(address(place))
        if peer(connection)[1] == os.getuid():
            return connection
    except OSError:
        pass
    connection.close()
    return None


def peer(connection: socket) -> tuple[int, int]:
    """Process and user at the other end, as the kernel knows them; of a server, the process that listens."""
    credentials = connection.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)
    process, user = (int.from_bytes(credentials[i : i + 4], sys.byteorder) for i in (0, 4))
    return process, user


def send(connection: socket, fields: Sequence[bytes], descriptors: Sequence[int] = ()) -> None:
    """One message: texts without NUL, and open files."""
    data = b"\0".join(fields)
    packed = b"".join(number.to_bytes(4, sys.byteorder) for number in descriptors)
    ancillary = [(SOL_SOCKET, _SCM_RIGHTS, packed)] if descriptors else []
    connection.sendmsg([len(data).to_bytes(_BYTES_OF_LENGTH, "big")], ancillary)
    connection.sendall(data)


def receive(connection: socket) -> tuple[list[bytes], list[int]] | None:
    """The next message; None when there is no whole one to come."""
    head, ancillary, *_ = connection.recvmsg(_BYTES_OF_LENGTH, 64)
    descriptors = [
        int.from_bytes(packed[i : i + 4], sys.byteorder) for _, _, packed in ancillary for i in range(0, len(packed), 4)
    ]
    size = int.from_bytes(head, "big")
    data = bytearray()
    while len(data) < size:
        block = connection.recv(min(size - len(data), 2**20))
        if not block:
            break
        data += block
    if len(head) < _BYTES_OF_LENGTH or len(data) < size:
        return None
    return bytes(data).split(b"\0"), descriptors
