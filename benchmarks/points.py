"""Many points: jacli beside its peers, in one run, each contender in turn, as ratios.

    python benchmarks/points.py              # in process
    python benchmarks/points.py --files      # whole processes, a million points: npy to npy, csv to csv
    python benchmarks/points.py --memory     # peak memory at 1e5, 1e6 and 1e7 points

jax, symengine, sympy and casadi take part where they are installed. Every contender must give the same numbers.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cold
import numpy as np

ROOT = Path(__file__).parent.parent

ARM = """
r = 0.4*cos(q1) + 0.3*cos(q1+q2) + 0.1*cos(q1+q2+q3)
z = 0.4*sin(q1) + 0.3*sin(q1+q2) + 0.1*sin(q1+q2+q3)
cos(q0)*r + 0.05*cos(q4)*sin(q5), sin(q0)*r + 0.05*sin(q4)*sin(q5), z + 0.05*cos(q5)
"""
PROGRAMS = {
    "2x2": ("x**2*y, 5*x + sin(y)", 2),
    "arm 3x6": (ARM, 6),
    "Broyden 10x10": (
        ", ".join(
            f"(3 - 2*x{i})*x{i} + 1" + (f" - x{i - 1}" if i else "") + (f" - 2*x{i + 1}" if i < 9 else "")
            for i in range(10)
        ),
        10,
    ),
}

Contender = Callable[[np.ndarray], np.ndarray]


def jacli(text: str, count: int, check: str) -> Contender:
    """Our own, with a check or none."""
    from jacli.stream.bulk import Bulk
    from jacli.stream.settle import Settler
    from jacli.stream.source import Rows
    from jacli.stream.task import prepare

    task = prepare("jacobian", text, None, count)
    bulk, settle = Bulk(task, check), Settler(task, single=False)

    def compute(points: np.ndarray) -> np.ndarray:
        entries = np.empty((len(task.entries), len(points))).T  # an entry's numbers lie together, as they are computed
        for start in range(0, len(points), bulk.together):
            part = slice(start, start + bulk.together)
            answer = bulk(points[part])
            settle(Rows(np.arange(len(points))[part], points[part]), answer)
            entries[part] = answer.entries
        return entries

    return compute


def autograd(text: str, count: int) -> Contender:
    """Torch alone: one backward pass a row for all points."""
    import torch

    from jacli.stream.autograd import Autograd
    from jacli.stream.task import prepare

    task = prepare("jacobian", text, None, count)
    program = Autograd(task)

    def compute(points: np.ndarray) -> np.ndarray:
        columns = torch.from_numpy(np.ascontiguousarray(points.T))
        parts = [program(columns[:, k : k + 16384])[1] for k in range(0, len(points), 16384)]
        return torch.cat(parts, 1).T.numpy()

    return compute


def outputs_of(text: str, scope: dict[str, Any]) -> list[Any]:
    """The text as Python: its outputs, with what ``scope`` says that its names are."""
    *statements, outputs = [line.strip() for line in text.strip().splitlines()]
    exec("\n".join(statements), scope)  # noqa: S102 - this file's own text
    return [eval(output, scope) for output in outputs.split(", ")]  # noqa: S307


def names_of(text: str) -> list[str]:
    """Its variables, in order."""
    from jacli.language.parser import read

    return list(read(text).variables)


def jax(text: str, _: int) -> Contender:
    """``jit(vmap(jacfwd))``."""
    import jax as j

    j.config.update("jax_enable_x64", val=True)
    names = names_of(text)

    def function(point):  # noqa: ANN001, ANN202
        scope = {"sin": j.numpy.sin, "cos": j.numpy.cos} | dict(zip(names, point, strict=True))
        return j.numpy.stack(outputs_of(text, scope))

    mapped = j.jit(j.vmap(j.jacfwd(function)))
    return lambda points: np.asarray(mapped(points)).reshape(len(points), -1)


def symengine(text: str, _: int) -> Contender:
    """Symbolic, with common subexpressions, compiled by LLVM."""
    import symengine as s

    variables = [s.Symbol(name) for name in names_of(text)]
    outputs = outputs_of(text, {"sin": s.sin, "cos": s.cos} | {v.name: v for v in variables})
    entries = [s.sympify(output.diff(v)) for output in outputs for v in variables]
    return s.Lambdify(variables, entries, cse=True, backend="llvm")


def sympy(text: str, _: int) -> Contender:
    """Symbolic, with common subexpressions, in numpy."""
    import sympy as s

    variables = [s.Symbol(name) for name in names_of(text)]
    outputs = outputs_of(text, {"sin": s.sin, "cos": s.cos} | {v.name: v for v in variables})
    function = s.lambdify(variables, [s.diff(output, v) for output in outputs for v in variables], "numpy", cse=True)

    def compute(points: np.ndarray) -> np.ndarray:
        entries = function(*np.ascontiguousarray(points.T))
        return np.stack(np.broadcast_arrays(*entries, points[:, 0])[:-1], axis=1)

    return compute


def casadi(text: str, count: int) -> Contender:
    """Its expression graph on its own virtual machine, a point at a time."""
    import casadi as c

    point = c.SX.sym("point", count)
    named = dict(zip(names_of(text), c.vertsplit(point), strict=True))
    outputs = c.vertcat(*outputs_of(text, {"sin": c.sin, "cos": c.cos} | named))
    entries = c.densify(c.reshape(c.jacobian(outputs, point).T, -1, 1))
    function = c.Function("entries", [point], [entries])

    def compute(points: np.ndarray) -> np.ndarray:
        return function.map(len(points))(points.T).full().T

    return compute


CONTENDERS: dict[str, Callable[[str, int], Contender]] = {
    "jacli --check none": lambda text, count: jacli(text, count, "none"),
    "jacli (two readings)": lambda text, count: jacli(text, count, "suspect"),
    "torch, columns": autograd,
    "jax": jax,
    "symengine": symengine,
    "sympy": sympy,
    "casadi": casadi,
}


def in_process(size: int) -> None:
    """Rates a core, relative to jax where it is there, else to torch."""
    import torch

    torch.set_num_threads(1)
    for name, (text, count) in PROGRAMS.items():
        points = np.random.default_rng(0).normal(size=(size, count))
        rates, reference = {}, None
        for contender, make in CONTENDERS.items():
            try:
                compute = make(text, count)
                found = np.asarray(compute(points))
            except (ImportError, ValueError) as missing:
                print(f"  {contender}: left out ({missing})")
                continue
            reference = found if reference is None else reference
            np.testing.assert_allclose(found.reshape(reference.shape), reference, rtol=1e-9, atol=1e-14)
            rates[contender] = size / best(lambda: compute(points))  # noqa: B023 - called at once
        base = "jax" if "jax" in rates else "torch, columns"
        print(f"{name}: {size} points, relative to {base}")
        for contender, rate in rates.items():
            print(f"  {contender:24} {rate / rates[base]:7.2f} x  {rate / 1e6:8.2f} M points/s a core")


def best(call: Callable[[], object]) -> float:
    """The shortest of seven, in seconds of one core: on busy machines elapsed time says little."""
    times = []
    for _ in range(7):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


PEER = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import points
peer = getattr(points, sys.argv[2])(points.ARM, 6)
np.save(sys.argv[4], peer(np.load(sys.argv[3])))
"""


