"""Equations of published sparse families, as text, with their starting points.

Broyden (1965), Moré and Cosnard (1979), Bratu (MINPACK-2, lambda = 6), the heat equation by the method of lines, and
Lorenz (1996, F = 8). The true values in ``data/sparse.jsonl`` were computed apart from jacli.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction


def broyden_tridiagonal(n: int) -> tuple[list[str], list[Fraction]]:
    def row(k: int) -> str:
        before = f" - x{k - 1}" if k > 0 else ""
        after = f" - 2*x{k + 1}" if k < n - 1 else ""
        return f"(3 - 2*x{k})*x{k}{before}{after} + 1"

    return [row(k) for k in range(n)], [Fraction(-1)] * n


def discrete_bvp(n: int) -> tuple[list[str], list[Fraction]]:
    def row(k: int) -> str:
        before = f" - x{k - 1}" if k > 0 else ""
        after = f" - x{k + 1}" if k < n - 1 else ""
        return f"2*x{k}{before}{after} + (x{k} + {k + 1}/{n + 1} + 1)**3/(2*{n + 1}**2)"

    return [row(k) for k in range(n)], [Fraction(k, n + 1) * (Fraction(k, n + 1) - 1) for k in range(1, n + 1)]


def heat1d(n: int) -> tuple[list[str], list[Fraction]]:
    def row(k: int) -> str:
        before = f" + x{k - 1}" if k > 0 else ""
        after = f" + x{k + 1}" if k < n - 1 else ""
        return f"{n + 1}**2*(-2*x{k}{before}{after})"

    return [row(k) for k in range(n)], [Fraction(k, n + 1) * (1 - Fraction(k, n + 1)) for k in range(1, n + 1)]


def lorenz96(n: int) -> tuple[list[str], list[Fraction]]:
    rows = [f"(x{(k + 1) % n} - x{(k - 2) % n})*x{(k - 1) % n} - x{k} + 8" for k in range(n)]
    return rows, [8 + Fraction(k % 7 - 3, 4) for k in range(n)]


def bratu2d(side: int) -> tuple[list[str], list[Fraction]]:
    def row(k: int) -> str:
        i, j = divmod(k, side)
        around = [(i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)]
        near = "".join(f" - x{a * side + b}" for a, b in around if 0 <= a < side and 0 <= b < side)
        return f"4*x{k}{near} - 6*exp(x{k})/{side + 1}**2"

    t = [Fraction(k, side + 1) for k in range(1, side + 1)]
    return [row(k) for k in range(side * side)], [8 * a * (1 - a) * b * (1 - b) for a in t for b in t]


FAMILIES: dict[str, Callable[[int], tuple[list[str], list[Fraction]]]] = {
    "broyden_tridiagonal": broyden_tridiagonal,
    "discrete_bvp": discrete_bvp,
    "heat1d": heat1d,
    "lorenz96": lorenz96,
    "bratu2d": bratu2d,
}


def problem(family: str, size: int) -> tuple[str, str]:
    """The equations, one a line, and the point, between commas."""
    rows, start = FAMILIES[family](size)
    return "\n".join(rows), ",".join(map(str, start))
