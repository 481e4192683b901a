"""Large Jacobians: how time and memory grow from a thousand rows to a hundred thousand, as ratios of one run.

    python benchmarks/large.py               # growth exponents of text, and slices beside numpy by hand
    python benchmarks/large.py --peers       # beside casadi and asdex, where they are installed

Every size runs in a process of its own, so that peaks of memory are its own. Times are of the process's CPU.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
SIZES = (1_000, 10_000, 100_000)


def broyden(n: int) -> tuple[str, str]:
    """The equations of Broyden (1965), one a line, and the point."""
    rows = (
        f"(3 - 2*x{k})*x{k}" + (f" - x{k - 1}" if k else "") + (f" - 2*x{k + 1}" if k < n - 1 else "") + " + 1"
        for k in range(n)
    )
    return "\n".join(rows), ",".join(["-1"] * n)


def peak() -> int:
    """Peak memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(contender: str, n: int) -> dict[str, Any]:
    """Seconds and bytes beyond those of a first small problem."""
    text, at = broyden(n)
    own = {"jacli": run_jacli, "jacli, unchecked": run_unchecked}
    run = (own | {"casadi": run_casadi, "asdex": run_asdex})[contender]
    run(*broyden(300))
    bytes_before, before = peak(), time.process_time()
    total = run(text, at)
    return {"seconds": time.process_time() - before, "bytes": peak() - bytes_before, "sum": total}


def run_jacli(text: str, at: str, check: str = "suspect") -> float:
    """From text to checked coordinates; the sum of the entries."""
    import jacli

    return float(jacli.sparse_jacobian(text, at, check=check).quantity("jacobian").values.sum())


def run_unchecked(text: str, at: str) -> float:
    """The same without the check."""
    return run_jacli(text, at, check="none")


def run_casadi(text: str, at: str) -> float:
    """The same in CasADi, built from the text by Python."""
    import casadi

    count = at.count(",") + 1
    x = [casadi.SX.sym(f"x{k}") for k in range(count)]
    names = {f"x{k}": x[k] for k in range(count)}
    rows = [eval(line, {"__builtins__": {}}, names) for line in text.split("\n")]  # noqa: S307 - its own text
    symbols = casadi.vertcat(*x)
    jacobian = casadi.Function("j", [symbols], [casadi.jacobian(casadi.vertcat(*rows), symbols)])
    return float(np.sum(jacobian([float(v) for v in at.split(",")]).nonzeros()))


def run_asdex(_: str, at: str) -> float:
    """The same in asdex, which is given arrays in place of a text: a pattern is detected, coloured and filled in."""
    import asdex
    import jax

    jax.config.update("jax_enable_x64", val=True)

    def function(x: Any) -> Any:
        padded = jax.numpy.pad(x, 1)
        return (3 - 2 * x) * x - padded[:-2] - 2 * padded[2:] + 1

    point = jax.numpy.array([float(v) for v in at.split(",")])
    return float(asdex.jacobian(function, point)(point).data.sum())


def in_a_process(contender: str, n: int) -> dict[str, Any] | None:
    """``measure`` in a process of its own; None where the contender is not installed."""
    words = [sys.executable, __file__, "--measure", contender, str(n)]
    done = subprocess.run(  # noqa: S603
        words, capture_output=True, text=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, check=False
    )
    return json.loads(done.stdout) if done.returncode == 0 else None


def growth(contender: str) -> None:
    """Times and memory at each size, and the exponents between the first and the last."""
    found = [in_a_process(contender, n) for n in SIZES]
    if any(one is None for one in found):
        print(f"{contender:>18}: not here")
        return
    results = [one for one in found if one is not None]
    for n, one in zip(SIZES, results, strict=True):
        assert one["sum"] == 4 * n + 3
        print(f"{contender:>18}  n = {n:>7,}  {one['seconds'] * 1e3:>9.1f} ms  {one['bytes'] / 2**20:>8.1f} MiB")
    decades = math.log(SIZES[-1] / SIZES[0])
    for what in ("seconds", "bytes"):
        first, last = (max(one[what], 1e-9) for one in (results[0], results[-1]))
        print(f"{contender:>18}  growth exponent in {what}: {math.log(last / first) / decades:.2f}")


def slices(n: int = 1_000_000) -> None:
    """The second difference of a million numbers, beside the same arrays made by hand."""
    from jacli import problem, sparse
    from jacli.sparse.derive import Derived, one_thread

    x = np.linspace(0, 1, n)

    def by_hand() -> float:
        i = np.arange(n - 2)
        rows, columns = np.concatenate([i, i, i]), np.concatenate([i + 2, i + 1, i])
        values = np.concatenate([np.ones(n - 2), np.full(n - 2, -2.0), np.ones(n - 2)])
        return float(values.sum() + rows[-1] - columns[2 * n])

    system = sparse.from_arrays(problem.bound("x[2:] - 2*x[1:-1] + x[:-2]", {"x": x}), 0)
    if system is None:
        raise AssertionError("slices are a family")
    times: dict[str, list[float]] = {"numpy by hand": [], "jacli": []}
    with one_thread():
        for _ in range(5):
            for name, run in (("numpy by hand", by_hand), ("jacli", lambda: Derived(system).jacobian())):
                before = time.perf_counter()
                run()
                times[name].append(time.perf_counter() - before)
    best = {name: min(found) for name, found in times.items()}
    print(
        f"slices, n = {n:,}: jacli {best['jacli'] * 1e3:.1f} ms, {best['jacli'] / best['numpy by hand']:.1f} × by hand"
    )


def main() -> None:
    """Everything, or one measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure[0], int(given.measure[1]))))
        return
    for contender in ("jacli", "jacli, unchecked", *(("casadi", "asdex") if given.peers else ())):
        growth(contender)
    slices()


if __name__ == "__main__":
    main()
