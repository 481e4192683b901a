"""The warm server: it answers as a cold run does, and what happens to one request is nothing to another.

No test measures time; whatever may take a while is waited for.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
JACLI = [sys.executable, "-m", "jacli"]
ELSEWHERE = 99
ONLY_ASK = f"""
import os, sys
from jacli.warm.client import ask
status = ask(sys.argv[1:])
os._exit({ELSEWHERE} if status is None else status)
"""
ASK = [sys.executable, "-c", ONLY_ASK]
CLEAN = {k: v for k, v in os.environ.items() if k not in ("JACLI_FORMAT", "JACLI_SERVER", "NO_COLOR", "COLUMNS")}
WAIT = 120

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the server needs Linux")

Done = subprocess.CompletedProcess[bytes]


def wait_for(condition: Callable[[], Any]) -> Any:
    """What it gives as soon as it gives something."""
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.05)
    pytest.fail(f"waited in vain for {condition}")


@dataclass(frozen=True)
class Home:
    """A runtime directory of its own, and jacli in it."""

    path: Path

    @property
    def folder(self) -> Path:
        return self.path / "jacli"

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return {**CLEAN, "PYTHONPATH": str(ROOT), "XDG_RUNTIME_DIR": str(self.path), **(more or {})}

    def jacli(self, *words: str | bytes, env: Mapping[str, str] | None = None, **more: Any) -> Done:
        more.setdefault("input", b"")
        return subprocess.run(
            [*JACLI, *words], capture_output=True, timeout=WAIT, env=self.environment(env), check=False, **more
        )

    def cold(self, *words: str | bytes, env: Mapping[str, str] | None = None, **more: Any) -> Done:
        return self.jacli(*words, env={"JACLI_SERVER": "off", **(env or {})}, **more)

    def served(self, *words: str | bytes, env: Mapping[str, str] | None = None, **more: Any) -> Done:
        """By the server and nothing else; asked again while a machine is too slow for a worker's hello."""
        more.setdefault("input", b"")
        for _ in range(20):
            done = self.ask(*words, env=env, **more)
            if done.returncode != ELSEWHERE:
                return done
        pytest.fail("the server does not answer")

    def ask(self, *words: str | bytes, env: Mapping[str, str] | None = None, **more: Any) -> Done:
        more.setdefault("input", b"")
        return subprocess.run(
            [*ASK, *words], capture_output=True, timeout=WAIT, env=self.environment(env), check=False, **more
        )

    def asking(self, *words: str) -> tuple[subprocess.Popen[bytes], int]:
        """A client whose request waits for standard input, and the worker that it waits in."""
        server = wait_for(self.server)
        for _ in range(20):
            client = subprocess.Popen(
                [*ASK, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self.environment(),
            )
            assert client.stdin is not None
            pipe = Path(f"/proc/self/fd/{client.stdin.fileno()}").readlink()
            worker = wait_for(lambda c=client, p=pipe: c.poll() or reader(server, p))
            if client.poll() is None:
                return client, int(worker)
        pytest.fail("the server does not answer")

    def server(self) -> int:
        """Its process, from what --status says."""
        said = self.jacli("serve", "--status")
        found = re.search(rb"process (\d+)", said.stdout)
        return int(found[1]) if found else 0

    def start(self, *words: str) -> None:
        done = self.jacli("serve", "--background", *words)
        assert (done.returncode, done.stdout) == (0, b""), done.stderr


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def reader(server: int, pipe: Path) -> int | None:
    """The worker whose standard input is this pipe."""
    for worker in children(server):
        with suppress(OSError):
            if Path(f"/proc/{worker}/fd/0").readlink() == pipe:
                return worker
    return None


def ended(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # it ends while it is looked at
        return True


def make_home() -> Iterator[Home]:
    path = Path(tempfile.mkdtemp(prefix="jacli-test-"))  # a short path: a socket's has no more than 107 bytes
    home = Home(path)
    yield home
    home.jacli("serve", "--stop")
    shutil.rmtree(path)


@pytest.fixture
def home() -> Iterator[Home]:
    yield from make_home()


@pytest.fixture(scope="module")
def warm() -> Iterator[Home]:
    for home in make_home():
        home.start()
        yield home


# ---------------------------------------------------------------- the same bytes

MAIN = ("x0**2+x1, x1**3+2*x0", "--at", "2,4")

REQUESTS: list[tuple[tuple[str | bytes, ...], dict[str, Any]]] = [
    (("jacobian", *MAIN, "--weights", "1,2"), {}),
    (("jacobian", *MAIN, "--weights", "1,2", "--format", "json"), {}),
    (("jacobian", *MAIN, "--format", "npy"), {}),
    (("jacobian", *MAIN, "--color", "always"), {"env": {"TERM": "xterm", "COLUMNS": "50"}}),
    (("jacobian", *MAIN), {"env": {"JACLI_FORMAT": "csv"}}),
    (("vjp", "a @ w", "--at", "a=[[1,2],[3,4]],w=[5,6]", "--weights", "1,2", "--format", "plain"), {}),
    (("jvp", "x*y, sin(x)", "--at", "1,2", "--tangent", "1,0", "--format", "jsonl"), {}),
    (("grad", "-x*exp(-y)", "--at", "x=-1,y=1/3,z=2", "--digits", "5"), {}),
    (("hessian", "x**2*y", "--at", "1,2", "--format", "latex"), {}),
    (("backward", "x**2 + y", "--at", "3,1", "--explain"), {}),
    (("check", "x**2, y", "--at", "1,2", "--claim", "2*x, 0; 0, 2"), {}),
    (("jacobian", "abs(x), sqrt(x)", "--at", "0"), {}),
    (("jacobian", "abs(x)", "--at", "0", "--quiet"), {}),
    (("jacobian", "--file", "-", "--at", "2"), {"input": "r = π*x\nr^2\n".encode()}),
    (("jacobian", "x*y", "--points", "-", "--format", "csv"), {"input": b"x,y\n1,2\n3,oops\n5,6\n"}),
    (("jacobian", "x + sinn(x)", "--at", "2"), {}),
    (("jacobian", "x + y", "--at", "2", "--format", "json"), {}),
    (("jacobian", b"x\xff", "--at", "2"), {}),
    (("jacobian", "", "--at", "2"), {}),
    ((), {}),
    (("--help",), {}),
    (("jvp", "--help"), {}),
    (("functions", "--format", "tsv"), {}),
]


@pytest.mark.parametrize(("words", "more"), REQUESTS)
def test_a_served_run_is_a_cold_run(warm: Home, words: tuple[str | bytes, ...], more: dict[str, Any]) -> None:
    cold, served = warm.cold(*words, **more), warm.served(*words, **more)
    assert served.returncode == cold.returncode
    assert served.stdout == cold.stdout
    assert served.stderr == cold.stderr


def test_files_are_those_of_the_clients_folder(warm: Home, tmp_path: Path) -> None:
    (tmp_path / "program").write_text("x^2")
    (tmp_path / "point.json").write_text('{"x": 3}')
    words = ("grad", "--file", "program", "--at", "@point.json", "--format", "json", "--output", "result")
    done = warm.served(*words, cwd=tmp_path, umask=0o027)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    served = (tmp_path / "result").read_bytes()
    assert (tmp_path / "result").stat().st_mode & 0o777 == 0o640
    (tmp_path / "result").unlink()
    warm.cold(*words, cwd=tmp_path)
    assert (tmp_path / "result").read_bytes() == served


def on_a_terminal(command: list[str], env: Mapping[str, str], size: tuple[int, int]) -> tuple[int, bytes]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", *size, 0, 0))
    done = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env)
    os.close(slave)
    seen = b""
    try:
        while block := os.read(master, 65536):
            seen += block
    except OSError:  # the terminal's other end is closed: all has been said
        pass
    os.close(master)
    return done.wait(WAIT), seen


def test_the_terminal_is_the_clients(warm: Home) -> None:
    env = {"TERM": "xterm"}
    words = ["jacobian", "x0/7, abs(x1)", "--at", "1,0"]
    cold = on_a_terminal([*JACLI, *words], warm.environment({**env, "JACLI_SERVER": "off"}), (24, 46))
    for _ in range(20):
        served = on_a_terminal([*ASK, *words], warm.environment(env), (24, 46))
        if served[0] != ELSEWHERE:
            break
    assert served == cold
    assert b"\x1b[" in served[1]
    assert served[0] == 1


def test_a_closed_pipe_is_silent(warm: Home) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    for _ in range(20):
        done = subprocess.run(
            [*ASK, "functions"],
            stdout=writer,
            stderr=subprocess.PIPE,
            env=warm.environment(),
            timeout=WAIT,
            check=False,
        )
        if done.returncode != ELSEWHERE:
            break
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_closed_streams_and_files_of_the_process_are_answered_cold(warm: Home) -> None:
    assert warm.ask("jacobian", "x", "--at", "@/dev/fd/63").returncode == ELSEWHERE
    assert warm.ask("serve", "--status").returncode == ELSEWHERE
    for redirect in (">&-", "2>&-", "<&-"):
        words = ["sh", "-c", f'"$@" {redirect}', "sh", *ASK, "functions"]
        done = subprocess.run(words, env=warm.environment(), capture_output=True, check=False)
        assert done.returncode == ELSEWHERE
    bash = shutil.which("bash")
    if bash:
        line = f"{sys.executable} -m jacli grad --file <(echo 'x^2') --at 3 --format csv"
        done = subprocess.run([bash, "-c", line], env=warm.environment(), capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


def test_a_client_that_is_not_alike_is_answered_cold(warm: Home) -> None:
    assert warm.ask("--version", env={"JACLI_SERVER": "off"}).returncode == ELSEWHERE
    assert warm.ask("--version", env={"OMP_NUM_THREADS": "7"}).returncode == ELSEWHERE
    limited = ["sh", "-c", 'ulimit -n 200; "$@"', "sh", *ASK, "--version"]
    assert subprocess.run(limited, env=warm.environment(), check=False).returncode == ELSEWHERE
    said = warm.jacli("serve", "--status", env={"OMP_NUM_THREADS": "7"})
    assert b"does not serve this shell" in said.stdout
    assert warm.jacli("--version", env={"OMP_NUM_THREADS": "7"}).returncode == 0


# ---------------------------------------------------------------- what may happen to a request


def test_a_worker_that_is_killed_leaves_the_server_alive(warm: Home) -> None:
    client, worker = warm.asking("jacobian", "--file", "-", "--at", "1")
    os.kill(worker, signal.SIGKILL)
    out, err = client.communicate(timeout=WAIT)
    assert (client.returncode, out) == (70, b"")
    assert err.startswith(b"error: the server's process for this request was killed or crashed")
    assert warm.served("--version").returncode == 0


def test_an_interrupt_is_the_workers(warm: Home) -> None:
    client, worker = warm.asking("jacobian", "--file", "-", "--at", "1")
    client.send_signal(signal.SIGINT)
    client.wait(WAIT)  # with its standard input open: it is not the end of that that ends it
    out, err = client.communicate()
    assert (client.returncode, out, err) == (130, b"", b"")
    wait_for(lambda: ended(worker))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_told_to_end_leaves_whole_rows(warm: Home, tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "p.csv").write_bytes(b"".join(b"%d.5\n" % n for n in range(100_000)))
    words = (
        "grad",
        "sin(x)",
        "--points",
        str(tmp_path / "p.csv"),
        "--check",
        "all",
        "--output",
        str(tmp_path / "o.npy"),
    )
    client = subprocess.Popen([*JACLI, *words], env=warm.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: (tmp_path / "o.npy").exists() and (tmp_path / "o.npy").stat().st_size >= 192)
    client.send_signal(number)
    assert client.communicate(timeout=60) == (b"", b"")
    assert client.returncode in (130, -number)  # on a busy machine it may come before the client listens
    assert len((tmp_path / "o.npy").read_bytes()) >= 192


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_a_worker_without_a_client_ends(warm: Home, number: signal.Signals) -> None:
    client, worker = warm.asking("jacobian", "--file", "-", "--at", "1")
    client.send_signal(number)
    client.wait(WAIT)
    client.communicate()
    assert client.returncode == -number
    wait_for(lambda: ended(worker))


def test_requests_at_the_same_time(warm: Home) -> None:
    env = warm.environment()
    words = [[*JACLI, "grad", f"x^{power}", "--at", "2", "--format", "json"] for power in range(2, 14)]
    running = [subprocess.Popen(w, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=env) for w in words]
    for power, client in enumerate(running, start=2):
        out, _ = client.communicate(timeout=WAIT)
        assert client.returncode == 0
        assert f'"grad": [{power * 2.0 ** (power - 1)}]'.encode() in out


def test_the_server_has_one_thread(warm: Home) -> None:
    server = warm.server()
    assert [task.name for task in Path(f"/proc/{server}/task").iterdir()] == [str(server)]


# ---------------------------------------------------------------- the server's life


def test_start_status_stop(home: Home) -> None:
    assert home.jacli("serve", "--status").stdout == b"no server is running\n"
    assert home.jacli("serve", "--status").returncode == 1
    assert home.jacli("serve", "--stop").stderr == b"note: no server is running\n"
    home.start()
    server = wait_for(home.server)
    assert stat_mode(home.folder) == 0o700
    assert stat_mode(home.folder / "socket") == 0o600
    assert home.jacli("serve", "--background").stderr == b"note: a server is running already\n"
    again = home.jacli("serve")
    assert (again.returncode, again.stderr.splitlines()[0]) == (2, b"error: a server is running already")
    client, worker = home.asking("grad", "--file", "-", "--at", "3", "--format", "csv")
    waiting = set(children(server)) - {worker}
    assert home.jacli("serve", "--stop").returncode == 0
    wait_for(lambda: ended(server) and all(map(ended, waiting)))
    assert not (home.folder / "socket").exists()
    assert client.communicate(b"x^2", timeout=WAIT)[0].startswith(b"quantity")  # it was let finish
    assert home.ask("--version").returncode == ELSEWHERE
    assert home.jacli("--version").returncode == 0


def stat_mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_socket_of_a_dead_server_is_replaced(home: Home) -> None:
    home.folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(home.folder / "socket"))
    assert home.ask("--version").returncode == ELSEWHERE
    home.start()
    server = wait_for(home.server)
    left = children(server)
    os.kill(server, signal.SIGKILL)
    wait_for(lambda: all(map(ended, left)))
    assert home.ask("--version").returncode == ELSEWHERE
    home.start()
    assert home.served("--version").returncode == 0


def test_a_folder_that_others_may_enter_is_not_used(home: Home) -> None:
    home.start()
    home.folder.chmod(0o755)
    assert home.ask("--version").returncode == ELSEWHERE
    refused = home.jacli("serve")
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert refused.stderr.startswith(b"error: others may enter ")
    home.folder.chmod(0o700)
    assert home.served("--version").returncode == 0
    home.jacli("serve", "--stop")
    shutil.rmtree(home.folder)
    (home.path / "elsewhere").mkdir(mode=0o700)
    home.folder.symlink_to(home.path / "elsewhere")
    assert home.jacli("serve").returncode == 2


def test_nobody_comes(home: Home) -> None:
    home.start("--idle", "0.001")
    wait_for(lambda: not (home.folder / "socket").exists())
    wait_for(lambda: home.jacli("serve", "--status").returncode == 1)


def test_in_the_foreground(home: Home) -> None:
    with subprocess.Popen([*JACLI, "serve"], stderr=subprocess.PIPE, env=home.environment()) as server:
        assert server.stderr is not None
        assert server.stderr.readline() == b"note: serving as process %d; Ctrl-C stops\n" % server.pid
        assert home.served("--version").returncode == 0
        server.send_signal(signal.SIGINT)
        assert server.wait(WAIT) == 0
        assert server.stderr.read() == b""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--stop", "--status"], b"error: --stop and --status cannot be had together\n"),
        (["--idle", "soon"], b"error: --idle is a number of minutes, not soon\n"),
        (["--idle", "0"], b"error: --idle is a number of minutes, not 0\n"),
        (["x"], b"error: serve takes no x\n"),
        (["--digits", "3"], b"error: serve has no option --digits\n"),
    ],
)
def test_refusals(home: Home, words: list[str], message: bytes) -> None:
    said = home.jacli("serve", *words)
    assert (said.returncode, said.stdout) == (2, b"")
    assert said.stderr.startswith(message)


def test_a_place_that_cannot_be_had_is_refused(home: Home) -> None:
    deep = home.path / ("d" * 100)
    deep.mkdir(mode=0o700)
    said = home.jacli("serve", env={"XDG_RUNTIME_DIR": str(deep)})
    assert (said.returncode, said.stderr.split(b":")[1]) == (2, b" cannot listen at " + bytes(deep) + b"/jacli/socket")
    assert home.jacli("--version", env={"XDG_RUNTIME_DIR": str(deep)}).returncode == 0
