"""Many points: data first, then the real process."""

from __future__ import annotations

import io
import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import jacli
from jacli.cli import points as jacli_points
from jacli.cli import run
from jacli.errors import JacliError
from jacli.stream import bulk
from jacli.stream import source as stream_source
from jacli.stream.documents import Documents
from jacli.stream.source import Feed

ROOT = Path(__file__).parent.parent
JACLI = [sys.executable, "-m", "jacli"]
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("JACLI")} | {"PYTHONPATH": str(ROOT)}


@dataclass
class Outcome:
    status: int
    out: str
    err: str

    @property
    def rows(self) -> list[str]:
        return self.out.splitlines()


@pytest.fixture
def ask(tmp_path: Path, capfdbinary, monkeypatch):
    """Run a command in this process on a file with the given bytes; ``{}`` stands for the file."""
    monkeypatch.delenv("JACLI_FORMAT", raising=False)

    def call(data: bytes, *words: str, name: str = "p.csv") -> Outcome:
        path = tmp_path / name
        path.write_bytes(data)
        capfdbinary.readouterr()
        status = run([*words, "--points", str(path)])
        out, err = capfdbinary.readouterr()
        return Outcome(status, out.decode(), err.decode())

    return call


def process(*words: str, data: bytes = b"", **more) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*JACLI, *words], input=data, capture_output=True, timeout=120, env=CLEAN, **more)


# ---- what is read

TWO = ["1,1.0,2.0,2.0,2.0,1.0,agree", "2,3.0,4.0,12.0,4.0,3.0,agree"]
HEADED = [f"{int(row[0]) + 1}{row[1:]}" for row in TWO]


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (b"1,2\n3,4\n", TWO),
        (b"1,2\n3,4", TWO),
        (b"1,2\r\n3,4\r\n", TWO),
        (b"\xef\xbb\xbf1,2\n3,4\n", TWO),
        (b"1;2\n3;4\n", TWO),
        (b"1\t2\n3\t4\n", TWO),
        (b"1 2\n  3   4 \n", TWO),
        (b'"1","2"\n"3","4"\n', TWO),
        (b" 1 , 2\n3,4.0\n", TWO),
        (b"+1,2.\n3e0,40E-1\n", TWO),
        (b"sqrt(1),4/2\n3,2*2\n", TWO),
        (b"x,y\n1,2\n3,4\n", HEADED),
        (b'"x","y"\r\n1,2\r\n3,4\r\n', HEADED),
        (b"x y\n1 2\n3 4\n", HEADED),
        (b"# measured\n1,2\n3,4\n", HEADED),
        (b"\n1,2\n3,4\n", HEADED),
        (b"1,2\n\n\n3,4\n\n", [TWO[0], "4" + TWO[1][1:]]),
    ],
)
def test_what_is_read(ask, data, rows) -> None:
    found = ask(data, "jacobian", "x*y", "--format", "csv")
    assert (found.status, found.err) == (0, "")
    assert found.rows == ["line,x,y,f0,df0/dx,df0/dy,status", *rows]


@pytest.mark.parametrize(
    ("data", "words", "header", "row"),
    [
        (b"y,x\n2,1\n", (), "line,y,x,f0,df0/dy,df0/dx,status", "2,2.0,1.0,0.5,-0.25,0.5,agree"),
        (b"y,x\n2,1\n", ("--vars", "x,y"), "line,x,y,f0,df0/dx,df0/dy,status", "2,1.0,2.0,0.5,0.5,-0.25,agree"),
        (b"2,1\n", ("--vars", "y,x"), "line,y,x,f0,df0/dy,df0/dx,status", "1,2.0,1.0,0.5,-0.25,0.5,agree"),
        (b"id,x,y\na,1,2\n", (), "line,x,y,f0,df0/dx,df0/dy,status", "2,1.0,2.0,0.5,0.5,-0.25,agree"),
        (b"1,2\n", ("--wrt", "y"), "line,x,y,f0,df0/dy,status", "1,1.0,2.0,0.5,-0.25,agree"),
    ],
)
def test_columns_bind_by_name_or_in_order(ask, data, words, header, row) -> None:
    found = ask(data, "jacobian", "x/y", "--format", "csv", *words)
    assert found.rows == [header, row]


