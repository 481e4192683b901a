"""What the server does once, so that no worker has to: import everything, and answer a small request for nobody."""

from __future__ import annotations

import gc
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages

import jacli

_PROGRAM, _POINT = "r = sqrt(x^2 + y^2); r, x*exp(-y)/3, atan2(y, x)", "3,4"


def rehearse() -> None:
    """Import all of jacli and fill the caches of what it uses.

    Without autograd: what its first pass starts might not survive a fork, and it costs a worker next to nothing.
    """
    for module in walk_packages(jacli.__path__, "jacli."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):  # an extra that is not installed
                import_module(module.name)
    answer()
    gc.collect()
    gc.freeze()  # a worker's collector must not touch, and so copy, what all share


def answer() -> None:
    """A small request, for nobody. A worker does it too while it waits: the memory it writes to is then its own."""
    derive()
    draw()


def derive() -> None:
    """Formulas and proofs of a small program."""
    from jacli import verify
    from jacli.calculus import Exact
    from jacli.problem import prepare

    exact = Exact(prepare(_PROGRAM, _POINT))
    exact.read_as()
    for node in exact.outputs:
        verify.prove_gradient(exact.tape, node, exact.columns)


def draw() -> None:
    """A result that needs no derivative, and help, in the ways they are shown."""
    from jacli.calculus import grad
    from jacli.cli.commands import COMMANDS
    from jacli.cli.help import help_text
    from jacli.problem import Tolerance, prepare
    from jacli.render import FORMATS, render

    result = grad(prepare("2", "x=1"), Tolerance())
    for name in FORMATS:
        with suppress(jacli.JacliError):
            render(result, name)
    help_text(COMMANDS["jacobian"])
