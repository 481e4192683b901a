"""Points on a cluster: real workers, one of which is killed, and the rows that one machine writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

distributed = pytest.importorskip("distributed", reason="pip install 'jacli[dask]'")
pytest.importorskip("fsspec", reason="pip install 'jacli[dask]'")
pa = pytest.importorskip("pyarrow", reason="pip install 'jacli[dask]'")
from pyarrow import parquet  # noqa: E402

from jacli.cli import run  # noqa: E402
from jacli.errors import JacliError  # noqa: E402
from jacli.stream import cluster as jacli_cluster  # noqa: E402
from jacli.stream.run import Tally  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")

ROOT = Path(__file__).parent.parent
JACLI = [sys.executable, "-m", "jacli"]
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("JACLI")} | {"PYTHONPATH": str(ROOT)}

#: The last digit of torch's cosh depends on what is computed beside a point, so it tells whether blocks are the same.
PROGRAM = "cosh(x)*y, where(x > 0, sqrt(x)*y, x*abs(y))"


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, memory_limit=0, dashboard_address=None, silence_logs=50
    ) as workers:
        yield workers


@pytest.fixture
def ask(cluster, capfdbinary):
    """Run a command on the cluster; the status and both streams."""

    def call(*words: object, scheduler: str | None = cluster.scheduler_address) -> tuple[int, str, str]:
        capfdbinary.readouterr()
        where = ["--scheduler", scheduler] if scheduler else []
        status = run([*map(str, words), "--engine", "dask", *where])
        out, err = capfdbinary.readouterr()
        return status, out.decode(), err.decode()

    return call


def points(count: int, seed: int = 1) -> pa.Table:
    """Kinks, holes and ordinary points."""
    numbers = np.random.default_rng(seed).normal(size=(count, 2))
    numbers[count // 3, 1] = 0.0
    y = [None if row == count // 2 else value for row, value in enumerate(numbers[:, 1].tolist())]
    return pa.table({"name": ["n"] * count, "y": pa.array(y, pa.float64()), "x": numbers[:, 0]})


def dataset(path: Path, files: int, count: int) -> pa.Table:
    """Files of points in a directory; the points."""
    path.mkdir()
    tables = [points(count, seed) for seed in range(files)]
    for number, table in enumerate(tables):
        parquet.write_table(table, path / f"{number:03}.parquet")
    return pa.concat_tables(tables)


def rows(path: Path) -> list[tuple[object, ...]]:
    """The rows of a file or a directory, doubles as their bits."""
    names = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    found = []
    for name in names:
        table = parquet.read_table(name)
        columns = [
            [value.hex() if isinstance(value, float) else value for value in column.to_pylist()]
            for column in table.columns
        ]
        found += zip(*columns, strict=True)
    return found


def locally(source: Path, out: Path, *words: str) -> tuple[int, str]:
    found = subprocess.run(
        [*JACLI, *words, "--points", str(source), "--output", str(out)], capture_output=True, env=CLEAN, timeout=300
    )
    return found.returncode, found.stderr.decode()


@pytest.mark.parametrize("check", ["suspect", "none"])
def test_the_same_rows_bit_for_bit(ask, tmp_path, monkeypatch, check) -> None:
    source = tmp_path / "p.parquet"
    parquet.write_table(points(20_011), source, row_group_size=3_001)
    monkeypatch.setattr(jacli_cluster, "PART_ROWS", 5_000)
    words = ("jacobian", PROGRAM, "--check", check)
    status, err = locally(source, tmp_path / "one.parquet", *words)
    found, summary, said = ask(*words, "--points", source, "--output", tmp_path / "many")
    assert (status, found) == (1, 1)
    assert len(list((tmp_path / "many").iterdir())) == 4
    assert rows(tmp_path / "many") == rows(tmp_path / "one.parquet")
    verdict = next(line for line in err.splitlines() if "verdict" in line).removeprefix("note: ")
    assert verdict in summary.splitlines()
    assert [line for line in said.splitlines() if "row 10006" in line]
    assert "points      20,010" in summary


def test_a_killed_worker_loses_and_doubles_nothing(cluster, tmp_path) -> None:
    source, out, one = tmp_path / "points", tmp_path / "many", tmp_path / "one.parquet"
    parquet.write_table(dataset(source, 16, 200), tmp_path / "all.parquet", row_group_size=200)
    words = ["jacobian", PROGRAM, "--check", "all"]
    locally(tmp_path / "all.parquet", one, *words)
    with distributed.Client(cluster) as client:
        victim = max(client.run(os.getpid).values())
    child = subprocess.Popen(
        [*JACLI, *words, "--points", source, "--output", out, "--engine", "dask", "--scheduler",
         cluster.scheduler_address], env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    for _ in range(3000):
        if child.poll() is not None or len(list(out.glob("part-*"))) >= 5:
            break
        time.sleep(0.02)
    there = len(list(out.glob("part-*")))
    os.kill(victim, signal.SIGKILL)
    printed, said = child.communicate(timeout=300)
    assert 5 <= there < 16
    assert child.returncode == 1
    assert b"Traceback" not in said
    assert b"points      3,184" in printed
    assert [path.name for path in sorted(out.iterdir())] == [f"part-{number:06}.parquet" for number in range(16)]
    assert rows(out) == rows(one)


def test_a_part_computed_twice_is_there_once(cluster, ask, tmp_path) -> None:
    source, out = tmp_path / "points", tmp_path / "many"
    dataset(source, 2, 300)
    words = ("grad", "x*y", "--points", source, "--output", out)
    assert ask(*words)[0] == 1
    before = rows(out)
    urls = jacli_cluster.files_of(str(source))
    columns = jacli_cluster.columns_of(urls[0])
    from jacli.stream.task import prepare

    job = jacli_cluster.Job(
        prepare("grad", "x*y", columns, 3), "suspect", "float64", "cpu", str(out), "m", False, jacli_cluster.versions()
    )
    (out / "_unfinished").mkdir()
    with distributed.Client(cluster) as client:
        part = jacli_cluster.parts_of(client, urls, columns)[1]
        twice = [
            client.submit(jacli_cluster.answer, part, job, pure=False, workers=[worker]) for worker in client.nthreads()
        ]
        found = client.gather(twice)
    assert [each.tally.points for each in found] == [299, 299]
    assert rows(out) == before


def test_resume_goes_on(ask, tmp_path) -> None:
    source, out = tmp_path / "points", tmp_path / "many"
    dataset(source, 4, 300)
    words = ("jacobian", PROGRAM, "--points", f"file://{source}", "--output", f"file://{out}")
    first = ask(*words)
    whole = rows(out)
    kept = (out / "part-000002.parquet").stat().st_mtime_ns
    assert ask(*words)[0] == 2
    (out / "part-000001.parquet").unlink()
    assert ask(*words, "--resume") == first
    assert rows(out) == whole
    assert (out / "part-000002.parquet").stat().st_mtime_ns == kept
    status, _, said = ask("grad", "x*y", *words[2:], "--resume")
    assert (status, "is of another request" in said) == (2, True)


def test_without_a_scheduler_the_cluster_is_here(tmp_path) -> None:
    source = tmp_path / "points"
    dataset(source, 2, 50)
    found = subprocess.run(
        [*JACLI, "grad", "x*y", "--points", source, "--engine", "dask", "--output", tmp_path / "out"],
        capture_output=True, env=CLEAN, timeout=120,
    )  # fmt: skip
    assert found.returncode == 1
    lines = found.stderr.decode().splitlines()
    assert lines[0].startswith("note: not used by the program: name")
    assert lines[1].startswith("note: on this machine, ")
    assert lines[2:] == [
        "error: row 26: a value is missing or not finite: " + lines[2].rsplit(": ", 1)[1],
        "error: row 76: a value is missing or not finite: " + lines[3].rsplit(": ", 1)[1],
    ]
    assert b"verdict: agree (98 agree; 2 rows could not be read)" in found.stdout


def test_an_interrupted_run_can_go_on(cluster, tmp_path) -> None:
    source, out = tmp_path / "points", tmp_path / "many"
    dataset(source, 12, 200)
    words = [*JACLI, "jacobian", PROGRAM, "--check", "all", "--points", source, "--output", out, "--engine", "dask",
             "--scheduler", cluster.scheduler_address]  # fmt: skip
    child = subprocess.Popen(words, env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(3000):
        if child.poll() is not None or len(list(out.glob("part-*"))) >= 2:
            break
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    printed, said = child.communicate(timeout=60)
    assert (child.returncode, printed) == (130, b"")
    assert b"Traceback" not in said
    found = subprocess.run([*words, "--resume"], env=CLEAN, capture_output=True, timeout=120)
    assert found.returncode == 1
    assert [row[0] for row in rows(out)] == [
        200 * part + row for part in range(12) for row in range(1, 201) if row != 101
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--points", "-"), "a stream is not for --engine dask"),
        (("--points", "none.parquet"), "none.parquet: No such file"),
        (("--points", "nowhere://a/b"), "cannot read nowhere://a/b"),
        (("--points", "."), "there are no Parquet files in"),
        (("--points", "p.parquet", "--strict"), "--strict is for one machine"),
        (("--points", "p.parquet", "--output", "full"), "full is not empty"),
        (("--points", "p.parquet", "--output", "p.parquet"), "p.parquet lies among the points"),
        (("--points", "p.parquet", "--format", "csv"), "has no format csv"),
        (("--points", "p.parquet", "--wrt", "z"), "--wrt names z"),
        (("--points", "q.parquet"), "q.parquet is not a Parquet file"),
        (("--points", "p.parquet", "--scheduler", "127.0.0.1:1"), "there is no scheduler at 127.0.0.1:1"),
    ],
)
def test_what_is_refused(ask, tmp_path, monkeypatch, words, message) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(jacli_cluster, "_PATIENCE", 1)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("a")
    if words[1] != ".":
        parquet.write_table(points(4), "p.parquet")
        Path("q.parquet").write_text("no")
    status, out, err = ask("grad", "x*y", "--output", "out", *words, scheduler=None)
    assert (status, out) == (2, "")
    assert message in err
    assert not Path("out").exists()


def test_other_columns_and_no_numbers(ask, tmp_path) -> None:
    source = tmp_path / "points"
    dataset(source, 2, 10)
    words = ("grad", "x*y", "--output", tmp_path / "out", "--points")
    parquet.write_table(points(10).rename_columns(["name", "x", "y"]), source / "z.parquet")
    assert "z.parquet has other columns than the first file" in ask(*words, source)[2]
    parquet.write_table(pa.table({"x": ["a"], "y": ["b"]}), tmp_path / "t.parquet")
    status, _, said = ask(*words, tmp_path / "t.parquet")
    assert (status, "does not hold numbers" in said) == (2, True)


def test_what_is_missing_is_named(tmp_path, monkeypatch, capfdbinary) -> None:
    from jacli.cli import cluster as command

    monkeypatch.setattr(command, "find_spec", lambda name: None if name == "distributed" else name)
    words = ["grad", "x", "--points", "p.parquet", "--engine", "dask", "--output", "o"]
    assert run(words) == 2
    assert b"--engine dask needs distributed\nhint: pip install 'jacli[dask]'" in capfdbinary.readouterr().err


def test_another_version_is_refused(tmp_path) -> None:
    from jacli.stream.task import prepare

    parquet.write_table(points(4), tmp_path / "p.parquet")
    task = prepare("grad", "x*y", ("name", "y", "x"), 3)
    job = jacli_cluster.Job(task, "suspect", "float64", "cpu", str(tmp_path), "m", False, ("0", "1"))
    found = jacli_cluster.answer(jacli_cluster.Part(0, str(tmp_path / "p.parquet"), (0,), 0), job)
    assert isinstance(found, JacliError)
    assert "here is jacli 0 and torch 1" in found.message


def test_tallies_add_up_in_any_order() -> None:
    early = Tally(5, 1, 0, {"agree": 4, "kink": 1}, {"kink": (3, "why")}, (1e-9, 2))
    late = Tally(6, 2, 1, {"agree": 5, "kink": 1}, {"kink": (9, "then")}, (1e-9, 8))
    one, other = Tally(), Tally()
    for tally, order in ((one, (early, late)), (other, (late, early))):
        for each in order:
            tally.merge(each)
    assert one == other
    assert (one.points, one.settled, one.bad, one.first["kink"], one.gap) == (11, 3, 1, (3, "why"), (1e-9, 2))
    found = jacli_cluster.Found(one)
    assert jacli_cluster.Found.from_json(found.to_json().encode()) == found