def test_arrays_are_columns(ask) -> None:
    found = ask(b"a[0],a[1],x\n1,2,3\n", "jacobian", "x*a[0]*a[1], a@a", "--format", "jsonl")
    assert json.loads(found.out) == {
        "line": 2,
        "at": {"a[0]": 1.0, "a[1]": 2.0, "x": 3.0},
        "value": [6.0, 5.0],
        "jacobian": [[6.0, 3.0, 2.0], [2.0, 4.0, 0.0]],
        "status": "agree",
    }
    assert ask(b"1,2,3\n", "grad", "v@v", "--format", "csv").rows[1] == "1,1.0,2.0,3.0,14.0,2.0,4.0,6.0,agree"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b'{"x": 1, "y": 2}\n{"y": 4, "x": 3, "id": "b"}\n', 0),
        (b'[1, 2]\n\n[3, "2*2"]\n', 0),
        (b"[1, 2]\n[3, 4]\n[5, true]\n[6]\n7\n{}\nnonsense\n[1e999, 1]\n", 1),
    ],
)
def test_json_lines(ask, data, status) -> None:
    found = ask(data, "jacobian", "x*y", "--format", "csv", name="p.jsonl")
    assert found.status == status
    assert [row.split(",", 1)[1] for row in found.rows[1:]] == [row.split(",", 1)[1] for row in TWO]
    assert found.err.count("error: line") == (6 if status else 0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "there are no points in"),
        (b"\n\n# nothing\n", "there are no points in"),
        (b"1,2,3\n4,5,6\n", "the expression has 2 variables (x, y) but the points have 3 values"),
        (b"a,b\n1,2\n", "x and y have no column among a, b"),
        (b"x,b\n1,2\n", "y has no column among x, b"),
        (b"x,y\n", "there are no points in"),
        (b"x,y\n\n# nothing\n", "there are no points in"),
        (b"x,y", "there are no points in"),
        (b"x,x\n1,2\n", "two columns are named x"),
        (b"\x93NUMPY", "is not text"),
    ],
)
def test_what_is_refused(ask, data, message) -> None:
    found = ask(data, "jacobian", "x*y")
    assert found.status == 2
    assert message in found.err
    assert found.out == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--at", "1,2"), "the points are given twice"),
        (("--check", "some"), "--check is suspect, all, none, not some"),
        (("--resume",), "--resume needs the file to go on with"),
        (("--format", "latex"), "has no format latex"),
        (("--format", "npy"), "npy is not"),
        (("--wrt", "z"), "--wrt names z"),
    ],
)
def test_options_that_do_not_fit(ask, words, message) -> None:
    found = ask(b"1,2\n", "jacobian", "x*y", *words)
    assert found.status == 2
    assert message in found.err


def test_options_for_points_need_points(capfdbinary) -> None:
    assert run(["grad", "x", "--at", "1", "--strict"]) == 2
    assert b"--strict goes with --points" in capfdbinary.readouterr().err


# ---- bad lines

ODD = b"1,2\n3,4\n5;6\n7,8\n"


def test_one_bad_line_in_a_stream() -> None:
    found = process("jacobian", "x*y", "--points", "-", "--format", "csv", data=ODD)
    assert found.returncode == 1
    assert found.stdout.decode().splitlines()[1:] == [*TWO, "4,7.0,8.0,56.0,8.0,7.0,agree"]
    assert b"line 3" in found.stderr
    assert b"5;6" in found.stderr


def test_in_a_table_too() -> None:
    found = process("jacobian", "x*y", "--points", "-", data=ODD)
    assert found.returncode == 1
    lines = [row.split()[1] for row in found.stdout.decode().splitlines() if "agree" in row and "verdict" not in row]
    assert lines == ["1", "2", "4"]


def test_strict_stops(ask) -> None:
    found = ask(ODD, "jacobian", "x*y", "--format", "csv", "--strict")
    assert found.status == 1
    assert found.rows[1:] == TWO
    assert "line 3" in found.err
    assert "stopped" in found.err


def test_bad_lines_are_told_in_words(ask) -> None:
    data = b"1,2\n,2\n1,nan\n1,two\n\xff,1\n1e999,1\n1,2,3\n__import__('os'),1\n3,4\n"
    found = ask(data, "jacobian", "x*y", "--format", "csv")
    assert [int(row.split(",")[0]) for row in found.rows[1:]] == [1, 9]
    assert [f"line {n}:" in found.err for n in range(1, 10)] == [False, *[True] * 7, False]
    assert "Traceback" not in found.err


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        ("p.csv", b"1,5;2", "1,5 is not one number: decimals take a point, as 1.5"),
        ("p.jsonl", b'{"x": 1e400, "y": 1}', "beyond the range of doubles"),
        ("p.jsonl", b'{"x": ' + b"9" * 5000 + b', "y": 1}', "beyond the range of doubles"),
        ("p.jsonl", b'{"x": NaN, "y": 1e400}', "not valid JSON"),
        ("p.jsonl", b'{"x": 1e400, "y": 1', "not valid JSON"),
        ("p.jsonl", b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b"}", "not valid JSON"),
    ],
)
def test_what_is_wrong_with_a_line(ask, name, line, words) -> None:
    good = b"1.5;2\n" if name == "p.csv" else b'{"x": 1, "y": 2}\n'
    found = ask(good + line + b"\n" + good, "grad", "x*y", "--format", "csv", name=name)
    assert (found.status, len(found.rows)) == (1, 3)
    assert "error: line 2: " in found.err
    assert words in found.err
    first = ask(line + b"\n" + good, "grad", "x*y", "--format", "csv", name=name)
    assert words in first.err
    assert first.status == (2 if "JSON" in words else 1)


ODD_DOCUMENTS = [
    *(
        f'{{"x": {cell}, "y": 2}}'
        for cell in ("true", "null", '"2"', '"2*2"', "[2]", "{}", "1e999", "9" * 400, "-0", "01")
    ),
    *(f"[{cell}, 2]" for cell in ("true", "null", '"2"', '"2*2"', "[2]", "{}", "1e999", "9" * 400, "-0", "01")),
    *("[1, 2, 3]", "[1]", "[]", "{}", '{"y": 2}', '{"x": 1, "y": 2, "z": [}]}', '{"x": 1, "y": 2, "z": "}{"}', "3"),
    *(
        "[1, 2],[3, 4]",
        "[1\n2]",
        "[1,\n2]",
        '{"x": 1\n"y": 2}',
        '{"x": 1, "z": "\n", "y": 2}',
        "",
        " ",
        "[1, 2] [3, 4]",
    ),
    *('{"x": 1, "y": 2, "x": 5}', "[1, 2]\r", '{"y": 2, "x": 1}', "[1,2", "1,2]", "\x00", "]["),
]


