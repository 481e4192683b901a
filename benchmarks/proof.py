"""What proofs cost: ``python benchmarks/proof.py`` proves every published problem and prints ratios of this run.

The yardstick is ``python -c "import torch"``, which an answer pays in any case. Per entry, the prover stands beside
SymPy's ``evalf`` and mpmath's ``diff`` at 20 digits, which prove nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import sympy

from jacli import verify
from jacli.problem import Problem, prepare
from jacli.readings import symbols

DATA = Path(__file__).parent.parent / "tests" / "data" / "published.jsonl"
LARGEST = 40 * 40
ROUNDS = 3


def seconds(work: Callable[[], Any]) -> float:
    """The least processor time of a few rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def importing_torch() -> float:
    """Wall seconds of the yardstick, the least of a few runs."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import torch"], check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def problem_of(row: dict[str, Any]) -> Problem:
    """A published problem, bound to its point."""
    at = ",".join(f"{name}=({value})" for name, value in {**row["at"], **row.get("params", {})}.items())
    return prepare(", ".join(row["exprs"]), at, wrt=row["vars"])


def prove(problem: Problem) -> list[list[verify.Proof]]:
    """Every entry of the Jacobian, with its bounds, from nothing."""
    assert problem.lowered is not None
    outputs = [node for nodes in problem.lowered.outputs for node in nodes]
    return verify.Prover(problem.lowered.tape.copy()).jacobian(outputs, problem.column_nodes)


def peers(problem: Problem) -> tuple[float, float, int]:
    """Seconds of SymPy's evalf and of mpmath's numerical derivative for the first row, and its entries."""
    assert problem.lowered is not None
    tape, node = problem.lowered.tape, problem.lowered.outputs[0][0]
    formula = symbols.Expressions(tape, [node]).of(node)
    at = {
        sympy.Symbol(v.name, real=True): sympy.Rational(*float(v.doubles[0]).as_integer_ratio())
        for v in problem.variables
    }
    slopes = list(symbols.gradient(formula).values())
    evalf = seconds(lambda: [slope.subs(at).evalf(20) for slope in slopes])
    names = sorted(formula.free_symbols, key=str)
    function = sympy.lambdify(names, formula, "mpmath")
    point = [mpmath.mpf(at[name].p) / at[name].q for name in names]

    def differentiate() -> None:
        with mpmath.workdps(40):
            for i in range(len(names)):
                mpmath.diff(lambda x, i=i: function(*point[:i], x, *point[i + 1 :]), point[i])

    return evalf, seconds(differentiate), len(slopes)


def main() -> None:
    """Print the table."""
    rows = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    yardstick = importing_torch()
    print(f"import torch: {yardstick:.2f} s\n\n{'problem':34} {'entries':>8} {'proof/import':>13} {'µs an entry':>12}")
    worst = 0.0
    for row in rows:
        size = len(row["exprs"]) * len(row["vars"])
        if size > LARGEST:
            continue
        problem = problem_of(row)
        spent = seconds(lambda problem=problem: prove(problem))
        worst = max(worst, spent / yardstick)
        if spent / yardstick > 0.05:
            print(f"{row['id']:34} {size:8} {spent / yardstick:13.3f} {spent / size * 1e6:12.0f}")
    print(f"\nof {len(rows)} problems the dearest proof costs {worst:.2f} of importing torch (above 0.05: listed)")
    for name in ("dyn-ur5", "mgh10-meyer", "dyn-black-scholes-atm"):
        problem = problem_of(next(row for row in rows if row["id"] == name))
        evalf, diff, count = peers(problem)
        ours = seconds(lambda problem=problem: prove(problem)) / max(1, problem.output_size * len(problem.columns))
        each = f"proved {ours * 1e6:.0f}, SymPy evalf {evalf / count * 1e6:.0f}, mpmath {diff / count * 1e6:.0f}"
        print(f"{name:24} µs an entry: {each}")


if __name__ == "__main__":
    main()
