"""What proofs cost: ``python benchmarks/proof.py`` proves every published problem and prints ratios of this run.

The yardstick is ``python -c "import torch"``, which an answer pays in any case. Per entry, the prover stands beside
SymPy's ``evalf``, mpmath's ``diff`` and, where it is installed, symengine at 20 digits, which prove nothing.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
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
    rows = verify.Prover(problem.lowered.tape.copy()).jacobian(outputs, problem.column_nodes)
    for proof in itertools.chain.from_iterable(rows):
        _ = proof.effect  # found when asked for
    return rows


Numbers = list[float]


def contenders(problem: Problem) -> dict[str, Callable[[], Numbers]]:
    """Ways to 20 digits of the derivatives of the first output by the variables in it, in the order of their names."""
    assert problem.lowered is not None
    tape, node = problem.lowered.tape, problem.lowered.outputs[0][0]
    formula = symbols.Expressions(tape, [node]).of(node)
    variables = sorted(formula.free_symbols, key=str)
    doubles = {v.name: v.doubles[0] for v in problem.variables}
    at = {v: sympy.Rational(*doubles[v.name].as_integer_ratio()) for v in variables}
    slopes = [sympy.diff(formula, v) for v in variables]
    function = sympy.lambdify(variables, formula, "mpmath")

    def mpmath_diff() -> Numbers:
        with mpmath.workdps(40):
            point = [mpmath.mpf(value.p) / value.q for value in at.values()]
            moved = [lambda x, i=i: function(*point[:i], x, *point[i + 1 :]) for i in range(len(point))]
            return [float(mpmath.diff(f, x)) for f, x in zip(moved, point, strict=True)]

    found = {
        "SymPy evalf": lambda: [float(slope.subs(at).evalf(20)) for slope in slopes],
        "mpmath diff": mpmath_diff,
    }
    if importlib.util.find_spec("symengine"):
        found["symengine"] = symengine(slopes, at)
    return found


def symengine(slopes: Sequence[Any], at: Mapping[Any, Any]) -> Callable[[], Numbers]:
    """Its evaluation in MPFR at a fixed precision."""
    import symengine as s

    translated = [s.sympify(slope) for slope in slopes]
    point = {s.sympify(variable): s.sympify(value) for variable, value in at.items()}
    return lambda: [float(slope.subs(point).n(70, real=True)) for slope in translated]


def beside(problem: Problem) -> str:
    """Microseconds an entry of everyone, after everyone has given the same numbers."""
    proofs = {name: float(p.exact or "nan") for name, p in zip(problem.columns, prove(problem)[0], strict=True)}
    spent = {"proved": seconds(lambda: prove(problem)) / (problem.output_size * len(problem.columns))}
    for name, ask in contenders(problem).items():
        found = ask()
        expected = [value for value in proofs.values() if value]
        if not all(any(math.isclose(value, other, rel_tol=1e-12) for other in found) for value in expected):
            sys.exit(f"{name} gives other numbers: {found}, not {expected}")
        spent[name] = seconds(ask) / len(found)
    return ", ".join(f"{name} {1e6 * each:.0f}" for name, each in spent.items())


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
        print(f"{name:24} µs an entry: {beside(problem)}")


if __name__ == "__main__":
    main()