@pytest.mark.parametrize("good", ['{"x": 1, "y": 2}', "[1, 2]"])
@pytest.mark.parametrize("odd", ODD_DOCUMENTS)
def test_documents_read_at_once_are_those_read_one_by_one(good, odd, monkeypatch) -> None:
    def read(*lines: str) -> list:
        data = "".join(line + "\n" for line in lines).encode()
        (rows,) = Documents(Feed(io.BytesIO(data), len(data)), "p.jsonl").read((0, 1))
        return [rows.lines.tolist(), repr(rows.numbers.tolist()), rows.bad]

    assert read(good, good) == [[1, 2], "[[1.0, 2.0], [1.0, 2.0]]", ()]
    texts = [(good, odd, good), (good, odd), (good, odd, "")]
    at_once = [read(*text) for text in texts]
    monkeypatch.setattr(Documents, "_at_once", lambda *_: None)
    assert at_once == [read(*text) for text in texts]


@pytest.mark.parametrize("width", [0, 2])
def test_no_points_in_binary_files(ask, tmp_path, width) -> None:
    np.save(tmp_path / "q.npy", np.empty((0, width)))
    found = ask((tmp_path / "q.npy").read_bytes(), "grad", "x*y", "--format", "csv", name="p.npy")
    assert (found.status, found.out) == (2, "")
    assert "there are no points in" in found.err
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"x": [1.0], "y": [2.0]}).slice(0, 0), tmp_path / "q.parquet")
    found = ask((tmp_path / "q.parquet").read_bytes(), "grad", "x*y", "--format", "csv", name="p.parquet")
    assert (found.status, found.out) == (2, "")
    assert "there are no points in" in found.err


@pytest.mark.parametrize("cell", ["@secret.txt", "x=@secret.txt", "[@secret.txt]", "@"])
@pytest.mark.parametrize("name", ["p.csv", "p.jsonl"])
def test_points_open_no_files(ask, tmp_path, monkeypatch, name, cell) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.txt").write_text("42")
    line = json.dumps([cell, 3]) if name == "p.jsonl" else f"{cell},3"
    good = b"[1, 2]\n" if name == "p.jsonl" else b"1,2\n"
    found = ask(good + line.encode() + b"\n", "jacobian", "x*y", "--format", "csv", name=name)
    assert (found.status, len(found.rows)) == (1, 2)
    assert "error: line 2: " in found.err
    assert "42" not in found.out


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("true null {} [] [5] [[5]] 1_000 0x10 Infinity -NaN 1e999 1e-400 0.{400}1 9**9**9 1,5 5;6", False),
        ("-0 -0.0 01 +1 .5 5. 1e5 1E-5 --1 9007199254740993 18446744073709551617 1e-320 1/3 pi", True),
    ],
)
def test_a_cell_is_a_number_wherever_it_stands(ask, text, plain) -> None:
    """A block of nothing but plain numbers is read at once, any other line by line: the same is read."""
    for word in text.replace("{400}", "0" * 400).split():
        rows = ask(f"1\n{word}\n".encode(), "grad", "x", "--format", "csv").rows[1:]
        slowly = ask(f"1\n{word}\nbad\n".encode(), "grad", "x", "--format", "csv").rows[1:]
        assert (word, rows) == (word, slowly)
        assert len(rows) == 1 + plain
        if plain:
            (at,) = jacli.grad("x", word).variables
            assert repr(float(rows[1].split(",")[1])) == repr(at.values[0])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'"1",2\r3', "the quoted cells cannot be read"),
        (b'"' + b"1" * 200_000 + b'",2', "the quoted cells cannot be read"),
        (b"{},2", "'{' cannot stand here"),
        (b"[5],2", "[5] is not one number"),
        (b"1e-400,2", "beyond the range of doubles"),
        (b'{"x": [], "y": 2}', "an array needs at least one entry"),
        (b'{"x": [[1, 2], [3]], "y": 2}', "the rows of an array need one length"),
        (b'{"x": [1, [2]], "y": 2}', "the rows of an array need one length"),
        (b'{"x": ' + b"[" * 900 + b"1" + b"]" * 900 + b', "y": 2}', "an array is nested too deeply"),
        (b'{"x": {"a": 1}, "y": 2}', "is not a number"),
        (b'{"x": null, "y": 2}', "null is not a number"),
        (b'{"x": "[5]", "y": 2}', "[5] is not one number"),
        (b'{"x": 1e-400, "y": 2}', "beyond the range of doubles"),
    ],
)
@pytest.mark.parametrize("first", [False, True])
def test_odd_lines_are_reported_and_the_rest_goes_on(ask, line, words, first) -> None:
    name, good = ("p.jsonl", b'{"x":1,"y":2}\n') if line[:2] == b'{"' else ("p.csv", b"1,2\n")
    if first and name == "p.csv":
        good = b"x,y\n" + good
    data = (
        line + b"\n" + good
        if first and name == "p.jsonl"
        else good + line + b"\n" + good[-len(b"1,2\n") :] * (name == "p.csv")
    )
    found = ask(data, "jacobian", "x*y", "--format", "csv", name=name)
    assert found.status == 1
    assert words in found.err
    assert found.err.count("error: ") == 1
    assert len(found.rows) == (3 if name == "p.csv" else 2)


