"""What the server does once, so that no worker has to: import everything, and answer a small request for nobody."""

from __future__ import annotations

import gc
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages

import jacli
from jacli import verify
from jacli.calculus import Exact, grad, jacobian
from jacli.cli.commands import COMMANDS
from jacli.cli.help import help_text
from jacli.problem import Tolerance, prepare, read_vector
from jacli.render import render
from jacli.result import Result

_PROGRAM, _POINT = "r = sqrt(x^2 + y^2); r, x*exp(-y)/3, atan2(y, x)", "3,4"


def rehearse() -> None:
    """Import all of jacli and fill the caches of what it uses; for the server, once.

    Without autograd: what its first pass starts might not survive a fork.
    """
    for module in walk_packages(jacli.__path__, "jacli."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):  # an extra that is not installed
                import_module(module.name)
    derive()
    draw(grad(prepare("2", "x=1"), Tolerance()))
    help_text(COMMANDS["jacobian"])
    gc.collect()
    gc.freeze()  # a worker's collector must not touch, and so copy, what all share


def answer() -> None:
    """A small request, for nobody; for a worker, while it waits: the memory that this writes to is then its own."""
    problem = prepare(_PROGRAM, _POINT)
    draw(jacobian(problem, Tolerance(), read_vector("1,2,3", problem.output_shapes, (), "weights")))


def derive() -> None:
    """Formulas and proofs of a small program."""
    exact = Exact(prepare(_PROGRAM, _POINT))
    exact.read_as()
    for node in exact.outputs:
        verify.prove_gradient(exact.tape, node, exact.columns)


def draw(result: Result) -> None:
    """A result, for reading and for programs."""
    for name in ("table", "json"):
        render(result, name)
