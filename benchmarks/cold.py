"""One answer from a shell: jacli cold and warm beside ``python -c "import torch"`` and its peers, as ratios of one run.

    python benchmarks/cold.py              # 15 rounds
    python benchmarks/cold.py --rounds 5

Every round runs each contender once, in turn; a figure is the median over the rounds. sympy, jax and casadi take part
where they are installed. All who compute must give the same Jacobian and the same product.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

REQUEST = ("jacobian", "x0**2+x1, x1**3+2*x0", "--at", "2,4", "--weights", "1,2")
JACOBIAN, PRODUCT = [[4, 1], [2, 48]], [8, 97]

PEERS = {
    "sympy": """
import sympy as s
x0, x1 = s.symbols("x0 x1")
J = s.Matrix([x0**2 + x1, x1**3 + 2*x0]).jacobian([x0, x1]).subs({x0: 2, x1: 4})
print([[int(J[i, j]) for j in (0, 1)] for i in (0, 1)], [int(v) for v in s.Matrix([[1, 2]]) * J], sep=";")
""",
    "torch": """
import torch
x = torch.tensor([2.0, 4.0], dtype=torch.float64, requires_grad=True)
y = torch.stack([x[0]**2 + x[1], x[1]**3 + 2*x[0]])
J = torch.func.jacrev(lambda x: torch.stack([x[0]**2 + x[1], x[1]**3 + 2*x[0]]))(x)
v, = torch.autograd.grad(y, x, torch.tensor([1.0, 2.0], dtype=torch.float64))
print(J.tolist(), v.tolist(), sep=";")
""",
    "jax": """
import jax
jax.config.update("jax_enable_x64", True)
from jax import numpy as n
f = lambda x: n.stack([x[0]**2 + x[1], x[1]**3 + 2*x[0]])
x = n.array([2.0, 4.0])
print(jax.jacrev(f)(x).tolist(), jax.vjp(f, x)[1](n.array([1.0, 2.0]))[0].tolist(), sep=";")
""",
    "casadi": """
import casadi as c
x = c.SX.sym("x", 2)
y = c.vertcat(x[0]**2 + x[1], x[1]**3 + 2*x[0])
f = c.Function("f", [x], [c.jacobian(y, x), c.jtimes(y, x, c.DM([1, 2]), True)])
J, v = f([2, 4])
print(J.full().tolist(), v.full().T.tolist()[0], sep=";")
""",
}


@dataclass(frozen=True)
class Contender:
    """A command line; ``status`` is how it may end, ``answers`` whether it prints the Jacobian and the product."""

    name: str
    words: Sequence[str]
    answers: bool = False
    status: int | tuple[int, ...] = 0
    env: Mapping[str, str] = field(default_factory=dict)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with server() as warm:
        everyone = list(contenders(warm))
        for contender in everyone:  # the first time files are read from the disk
            check(contender)
        times = measure(everyone, rounds)
    show(everyone, times)


@contextmanager
def server() -> Iterator[Mapping[str, str]]:
    """A warm server of our own: the environment in which jacli finds it."""
    place = tempfile.mkdtemp(prefix="jacli-bench-")
    env = {"XDG_RUNTIME_DIR": place, "JACLI_SERVER": "on"}
    try:
        run(Contender("serve", (*jacli(), "serve", "--background"), env=env))
        yield env
        run(Contender("stop", (*jacli(), "serve", "--stop"), env=env))
    finally:
        shutil.rmtree(place)


def jacli() -> tuple[str, ...]:
    """The command as users start it."""
    command = shutil.which("jacli", path=str(Path(sys.executable).parent))
    return (command,) if command else (sys.executable, "-m", "jacli")


def contenders(warm: Mapping[str, str]) -> Iterator[Contender]:
    """Those that are installed; the first is the measure of all."""
    yield Contender("import torch", (sys.executable, "-c", "import torch"))
    yield Contender("python itself", (sys.executable, "-c", "pass"))
    cold = {"JACLI_SERVER": "off"}
    for kind, env in (("cold", cold), ("warm", warm)):
        yield Contender(f"jacli {kind}, table", (*jacli(), *REQUEST), env=env)
        yield Contender(f"jacli {kind}, json", (*jacli(), *REQUEST, "--format", "json"), answers=True, env=env)
    for kind, env in (("cold", cold), ("warm", warm)):
        yield Contender(f"jacli {kind}, --help", (*jacli(), "--help"), env=env)
        yield Contender(f"jacli {kind}, functions", (*jacli(), "functions"), env=env)
        yield Contender(f"jacli {kind}, refusal", (*jacli(), "jacobian", "x + sinn(x)", "--at", "2"), status=2, env=env)
    for name, code in PEERS.items():
        if importlib.util.find_spec(name):
            yield Contender(f"{name}, script", (sys.executable, "-c", code), answers=True)


def run(contender: Contender) -> bytes:
    """What it prints."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "JACLI"))}
    env = {**inherited, **contender.env}
    done = subprocess.run(contender.words, capture_output=True, env=env, check=False)  # noqa: S603 - our own words
    if done.returncode not in (contender.status if isinstance(contender.status, tuple) else (contender.status,)):
        sys.exit(f"{contender.name} ends with {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def check(contender: Contender) -> None:
    """Run once, and compare the numbers."""
    said = run(contender).decode()
    if not contender.answers:
        return
    if said.startswith("{"):
        document = json.loads(said)
        found = document["jacobian"], document["vjp"]
    else:
        found = tuple(json.loads(part) for part in said.split(";"))
    if found != (JACOBIAN, PRODUCT):
        sys.exit(f"{contender.name} gives other numbers: {found}")


def measure(everyone: Sequence[Contender], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of whole processes, each contender in turn."""
    times: dict[str, list[float]] = {contender.name: [] for contender in everyone}
    for _ in range(rounds):
        for contender in everyone:
            start = time.perf_counter()
            run(contender)
            times[contender.name].append(1e3 * (time.perf_counter() - start))
    return times


def show(everyone: Sequence[Contender], times: Mapping[str, Sequence[float]]) -> None:
    """The table: median and least time, and the median of the ratios to the first."""
    first = times[everyone[0].name]
    print(f"{'contender':<24}{'median ms':>10}{'least ms':>10}{'ratio':>8}")
    for contender in everyone:
        own = times[contender.name]
        ratio = median(a / b for a, b in zip(own, first, strict=True))
        print(f"{contender.name:<24}{median(own):>10.0f}{min(own):>10.0f}{ratio:>8.2f}")


if __name__ == "__main__":
    main()