def test_a_name_that_an_object_has_twice(ask) -> None:
    good = b'{"x":1,"y":2}\n'
    for line in (b'{"x":1,"x":3,"y":1}', b'{"x" :1,"x":3,"y":1}', b'{"x":1,"x":3,"t":"12:30"}'):
        found = ask(good + line + b"\n", "jacobian", "x*y", "--format", "csv", name="p.jsonl")
        assert (found.status, len(found.rows), "line 2: x is given twice" in found.err) == (1, 2, True)
    found = ask(b'{"x":1,"y":2,"t":"12:30"}\n{"x" :3, "y": 4}\n', "jacobian", "x*y", "--format", "csv", name="p.jsonl")
    assert found.rows[1:] == TWO


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b",x,y\n0,1,2\n1,3,4\n", "p.csv"),  # as pandas writes
        (b"x,y,comment (free)\n1,2,a\n3,4,b\n", "p.csv"),
        (b"id,id,,x,,y\n1,2,,1,,2\n1,2,,3,,4\n", "p.csv"),
        (b'"x";"y";"a;b"\n1;2;"c;d"\n3;4;\n', "p.csv"),
        (b'\xef\xbb\xbf"x","y"\n1,2\n3,4\n', "p.csv"),
        (b'\xef\xbb\xbf{"x":1,"y":2}\n{"x":3,"y":4}\n', "p.jsonl"),
        (b'\n\r\n{"x":1,"y":2}\n{"x":3,"y":4}\n', "p.jsonl"),
        (b'{"x":1,"y":2,"tags":[]}\n{"x":3,"y":4,"tags":[[1],2]}\n', "p.jsonl"),
    ],
)
def test_what_the_program_does_not_use_may_be_odd(ask, data, name) -> None:
    found = ask(data, "jacobian", "x*y", "--format", "csv", name=name)
    assert found.status == 0
    assert [row.split(",", 1)[1] for row in found.rows[1:]] == [row.split(",", 1)[1] for row in TWO]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"y [m],x [m]\n2,1\n", "x and y have no column among y [m], x [m]"),
        (b"1,2\r3,4\r", "end with CR alone"),
        ("x,y\n1,2\n".encode("utf-16"), "is not UTF-8 text"),
    ],
)
def test_what_could_be_misread_is_refused(ask, data, words) -> None:
    found = ask(data, "jacobian", "x*y", "--format", "csv")
    assert (found.status, found.out) == (2, "")
    assert words in found.err


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (-5, 2), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, -2), }",
        b"{[]: 1}",
        b"-" * 9000 + b"1",
    ],
)
def test_odd_headers_of_arrays(ask, header) -> None:
    data = b"\x93NUMPY\x01\x00" + (len(header) + 1).to_bytes(2, "little") + header + b"\n" + bytes(48)
    found = ask(data, "jacobian", "x*y", "--format", "csv", name="p.npy")
    assert (found.status, found.out) == (2, "")
    assert "error: " in found.err


def test_whole_numbers_too_long_for_doubles_are_rounded_in_parquet(ask, tmp_path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"x": [2**53 + 1, 3]}), tmp_path / "q.parquet")
    found = ask((tmp_path / "q.parquet").read_bytes(), "grad", "2*x", "--format", "csv", name="p.parquet")
    assert [row.split(",")[1] for row in found.rows[1:]] == ["9007199254740992.0", "3.0"]


def test_names_that_come_long_before_the_points(ask, monkeypatch) -> None:
    monkeypatch.setattr(stream_source, "BLOCK", 10)
    assert ask(b"# one\n# two\n\nx,y\n\n# measured later\n\n1,2\n", "grad", "x*y", "--format", "csv").rows[1:] == [
        "8,1.0,2.0,2.0,2.0,1.0,agree"
    ]


def test_quiet_says_nothing(ask) -> None:
    found = ask(ODD, "jacobian", "x*y", "--quiet")
    assert (found.status, found.out, found.err) == (1, "", "")


# ---- what is found


@pytest.mark.parametrize(
    ("command", "text", "row", "status"),
    [
        ("grad", "abs(x)", b"0", "kink"),
        ("grad", "abs(x - 0.1 - 0.2)", b"0.3", "kink"),
        ("grad", "sqrt(x)", b"0", "edge"),
        ("grad", "log(x)", b"-1", "undefined"),
        ("grad", "1/x", b"0", "undefined"),
        ("grad", "floor(x)", b"2", "undefined"),
        ("grad", "max(x, x**2)", b"1", "kink"),
        ("grad", "where(x < 1, x, 2*x)", b"1", "undefined"),
        ("grad", "(1-cos(x))/x**2", b"1e-7", "rounding"),
        ("jacobian", "(x - y)**3/(x**3 - y**3)", b"1,-1e-9", "rounding"),  # both sides of the difference round alike
        ("jacobian", "(x - y)**3/(x**3 - y**3)", b"3,1e-300", "rounding"),
        ("jacobian", "softmax([x, y, 0])[0]", b"700,0.5", "rounding"),
        ("grad", "where(x > 0, sqrt(x), -x)", b"-4", "agree"),
        ("grad", "expm1(x)/x", b"1e-9", "agree"),
        ("grad", "x**y", b"2,3", "agree"),
        ("hessian", "x**3*y", b"2,3", "agree"),
        ("hessian", "abs(x)*x", b"0", "kink"),
    ],
)
def test_statuses_are_those_of_one_point(ask, command, text, row, status) -> None:
    found = ask(row + b"\n", command, text, "--format", "csv")
    assert found.rows[1].rsplit(",", 1)[1] == status
    assert found.status == (status != "agree")
    alone = getattr(jacli, command)(text, row.decode())
    assert alone.verdict == status


