"""The command line: real processes where it matters, in-process where it does not."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jacli.cli import run
from jacli.cli.argv import parse
from jacli.cli.commands import COMMANDS
from jacli.cli.diagnostics import excerpt, refusal
from jacli.cli.help import help_text
from jacli.errors import JacliError, Span
from jacli.result import Block, Entry, Named, Result

ROOT = Path(__file__).parent.parent
JACLI = [sys.executable, "-m", "jacli"]
CLEAN = {k: v for k, v in os.environ.items() if k not in ("JACLI_FORMAT", "NO_COLOR", "FORCE_COLOR", "COLUMNS")}


def process(
    *words: str | bytes, env: Mapping[str, str] | None = None, **more: Any
) -> subprocess.CompletedProcess[bytes]:
    more.setdefault("input", b"")
    environment = {**CLEAN, "PYTHONPATH": str(ROOT), **(env or {})}
    return subprocess.run([*JACLI, *words], capture_output=True, timeout=120, env=environment, **more)


def answer(status: str = "agree", *, remarks: tuple[str, ...] = ()) -> Result:
    block = Block("jacobian", ("f0",), ("x",), ((Entry(4.0, "2*x", "4", status),),))
    output = Named("f0", (), ("f0",), (4.0,), "x**2", ("4",))
    return Result("jacobian", "x^2", (output,), (Named("x", (), ("x",), (2.0,)),), (), (block,), remarks=remarks)


@dataclass
class Said:
    status: int
    out: bytes
    err: str


@dataclass
class Cli:
    """The command line in this process, over an API that remembers how it was called."""

    calls: list[tuple[str, dict[str, Any]]]
    say: Callable[..., Said]
    api: SimpleNamespace


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    calls: list[tuple[str, dict[str, Any]]] = []

    def jacobian(text: str, **arguments: Any) -> Result:
        calls.append((text, arguments))
        return answer()

    api = SimpleNamespace(jacobian=jacobian, vjp=jacobian, backward=jacobian)
    monkeypatch.setitem(sys.modules, "jacli.api", api)  # type: ignore[arg-type]
    for name in ("JACLI_FORMAT", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def say(*words: str) -> Said:
        status = run(words)
        out, err = capfdbinary.readouterr()
        return Said(status, out, err.decode())

    return Cli(calls, say, api)


# ---------------------------------------------------------------- what is asked


@pytest.mark.parametrize(
    ("words", "expression"),
    [
        (["-x**2 + y", "--at", "-1,2"], "-x**2 + y"),
        (["--at", "-1,2", "-x0+1"], "-x0+1"),
        (["--x + y", "--at=-1,2"], "--x + y"),
        (["-x", "--at", "-1"], "-x"),
        (["-h", "--at", "-1"], "-h"),
        (["--x1-x2", "--at", "-1,2"], "--x1-x2"),
        (["--expr=-x", "--at", "-1"], None),
        (["--at", "-1", "--", "--at"], "--at"),
        (["-1e-3*x", "--at", "-1"], "-1e-3*x"),
    ],
)
def test_a_minus_in_front_works_as_typed(words: list[str], expression: str | None) -> None:
    asked = parse(["jacobian", *words])
    assert asked.given["expression"] == expression
    assert asked.given["at"].startswith("-1")


def test_how_the_answer_is_shown_may_be_said_again(cli: Cli) -> None:
    said = cli.say("jacobian", "x^2", "--at", "2", "--format", "csv", "--format", "jsonl")
    assert (said.status, said.err) == (0, "")
    assert json.loads(said.out)["jacobian"] == [[4.0]]


def test_options_become_arguments(cli: Cli) -> None:
    said = cli.say("jacobian", "x^2", "--at", "2", "--wrt", "x", "--rtol", "1e-6", "--weights=-1")
    assert (said.status, said.err) == (0, "")
    assert cli.calls == [("x^2", {"at": "2", "wrt": "x", "rtol": 1e-6, "weights": "-1"})]
    cli.say("backward", "x^2", "--at", "2", "--gradient", "1", "--gradient", "-2", "--zero-grad")
    arguments = {"at": "2", "gradients": ("1", "-2"), "zero_grad": True, "retain_graph": False}
    assert arguments.items() <= cli.calls[1][1].items()


def test_the_expression_from_a_file_and_from_standard_input(cli: Cli, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes("\ufeffr = x\r\nr^2".encode())
    assert cli.say("jacobian", "--file", str(program), "--at", "2").status == 0
    assert cli.calls[0][0] == "r = x\nr^2"
    assert process("jacobian", "--file", "-", "--at", "2", input=b"\xff").stderr == (
        b"error: standard input is not UTF-8 text: byte 1 is 0xff\nhint: save it as UTF-8\n"
    )


def test_points_and_weights_come_through_pipes(cli: Cli, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = subprocess.Popen(["sh", "-c", f"echo 3,4 > {pipe}"])
    assert cli.say("vjp", "x*y", "--at", f"@{pipe}", "--weights", "1").status == 0
    assert writer.wait() == 0
    assert cli.calls[0][1]["at"] == "3,4\n"
    said = process("vjp", "x*y", "--at", "@-", "--weights", "1", "--format", "jsonl", input=b'{"x": 2, "y": 3}')
    assert json.loads(said.stdout)["vjp"] == [3.0, 2.0]


@pytest.mark.parametrize(
    ("words", "typed", "message"),
    [
        (["--at", "@-"], b"x=@/etc/passwd", b"error: what comes through a pipe cannot name a file\n"),
        (["--at", "@-"], b"\xff", b"error: standard input is not UTF-8 text: byte 1 is 0xff\n"),
        (["--at", "@-", "--weights", "@-"], b"1", b"error: standard input can be only one of what is asked for\n"),
        (["--at", "@/dev/zero"], b"", b"error: /dev/zero is longer than 16 MiB\n"),
        (["--at", "x=@/dev/zero"], b"", b"error: /dev/zero is no regular file\n"),
        (["--at", "@/"], b"", b"error: / is a directory\n"),
    ],
)
def test_what_a_pipe_cannot_be(words: list[str], typed: bytes, message: bytes) -> None:
    said = process("jacobian", "x", *words, input=typed)
    assert (said.returncode, said.stdout) == (2, b"")
    assert said.stderr.startswith(message)


def test_a_file_names_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "point").write_text("x=@/etc/passwd")
    said = process("jacobian", "x", "--at", "@point", cwd=tmp_path)
    assert said.returncode == 2
    assert b"point: a file cannot name another file\n" in said.stderr


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], 'error: a command is missing\nhint: type jacli jacobian "x0**2+x1, x1**3+2*x0" --at 2,4, or jacli --help'),
        (["jacobain", "x"], "error: there is no command jacobain\nhint: did you mean jacli jacobian?\n"),
        (["x**2", "--at", "2"], "hint: to differentiate an expression, type: jacli jacobian 'x**2' --at …\n"),
        (["--format", "csv", "grad"], "error: --format comes before any command\n"),
        (["jacobian", "x", "--frmat", "csv"], "error: jacobian has no option --frmat\nhint: did you mean --format?\n"),
        (["jacobian", "--x", "--at", "2"], "; an expression is typed --expr=--x\n"),
        (["jacobian", "x"], "error: jacobian needs --at\n"),
        (["vjp", "x", "--at", "2"], "error: vjp needs --weights\n"),
        (["jacobian", "--at", "2"], "error: an expression is missing\n"),
        (["jacobian", "x", "--at"], "error: --at needs a value\nhint: type --at POINT\n"),
        (["jacobian", "x", "--at", "--quiet"], "error: --at needs a value\n"),
        (["jacobian", "x", "+ y", "--at", "2"], "error: one expression is expected, and there are 2: x  + y\n"),
        (
            ["jacobian", "x", "--expr=y", "--at", "2"],
            "error: the expression is given twice, by the argument and --expr\n",
        ),
        (["jacobian", "x", "--at=", "2"], "error: --at needs a value\nhint: type --at POINT\n"),
        (["jacobian", "x", "--at", "2", "--output", ""], "error: --output needs a value\n"),
        (["jacobian", "x*y", "--at", "x=2", "--at", "y=3"], "error: --at is given twice\nhint: give it once"),
        (["jacobian", "x*y", "--at", "x=2", "y=3"], "hint: a point is one word, without blanks: --at x=2,y=3\n"),
        (["jacobian", "x*y", "x=2,", "y=3"], "hint: a point is one word, without blanks: --at x=2,y=3\n"),
        (["jacobian", "x*y", "-at", "2,3"], "hint: did you mean --at?\n"),
        (["jacobian", "x", "--at", "2", "-h"], "hint: did you mean --help?\n"),
        (["jacobian", "x", "--at", "2", "-o", "f"], "hint: did you mean --output?\n"),
        (["jacobian", "x", "--at", "2", "-v"], "hint: options begin with --: jacli jacobian --help lists them\n"),
        (["jacobian", "--", "-x", "--at", "2"], "hint: options stand before --, and only the expression behind it\n"),
        (["jacobian", "x", "--at", "2", "--json"], "hint: did you mean --format json?\n"),
        (["vjp", "x", "--at", "2", "--gradient", "1"], "hint: did you mean --weights?\n"),
        (["jvp", "x", "--at", "2", "--weights", "1"], "hint: did you mean --tangent?\n"),
        (["backward", "x", "--at", "2", "--grad-output", "1"], "hint: did you mean --gradient?\n"),
        (["jacobian", "x", "--point", "2"], "hint: did you mean --at?\n"),
        (["help"], "error: there is no command help\nhint: did you mean jacli --help?\n"),
        (["jacobian", "x", "--quiet=1"], "error: --quiet takes no value\n  --quiet=1\n         ^^\n"),
        (
            ["jacobian", "x", "--at", "2", "--format", "xml"],
            "error: --format has no format xml\nhint: the formats are table",
        ),
        (["jacobian", "x", "--at", "2", "--digits", "-1"], "error: --digits is a whole number from 1 to 40, not -1\n"),
        (["jacobian", "x", "--at", "2", "--digits", "²"], "error: --digits is a whole number"),
        (["jacobian", "x", "--at", "2", "--color", "yes"], "error: --color is auto, always or never, not yes\n"),
        (["jacobian", "x", "--at", "2", "--rtol", "nan"], "error: --rtol is a number from 0 up, not nan\n"),
        (
            ["jacobian", "--file", "/nowhere/f", "--at", "2"],
            "error: cannot read /nowhere/f: No such file or directory\n",
        ),
        (["jacobian", "--file", "/", "--at", "2"], "error: cannot read /: Is a directory\n"),
        (["jacobian", "--file", "/dev/zero", "--at", "2"], "error: /dev/zero is longer than 16 MiB\n"),
        (["functions", "sin"], "error: functions takes no sin\n"),
        (["functions", "--format", "npy"], "error: --format has no format npy\n"),
        (["functions", "--at", "2"], "error: functions has no option --at\n"),
    ],
)
def test_refusals_are_plain(cli: Cli, words: list[str], message: str) -> None:
    said = cli.say(*words)
    assert said.status == 2
    assert said.out == b""
    assert message in said.err
    assert said.err.startswith("error: ")
    assert not cli.calls


def test_an_error_shows_its_place(cli: Cli) -> None:
    def jacobian(text: str, **_: Any) -> Result:
        raise JacliError("there is no function sinn", Span(4, 8), "did you mean sin(x)?", text=text, kind="name")

    cli.api.jacobian = jacobian
    said = cli.say("jacobian", "x + sinn(x)", "--at", "2")
    assert (said.status, said.out) == (2, b"")
    assert said.err == "error: there is no function sinn\n  x + sinn(x)\n      ^^^^\nhint: did you mean sin(x)?\n"
    said = cli.say("jacobian", "x + sinn(x)", "--at", "2", "--format", "json")
    assert json.loads(said.err) == {
        "schema": "jacli/1",
        "error": {
            "kind": "name",
            "message": "there is no function sinn",
            "span": [4, 8],
            "hint": "did you mean sin(x)?",
        },
    }


def test_usage_errors_are_json_too_where_json_is_asked_for(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    said = cli.say("jacobian", "x", "--format=json", "--wieghts", "1")
    assert json.loads(said.err)["error"]["hint"] == "did you mean --weights?"
    monkeypatch.setenv("JACLI_FORMAT", "json")
    assert json.loads(cli.say("jacobian").err)["error"]["kind"] == "option"


@pytest.mark.parametrize(
    ("text", "span", "lines"),
    [
        ("x + y", Span(4, 5), ["  x + y", "      ^"]),
        ("x +", Span(3, 3), ["  x +", "     ^"]),
        ("a = 1\nb = 2 +\na*b", Span(13, 13), ["  line 2: b = 2 +", "                 ^"]),
        ("中 + €", Span(4, 5), ["  中 + €", "       ^"]),
        ("x\x1b[31m", Span(1, 2), ["  x\\x1b[31m", "   ^^^^"]),
        ("x" * 200, Span(100, 101), ["  … " + "x" * 121 + " …", " " * 64 + "^"]),
        ("x", Span(50, 60), ["  x", "   ^"]),
    ],
)
def test_excerpts(text: str, span: Span, lines: list[str]) -> None:
    assert excerpt(text, span) == lines


def test_an_error_cannot_command_the_terminal() -> None:
    shown = refusal(JacliError("there is no \x1b]0;owned\x07 here\nat all", hint="\x9b2J"), as_json=False)
    assert shown == "error: there is no \\x1b]0;owned\\x07 here at all\nhint: \\x9b2J\n"


def test_a_bug_is_one_line_and_70(cli: Cli) -> None:
    cli.api.jacobian = lambda *_, **__: 1 // 0
    said = cli.say("jacobian", "x", "--at", "2")
    assert (said.status, said.out) == (70, b"")
    assert said.err.startswith(
        "error: a bug in jacli: ZeroDivisionError: integer division or modulo by zero at jacli/cli/"
    )
    assert said.err.count("\n") == 1


def test_an_interrupt_is_130_and_silent(cli: Cli) -> None:
    def jacobian(*_: Any, **__: Any) -> Result:
        raise KeyboardInterrupt

    cli.api.jacobian = jacobian
    said = cli.say("jacobian", "x", "--at", "2")
    assert (said.status, said.out, said.err) == (130, b"", "")


# ---------------------------------------------------------------- what is said


@pytest.mark.parametrize("status", ["rounding", "disagree", "kink", "edge", "undefined"])
def test_an_entry_that_does_not_agree_is_status_1(cli: Cli, status: str) -> None:
    cli.api.jacobian = lambda *_, **__: answer(status)
    assert cli.say("jacobian", "x", "--at", "2").status == 1


def test_remarks_go_to_standard_error_and_quiet_says_nothing(cli: Cli) -> None:
    cli.api.jacobian = lambda *_, **__: answer("kink", remarks=("z is not used",))
    assert cli.say("jacobian", "x", "--at", "2").err == "note: z is not used\n"
    said = cli.say("jacobian", "x", "--at", "2", "--quiet")
    assert (said.status, said.out, said.err) == (1, b"", "")


def test_the_environment_sets_the_format_and_an_option_overrides_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JACLI_FORMAT", "json")
    assert json.loads(cli.say("jacobian", "x", "--at", "2").out)["jacobian"] == [[4.0]]
    assert cli.say("jacobian", "x", "--at", "2", "--format", "csv").out.startswith(b"quantity,row,column,value")
    monkeypatch.setenv("JACLI_FORMAT", "latex")
    assert cli.say("functions").status == 0
    monkeypatch.setenv("JACLI_FORMAT", "xml")
    assert cli.say("jacobian", "x", "--at", "2").err.startswith("error: JACLI_FORMAT has no format xml\n")


def test_digits_and_colour(cli: Cli) -> None:
    assert cli.say("jacobian", "x", "--at", "2", "--digits", "3", "--format", "csv").err == (
        "note: --digits does not apply to csv, which always has full precision\n"
    )
    assert b"\x1b[" not in cli.say("jacobian", "x", "--at", "2").out
    assert b"\x1b[" in cli.say("jacobian", "x", "--at", "2", "--color", "always").out


def test_a_file_is_written_whole_or_not_at_all(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "out"
    said = cli.say("jacobian", "x", "--at", "2", "--format", "json", "--output", str(target))
    assert (said.status, said.out) == (0, b"")
    assert json.loads(target.read_text())["verdict"] == "agree"
    assert target.stat().st_mode & 0o777 == 0o666 & ~current_umask()

    target.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(target)
    cli.api.jacobian = lambda *_, **__: 1 // 0
    assert cli.say("jacobian", "x", "--at", "2", "--output", str(link)).status == 70
    assert json.loads(target.read_text())["verdict"] == "agree"
    cli.api.jacobian = lambda *_, **__: answer("kink")
    assert cli.say("jacobian", "x", "--at", "2", "--format", "json", "--output", str(link)).status == 1
    assert link.is_symlink()
    assert json.loads(target.read_text())["verdict"] == "kink"
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "out"]


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_file_that_cannot_be_written_is_refused_before_computing(cli: Cli, tmp_path: Path) -> None:
    for path, why in ((tmp_path, "Is a directory"), (tmp_path / "no" / "out", "No such file or directory")):
        said = cli.say("jacobian", "x", "--at", "2", "--output", str(path))
        assert (said.status, said.err) == (2, f"error: cannot write {path}: {why}\n")
    assert not cli.calls


def test_devices_are_written_and_stay_devices(cli: Cli) -> None:
    assert cli.say("jacobian", "x", "--at", "2", "--output", "/dev/null").status == 0
    assert not Path("/dev/null").is_file()
    said = cli.say("jacobian", "x", "--at", "2", "--output", "/dev/full")
    assert (said.status, said.err) == (2, "error: cannot write /dev/full: No space left on device\n")
    assert cli.say("jacobian", "x", "--at", "2", "--output", "-").out.startswith(b"variables")


# ---------------------------------------------------------------- real processes


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["functions"],
        ["functions", "--format", "json"],
        ["jacobian", "--help"],
        ["jacobian", "x", "--frmat", "csv"],
        ["jacobian", "x"],
        ["jacobian", "--file", "/nowhere", "--at", "2"],
    ],
)
def test_help_functions_and_refusals_load_nothing_heavy(words: list[str]) -> None:
    code = (
        "import sys, json; from jacli.cli import run; status = run(json.loads(sys.argv[1]));"
        "heavy = {'torch', 'sympy', 'numpy', 'flint', 'mpmath', 'scipy'} & set(sys.modules);"
        "sys.exit(99 if heavy else status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(words)], capture_output=True, cwd=ROOT, timeout=60, env=CLEAN
    )
    refused = done.returncode == 2
    assert done.returncode in (0, 2), done.stderr
    assert bool(done.stdout) != refused
    assert bool(done.stderr) == refused


def test_help_names_every_command_and_every_option() -> None:
    top = help_text(None)
    for command in COMMANDS.values():
        assert f"  {command.name} " in top
        detail = " ".join(help_text(command).split())
        assert command.example in detail
        for option in command.options:
            assert f" {option.name} {option.metavar}".rstrip() + " " in detail
    assert "..." not in top
    assert max(map(len, top.splitlines())) <= 80


def test_version() -> None:
    import tomllib

    from jacli.version import __version__

    assert process("--version").stdout == f"jacli {__version__}\n".encode()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["hatch"]["version"]["path"] == "jacli/version.py"


def test_functions_in_every_format() -> None:
    from jacli.functions import TABLE

    names = [row.signature for row in TABLE]
    listed = json.loads(process("functions", "--format", "json").stdout)
    assert [row["function"] for row in listed["functions"]] == names
    for name in ("table", "plain", "csv", "tsv", "jsonl", "markdown"):
        said = process("functions", "--format", name)
        assert said.returncode == 0
        assert b"sin(x)" in said.stdout
        assert b"\x1b" not in said.stdout


def test_words_and_names_that_are_not_utf8_are_refused() -> None:
    said = process("jacobian", b"x\xff", "--at", "2")
    assert (said.returncode, said.stdout) == (2, b"")
    assert said.stderr == b"error: word 2 of the command line is not UTF-8 text\n"


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8", "en_US.ISO-8859-1"])
def test_output_is_utf8_in_every_locale(locale: str) -> None:
    env = {"LC_ALL": locale, "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    said = process("jacobian", "é", "--frmat", "ü", env=env)
    assert said.stderr.decode() == "error: jacobian has no option --frmat\nhint: did you mean --format?\n"
    assert "é²".encode() in process("é²", env=env).stderr


def test_a_closed_pipe_is_silent() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    for words in (["functions"], ["--help"], ["functions", "--format", "json"]):
        done = subprocess.run([*JACLI, *words], stdout=writer, stderr=subprocess.PIPE, cwd=ROOT, env=CLEAN, timeout=60)
        assert (done.returncode, done.stderr) == (0, b"")
    os.close(writer)


def test_closed_streams_and_full_disks() -> None:
    shell = " ".join(JACLI)
    for redirect in (">&-", "2>&-", ">&- 2>&-", "<&-"):
        done = subprocess.run(["sh", "-c", f"{shell} functions {redirect}"], cwd=ROOT, env=CLEAN, capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
    done = subprocess.run(["sh", "-c", f"{shell} functions >/dev/full"], cwd=ROOT, env=CLEAN, capture_output=True)
    assert done.returncode == 2
    assert done.stderr == b"error: cannot write to standard output: No space left on device\n"


def on_a_terminal(*words: str, env: Mapping[str, str]) -> str:
    master, slave = pty.openpty()
    done = subprocess.Popen([*JACLI, *words], stdout=slave, stderr=slave, cwd=ROOT, env={**CLEAN, **env})
    os.close(slave)
    seen = b""
    try:
        while block := os.read(master, 65536):
            seen += block
    except OSError:  # the terminal's other end is closed: all has been said
        pass
    os.close(master)
    done.wait(60)
    return seen.decode()


@pytest.mark.parametrize(
    ("env", "coloured"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm", "NO_COLOR": "", "FORCE_COLOR": "0"}, True),
    ],
)
def test_colour_on_a_terminal(env: Mapping[str, str], coloured: bool) -> None:
    assert ("\x1b[1m" in on_a_terminal("functions", env=env)) is coloured
    assert "\x1b[" not in on_a_terminal("functions", "--color", "never", env=env)


def test_binary_is_not_for_a_terminal() -> None:
    said = on_a_terminal("jacobian", "x", "--at", "2", "--format", "npy", env={"TERM": "xterm"})
    assert said.startswith("error: npy is not text, and standard output is a terminal\r\nhint: send it to a file with")


# ---------------------------------------------------------------- the whole way


def test_the_main_job() -> None:
    said = process("jacobian", "x0**2+x1, x1**3+2*x0", "--at", "2,4", "--weights", "1,2", "--format", "json")
    document = json.loads(said.stdout, parse_constant=pytest.fail)
    assert (said.returncode, said.stderr) == (0, b"")
    assert document["jacobian"] == [[4.0, 1.0], [2.0, 48.0]]
    assert document["symbolic"] == [["2*x0", "1"], ["2", "3*x1**2"]]
    assert document["exact"] == [["4", "1"], ["2", "48"]]
    assert (document["vjp"], document["vjp_exact"]) == ([8.0, 97.0], ["8", "97"])
    assert document["verdict"] == "agree"


def test_the_same_request_gives_the_same_bytes() -> None:
    words = ("vjp", "-x**2 + sin(y)*b, b/x", "--at", "-1,2,3", "--weights", "-1,2")
    surroundings = [
        {"PYTHONHASHSEED": "1"},
        {"PYTHONHASHSEED": "2", "LC_ALL": "C", "FORCE_COLOR": "1"},
        {"GITHUB_ACTIONS": "true", "COLUMNS": "40", "TERM": "xterm-256color", "_JACLI_COMPLETE": "bash_source"},
    ]
    seen = {process(*words, env=env).stdout for env in surroundings}
    assert len(seen) == 1
    assert b"verdict: agree" in seen.pop()


def test_an_interrupt_in_the_middle_is_silent() -> None:
    import signal

    words = [*JACLI, "jacobian", "--file", "-", "--at", "1"]
    child = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=CLEAN
    )
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(2)  # it reads standard input, which says nothing
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out, err) == (130, b"", b"")


def test_a_narrow_terminal_gets_every_number() -> None:
    words = ("jacobian", "x0/7, x1/3", "--at", "1,2")
    said = on_a_terminal(*words, env={"TERM": "dumb", "COLUMNS": "46"})
    assert "…" not in said
    assert max(map(len, said.replace("\r", "").splitlines())) <= 46
    for number in ("0.14285714285714285", "0.14285714285714285714", "0.3333333333333333", "0.33333333333333333333"):
        assert number in said