def files(size: int, rounds: int) -> None:
    """Whole processes from file to file, each contender in turn; ratios to jax where it is there."""
    peers = [peer for peer in ("jax", "symengine") if importlib.util.find_spec(peer)]
    with tempfile.TemporaryDirectory() as folder, cold.server() as warm:
        points = np.random.default_rng(0).normal(size=(size, 6))
        np.save(f"{folder}/p.npy", points)
        np.savetxt(f"{folder}/p.csv", points, fmt="%.17g", delimiter=",")
        Path(f"{folder}/arm.txt").write_text(ARM)
        everyone = [
            cold.Contender(
                f"{peer}, npy",
                (sys.executable, "-c", PEER, str(ROOT / "benchmarks"), peer, f"{folder}/p.npy", f"{folder}/{peer}.npy"),
            )
            for peer in peers
        ]
        everyone.append(cold.Contender("import torch", (sys.executable, "-c", "import torch")))
        for kind, env in (("cold", {"JACLI_SERVER": "off"}), ("warm", warm)):
            for ending in ("npy", "csv"):
                for check in ("none", "suspect"):
                    output = f"{folder}/{kind}-{check}.{ending}"
                    words = jacobian(Path(f"{folder}/arm.txt"), f"{folder}/p.{ending}", output, check)
                    status = (0, 1) if check == "suspect" else (0,)  # among a million points, some lose digits
                    everyone.append(
                        cold.Contender(f"{kind}, {ending}, {check}", (*cold.jacli(), *words), status=status, env=env)
                    )
        times = cold.measure(everyone, rounds)
        for written in Path(folder).glob("*.npy"):
            if written.name != "p.npy":
                found = np.load(written).reshape(size, -1)
                np.testing.assert_allclose(found, np.load(f"{folder}/cold-none.npy").reshape(size, -1), 1e-7, 1e-14)
    cold.show(everyone, times)


def ask(words: Sequence[str]) -> tuple[float, int]:
    """Seconds of processor time and peak KiB of one Python process."""
    code = (
        "import subprocess, sys, resource; subprocess.run([sys.executable, *sys.argv[1:]], check=True);"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); print(used.ru_utime + used.ru_stime, used.ru_maxrss)"
    )
    found = subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True, text=True, cwd=ROOT)  # noqa: S603
    seconds, peak = found.stdout.split()
    return float(seconds), int(peak)


def jacobian(program: Path, points: str, output: str, check: str) -> list[str]:
    """The words of one run of ours."""
    words = ["jacobian", "--file", str(program), "--points", points, "--output", output]
    return [*words, "--check", check]


def memory() -> None:
    """Peak memory must not grow with the number of points."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "p.txt"
        program.write_text("x*y, sin(x)")
        for size in (10**5, 10**6, 10**7):
            np.save(f"{folder}/p.npy", np.random.default_rng(0).normal(size=(size, 2)))
            _, peak = ask(["-m", "jacli", *jacobian(program, f"{folder}/p.npy", f"{folder}/o.npy", "suspect")])
            print(f"{size:>10,} points: {peak / 1024:.0f} MiB")


def main() -> None:
    """One of the three tables."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--files", action="store_true")
    options.add_argument("--memory", action="store_true")
    options.add_argument("--size", type=int, default=200_000)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    sys.path.insert(0, str(ROOT))
    if given.files:
        files(max(given.size, 1_000_000), given.rounds)
    elif given.memory:
        memory()
    else:
        in_process(given.size)


if __name__ == "__main__":
    main()