@pytest.mark.parametrize(
    ("text", "typed", "status"),
    [
        ("abs(3*x - 1)", "1/3", "kink"),
        ("abs(x - 0.3)", "0.3", "kink"),
        ("abs(x - 0.3)", "0.30000000000000001", "rounding"),
        ("abs(x - 0.3)", "2.999999999999999889e-01", "rounding"),
        ("abs(x - 2**53)", "9007199254740993", "rounding"),
        ("abs(sin(x))", "2*pi/2", "kink"),
        ("abs(x - sqrt(2))", "sqrt(2)", "kink"),
        ("tan(x)", "pi/2", "undefined"),
        ("cos(x)", "pi/2", "agree"),
        ("floor(3*x)", "2/3", "undefined"),
    ],
)
@pytest.mark.parametrize("name", ["p.csv", "p.jsonl"])
def test_a_number_is_what_was_typed_and_not_the_double_next_to_it(ask, text, typed, status, name) -> None:
    plain = typed.replace(".", "").replace("e-", "").isdigit()
    line = f"[{typed}]" if plain else json.dumps([typed])
    found = ask(f"{typed if name == 'p.csv' else line}\n".encode(), "grad", text, "--format", "csv", name=name)
    assert found.rows[1].rsplit(",", 1)[1] == status
    assert jacli.grad(text, typed).verdict == status


PROGRAMS = [
    ("sin(x)*y, x**2/y + exp(-y)", 2),
    ("where(x > 0, log(x), x*y), max(x, y), abs(x - y)", 2),
    ("hypot(x, y), atan2(y, x), tanh(x*y)", 2),
    ("erf(x), lgamma(x**2 + 1), sigmoid(y), gelu(x*y)", 2),
    ("softmax([x, y, x*y]), norm([x, y])", 2),
    ("a = [[x, y], [z, 1]]; det(a), (a @ a)[0,1], trace(a)", 3),
]


@pytest.mark.parametrize(("text", "count"), PROGRAMS)
@pytest.mark.parametrize("command", ["jacobian", "vjp", "jvp"])
def test_the_numbers_are_those_of_one_point(command, text, count) -> None:
    points = np.random.default_rng(3).normal(size=(7, count))
    size = len(jacli.jacobian(text, points[0]).block("jacobian").row_names)
    given = {"vjp": {"weights": list(range(size))}, "jvp": {"tangent": [2, 0, -1][:count]}}.get(command, {})
    many = jacli.at_points(text, points, command, **given)
    for row, point in enumerate(points):
        one = getattr(jacli, command)(text, point, *given.values())
        values = [[entry.value for entry in line] for line in one.block(command).rows]
        assert many.derivative[row].reshape(-1) == pytest.approx(np.array(values).reshape(-1), rel=1e-12, abs=1e-14)
        assert many.status[row] == one.verdict


def test_every_check_finds_the_same() -> None:
    points = np.random.default_rng(4).normal(size=(50, 2))
    suspect, every, formulas = (
        jacli.at_points("x*exp(y), x/y", points, check=check) for check in ("suspect", "all", "none")
    )
    assert set(suspect.status) == set(every.status) == {"agree"}
    assert set(formulas.status) == {"unchecked"}
    np.testing.assert_allclose(suspect.derivative, formulas.derivative, rtol=1e-13)
    np.testing.assert_array_equal(suspect.derivative, every.derivative)


def test_single_precision_is_judged_as_such() -> None:
    points = np.random.default_rng(5).normal(size=(200, 2))
    found = jacli.at_points("sin(x)*y, x**2/y", points, dtype="float32")
    assert found.derivative.dtype == np.float32
    assert set(found.status) == {"agree"}
    apart = jacli.at_points("sin(x), y**2", points, dtype="float32")  # no output depends on everything
    assert set(apart.status) == {"agree"}
    cancelling = jacli.at_points("(1 - cos(x))/x", [[1e-3]], "grad", dtype="float32")
    assert cancelling.status.tolist() == ["rounding"]


@pytest.mark.parametrize(
    ("text", "x", "status", "words"),
    [
        ("exp(x)", 100.0, "rounding", "exp(x) is too large for single precision"),
        ("1/x", 1e30, "agree", ""),  # no number of single precision is nearer than 0
        ("x*1e40", 1.0, "rounding", "too large for single precision"),
        ("abs(x - 16777217)", 2.0**24, "rounding", "single precision may take the other side"),
        ("abs(x)", 1e-50, "kink", "the slope is -1 on the left and 1 on the right"),
        ("exp(x)", 1e39, "undefined", "the point is beyond the range of single precision"),
        ("x**3", 1 / 3, "agree", ""),
        ("(1 + x)**2 - 2*x", 1e-9, "rounding", "no digit is right"),
        ("log(1 + x) - x", 1e-5, "rounding", "rounding in single precision loses the others"),
    ],
)
def test_single_precision_has_a_range_and_digits_of_its_own(text, x, status, words) -> None:
    found = jacli.at_points(text, [[x]], "grad", dtype="float32", check="all")
    assert found.status.tolist() == [status]
    assert words in found.reasons.get(0, "")


def test_what_rounding_of_single_precision_does_not_explain_is_an_alarm(monkeypatch) -> None:
    truth = bulk.Autograd.__call__
    monkeypatch.setattr(
        bulk.Autograd, "__call__", lambda self, columns: [part * 1.001 for part in truth(self, columns)]
    )
    found = jacli.at_points("sin(x)*y", [[1.0, 2.0]], dtype="float32")
    assert found.status.tolist() == ["disagree"]


def test_cuda(ask) -> None:
    torch = pytest.importorskip("torch")
    words = ("jacobian", "x*y", "--format", "csv", "--device", "cuda")
    if not torch.cuda.is_available():
        found = ask(b"1,2\n", *words)
        assert (found.status, "no CUDA device" in found.err) == (2, True)
        pytest.skip("torch finds no CUDA device on this machine")
    assert ask(b"1,2\n3,4\n", *words).rows[1:] == TWO


def test_from_python() -> None:
    found = jacli.at_points("a @ x", {"a": np.ones((3, 2)), "x": [[1, 2], [3, 4], [5, 6]]}, "grad")
    assert found.variables == ("a[0]", "a[1]", "x[0]", "x[1]")
    assert found.derivative.tolist() == [[1, 2, 1, 1], [3, 4, 1, 1], [5, 6, 1, 1]]
    with pytest.raises(JacliError, match="vjp needs weights"):
        jacli.at_points("x", [[1.0]], "vjp")


# ---- what is written


def test_numbers_read_back_as_they_were(ask) -> None:
    points = np.random.default_rng(6).normal(size=(300, 2)) * 10.0 ** np.random.default_rng(7).integers(-9, 9, (300, 2))
    data = "".join(f"{x!r},{y!r}\n" for x, y in points.tolist()).encode()
    for name, separator in (("csv", ","), ("tsv", "\t")):
        found = ask(data, "jacobian", "x*y", "--format", name)
        assert found.status == 0
        rows = [[float(cell) for cell in row.split(separator)[1:-1]] for row in found.rows[1:]]
        expected = [[x, y, x * y, y, x] for x, y in points.tolist()]
        assert rows == expected


@pytest.mark.parametrize("name", ["p.csv", "p.npy"])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("program", ["sin(x), cos(x)", "x, x", "x*x, x*x, 2, x"])
def test_numbers_lie_in_memory_as_they_like(ask, tmp_path, name, count, program) -> None:
    array = np.arange(1.0, count + 1)[:, None]
    np.save(tmp_path / "saved.npy", array)
    data = (tmp_path / "saved.npy").read_bytes() if name == "p.npy" else b"".join(b"%d\n" % x for x in array[:, 0])
    single = [jacli.jacobian(program, [float(x)], vars="x") for x in array[:, 0]]
    expected = [[row[0].value for row in one.block("jacobian").rows] for one in single]
    found = ask(data, "jacobian", program, "--format", "jsonl", name=name)
    assert (found.status, found.err) == (0, "")
    assert [[row[0] for row in json.loads(line)["jacobian"]] for line in found.rows] == expected
    found = ask(data, "jacobian", program, "--format", "csv", name=name)
    assert (found.status, found.err) == (0, "")
    cells = [line.split(",")[2 + len(expected[0]) : -1] for line in found.rows[1:]]
    assert [list(map(float, row)) for row in cells] == expected


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("format_name", ["csv", "tsv", "jsonl"])
def test_npy_to_text(ask, tmp_path, width, format_name) -> None:
    program = ("grad", ("x*x", "x*y", "x*y*z")[width - 1])
    np.save(tmp_path / "saved.npy", np.arange(1.0, 4 * width + 1).reshape(4, width))
    found = ask((tmp_path / "saved.npy").read_bytes(), *program, "--format", format_name, name="q.npy")
    assert (found.status, found.err) == (0, "")
    assert len(found.rows) == 4 + (format_name != "jsonl")


def test_a_missing_number_is_no_zero(ask) -> None:
    assert ask(b"-1\n", "grad", "log(x)", "--format", "csv").rows[1] == "1,-1.0,,-1.0,undefined"
    document = json.loads(ask(b"-1\n", "grad", "log(x)", "--format", "jsonl").out)
    assert (document["value"], document["grad"]) == ([None], [-1.0])


def test_npy_keeps_places(ask, tmp_path) -> None:
    out = tmp_path / "o.npy"
    assert ask(ODD, "jacobian", "x*y", "--output", str(out)).status == 1
    found = np.load(out, allow_pickle=False)
    assert found.shape == (4, 1, 2)
    assert found[[0, 1, 3], 0].tolist() == [[2, 1], [4, 3], [8, 7]]
    assert np.isnan(found[2]).all()


def test_npy_to_npy(ask, tmp_path) -> None:
    points = np.random.default_rng(8).normal(size=(1000, 2))
    np.save(tmp_path / "q.npy", points)
    found = ask((tmp_path / "q.npy").read_bytes(), "grad", "x*y", "--output", str(tmp_path / "o.npy"), name="p.npy")
    assert (found.status, found.out, found.err) == (0, "", "")
    np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), points[:, ::-1])


def test_a_pickle_is_never_loaded(ask, tmp_path) -> None:
    np.save(tmp_path / "q.npy", np.array([{}], dtype=object), allow_pickle=True)
    found = ask((tmp_path / "q.npy").read_bytes(), "grad", "x", name="p.npy")
    assert found.status == 2
    assert "real numbers" in found.err


def test_parquet_to_parquet(ask, tmp_path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"name": ["a", "b"], "y": [2.0, None], "x": [1, 3]})
    parquet.write_table(table, tmp_path / "q.parquet")
    out = tmp_path / "o.parquet"
    found = ask((tmp_path / "q.parquet").read_bytes(), "grad", "x*y", "--output", str(out), name="p.parquet")
    assert found.status == 1
    assert "row 2" in found.err
    assert parquet.read_table(out).to_pylist() == [
        {"row": 1, "y": 2.0, "x": 1.0, "f0": 2.0, "df0/dy": 1.0, "df0/dx": 2.0, "status": "agree"}
    ]


def test_many_points_are_summed_up(ask) -> None:
    data = b"".join(b"%d\n" % n for n in range(-150, 151))
    found = ask(data, "grad", "abs(x)")
    assert found.status == 1
    assert "301" in found.out
    assert "verdict: kink (300 agree, 1 kink); first at line 151" in found.out
    assert len(found.rows) < 12


def test_blocks_make_no_difference(ask, monkeypatch) -> None:
    data = b"".join(b"%d,%d.5\n" % (n, -n) + (b"bad\n" if n % 50 == 7 else b"") for n in range(500))
    whole = ask(data, "jacobian", "sin(x)/y, exp(y/100)", "--format", "csv")
    monkeypatch.setattr(stream_source, "BLOCK", 100)
    parts = ask(data, "jacobian", "sin(x)/y, exp(y/100)", "--format", "csv")
    assert (whole.status, whole.out, whole.err) == (parts.status, parts.out, parts.err)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("words", [(), ("--strict",), ("--check", "none")])
def test_threads_make_no_difference(ask, monkeypatch, threads, words) -> None:
    monkeypatch.setattr(stream_source, "BLOCK", 200)
    data = b"".join(b"%d,%d.5\n" % (n, -n) + (b"bad\n" if n == 307 else b"") for n in range(500))
    monkeypatch.setattr(jacli_points, "_MOST_THREADS", threads)
    found = ask(data, "jacobian", "sin(x)/y, abs(y + 100.5)", "--format", "csv", *words)
    lines = [int(row.split(",")[0]) for row in found.rows[1:]]
    assert lines == [*range(1, 309), *range(310, 502)][: 308 if words == ("--strict",) else None]
    assert found.err.count("error: line 309") == 1


def test_what_was_read_before_an_error_is_answered_before_it_is_said(ask, tmp_path) -> None:
    points = np.arange(200_000.0).reshape(-1, 2)
    np.save(tmp_path / "whole.npy", points)
    cut = (tmp_path / "whole.npy").read_bytes()[:-800_000]
    out = tmp_path / "o.npy"
    found = ask(cut, "jacobian", "x*y", "--output", str(out), name="p.npy")
    assert found.status == 2
    assert "shorter than its header says" in found.err
    assert np.array_equal(np.load(out).reshape(-1, 2), points[: 1 << 15, ::-1])


@pytest.mark.parametrize("check", ["suspect", "none"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "text",
    [
        "cosh(x)*y, sinh(x), erf(x), gelu(y), abs(x)**y, tanh(y)",
        "where(x > 0, cosh(x), sinh(y))*exp(y)",
        "a = [[x, y, 1], [y, 2, x], [3, x, 5]]; a @ a, inv(a)",
    ],
)
def test_a_point_does_not_depend_on_those_beside_it(text, dtype, check) -> None:
    points = np.random.default_rng(9).normal(size=(150, 2))
    whole = jacli.at_points(text, {"x": points[:, 0], "y": points[:, 1]}, dtype=dtype, check=check)
    for part in (slice(0, 1), slice(3, 20), slice(40, 109), slice(149, 150)):
        some = jacli.at_points(text, {"x": points[part, 0], "y": points[part, 1]}, dtype=dtype, check=check)
        np.testing.assert_array_equal(some.values, whole.values[part])
        np.testing.assert_array_equal(some.derivative, whole.derivative[part])


# ---- interruption

LONG = b"".join(b"%d,%d.25\n" % (n, n + 1) + (b"what\n" if n == 20 else b"") for n in range(3000))


@pytest.mark.parametrize("name", ["o.csv", "o.jsonl", "o.tsv", "o.npy"])
@pytest.mark.parametrize("part", [0.0, 0.001, 0.4, 0.77, 1.0])
def test_resuming_gives_the_same_bytes(ask, tmp_path, name, part) -> None:
    out = tmp_path / name
    words = ("jacobian", "sin(x)*y, x/y", "--output", str(out))
    assert ask(LONG, *words).status == 1
    whole = out.read_bytes()
    out.write_bytes(whole[: int(len(whole) * part)])
    found = ask(LONG, *words, "--resume")
    assert found.status == 1  # a line is no point, whether it is read now or was then
    assert out.read_bytes() == whole


@pytest.mark.parametrize("name", ["o.csv", "o.jsonl"])
def test_resuming_after_a_point_beyond_single_precision(ask, tmp_path, name) -> None:
    out = tmp_path / name
    words = ("grad", "x*2", "--dtype", "float32", "--output", str(out))
    ask(b"1e300\n2\n", *words)
    whole = out.read_bytes()
    out.write_bytes(whole[: whole.rfind(b"\n", 0, -1) + 1])
    assert ask(b"1e300\n2\n", *words, "--resume").status == 1
    assert out.read_bytes() == whole


def test_resuming_something_else_is_refused(ask, tmp_path) -> None:
    out = tmp_path / "o.csv"
    assert ask(b"1,2\n\n3,4\n", "jacobian", "x*y", "--output", str(out)).status == 0
    before = out.read_bytes()
    other = ask(b"1,2\n3,4\n", "jacobian", "x*y", "--output", str(out), "--resume")
    assert (other.status, "other points" in other.err) == (2, True)
    other = ask(b"1,2\n", "jacobian", "x/y*1, x", "--output", str(out), "--resume")
    assert (other.status, "something else" in other.err) == (2, True)
    assert out.read_bytes() == before


@pytest.mark.parametrize("name", ["o.csv", "o.jsonl", "o.tsv", "o.npy"])
@pytest.mark.parametrize("end", [b"", b"bad\n", b"bad\nbad\n9,9\n"])
@pytest.mark.parametrize("words", [("jacobian", "x+y"), ("jacobian", "x*y+0*x*y+x"), ("grad", "-x*y")])
def test_resuming_another_program_is_refused(ask, tmp_path, name, end, words) -> None:
    out = tmp_path / name
    assert ask(b"1,2\n3,4\n" + end, "jacobian", "x*y", "--output", str(out)).status == bool(end)
    before = out.read_bytes()
    other = ask(b"1,2\n3,4\n" + end + b"5,6\n", *words, "--output", str(out), "--resume")
    assert (other.status, "something else" in other.err) == (2, True)
    assert out.read_bytes() == before
    ask(b"1,2\n3,4\n" + end + b"5,6\n", "jacobian", "x*y", "--output", str(out), "--resume")
    assert len(out.read_bytes()) > len(before)


def test_resuming_with_other_options_is_refused(ask, tmp_path) -> None:
    out = tmp_path / "o.csv"
    assert ask(b"0.123456789\n", "grad", "sin(x)", "--output", str(out)).status == 0
    for words in (("--check", "none"), ("--dtype", "float32"), ("--vars", "x,y")):
        assert ask(b"0.123456789\n1\n", "grad", "sin(x)", "--output", str(out), "--resume", *words).status == 2
    assert ask(b"0.123456788\n1\n", "grad", "sin(x)", "--output", str(out), "--resume").status == 2
    assert ask(b"0.123456789\n1\n", "grad", "sin(x) + 1", "--output", str(out), "--resume").status == 2


@pytest.mark.parametrize(
    ("program", "last"), [("(1-cos(x))/x**2", b"1e-8"), ("abs(x)", b"0"), ("log(x)", b"-1"), ("cosh(x)", b"3.7")]
)
@pytest.mark.parametrize("name", ["o.csv", "o.jsonl", "o.npy"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_resuming_after_a_hard_point(ask, tmp_path, program, last, name, dtype) -> None:
    out = tmp_path / name
    data = b"".join(b"%d.125\n" % n for n in range(1, 100)) + last + b"\n"
    ask(data, "grad", program, "--output", str(out), "--dtype", dtype)
    before = out.read_bytes()
    assert ask(data + b"2\n", "grad", program, "--output", str(out), "--resume", "--dtype", dtype).status != 2
    assert len(out.read_bytes()) > len(before)


@pytest.mark.parametrize("name", ["p.csv", "p.npy", "p.jsonl"])
@pytest.mark.parametrize("resume", [(), ("--resume",)])
@pytest.mark.parametrize("way", ["itself", "symlink", "hardlink", "detour"])
def test_points_are_not_overwritten(ask, tmp_path, name, resume, way) -> None:
    np.save(tmp_path / "saved.npy", np.ones((3, 2)))
    data = {"p.npy": (tmp_path / "saved.npy").read_bytes(), "p.csv": b"1,2\n"}.get(name, b"[1,2]\n")
    (tmp_path / "deep").mkdir()
    path, other = tmp_path / name, tmp_path / ("other-" + name)
    path.touch()
    if way == "symlink":
        other.symlink_to(path)
    elif way == "hardlink":
        other.hardlink_to(path)
    else:
        other = path if way == "itself" else tmp_path / "deep" / ".." / name
    found = ask(data, "grad", "x*y", "--output", str(other), *resume, name=name)
    assert (found.status, found.out) == (2, "")
    assert "the points and the results are the same file" in found.err
    assert path.read_bytes() == data


def test_points_from_a_redirection_are_not_overwritten(tmp_path) -> None:
    path = tmp_path / "p.csv"
    path.write_bytes(b"1,2\n")
    with path.open("rb") as file:
        words = [*JACLI, "grad", "x*y", "--points", "-", "--output", str(path)]
        found = subprocess.run(words, stdin=file, capture_output=True, timeout=120, env=CLEAN)
    assert (found.returncode, path.read_bytes()) == (2, b"1,2\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_file_has_whole_rows(tmp_path, number) -> None:
    out = tmp_path / "o.csv"
    child = subprocess.Popen(
        [*JACLI, "jacobian", "x*y", "--points", "-", "--output", str(out)],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=CLEAN,
    )  # fmt: skip
    assert child.stdin is not None
    child.stdin.write(b"1,2\n3,4\n")
    child.stdin.flush()
    for _ in range(600):
        if out.exists() and out.read_bytes().count(b"\n") == 3:
            break
        time.sleep(0.1)
    child.send_signal(number)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert b"Traceback" not in err
    assert out.read_text().splitlines()[1:] == TWO


def test_results_come_while_the_stream_is_open() -> None:
    child = subprocess.Popen(
        [*JACLI, "grad", "x*y", "--points", "-", "--format", "csv"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=CLEAN,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(b"1,2\n")
    child.stdin.flush()
    assert child.stdout.readline().startswith(b"line,")
    assert child.stdout.readline().decode().strip() == TWO[0]
    child.communicate(timeout=60)
    assert child.returncode == 0


def test_a_closed_pipe_is_silent() -> None:
    data = b"1,2\n" * 50_000
    shell = f"{sys.executable} -m jacli grad 'x*y' --points - --format csv | head -2"
    found = subprocess.run(["sh", "-c", shell], input=data, capture_output=True, timeout=120, env=CLEAN)
    assert found.stdout.decode().splitlines()[1] == TWO[0]
    assert found.stderr == b""


def test_gaps_are_relative() -> None:
    found = jacli.at_points("x**3", [[2.0], [1e150]], "grad")
    assert found.derivative[:, 0].tolist() == pytest.approx([12.0, 3e300])
    assert not math.isnan(found.values[0, 0])
