"""Comparisons and choices: what decides which branch of a program is taken."""

from __future__ import annotations

from typing import Any

from jacli.functions.row import Function


def _comparison(name: str, alias: str, sign: str, meaning: str) -> Function:
    return Function(
        name,
        f"{alias}(x, y)",
        f"{meaning}, as x {sign} y",
        (2, 2),
        lambda t, x, y: getattr(t, name)(x, y),
        aliases=(alias,),
        kind="condition",
    )


def _all(t: Any, *conditions: Any) -> Any:
    result = conditions[0]
    for condition in conditions[1:]:
        result = t.logical_and(result, condition)
    return result


def _any(t: Any, *conditions: Any) -> Any:
    result = conditions[0]
    for condition in conditions[1:]:
        result = t.logical_or(result, condition)
    return result


CONDITIONS = (
    _comparison("lt", "Lt", "<", "less than"),
    _comparison("le", "Le", "<=", "at most"),
    _comparison("gt", "Gt", ">", "greater than"),
    _comparison("ge", "Ge", ">=", "at least"),
    _comparison("eq", "Eq", "==", "equal"),
    _comparison("ne", "Ne", "!=", "not equal"),
    Function("and", "And(p, q, …)", "all of the conditions", (1, None), _all, aliases=("And",), kind="condition"),
    Function("or", "Or(p, q, …)", "any of the conditions", (1, None), _any, aliases=("Or",), kind="condition"),
    Function(
        "not", "Not(p)", "the opposite", (1, 1), lambda t, p: t.logical_not(p), aliases=("Not",), kind="condition"
    ),
    Function(
        "Piecewise",
        "Piecewise((value, condition), …)",
        "the first value whose condition holds; the last condition is usually True",
        (1, None),
        lambda t, *pairs: None,
        kind="choice",
        kinks="where the pieces do not join smoothly",
        example=("Piecewise((x**2, x < 1), (2*x - 1, True))", "x=0.5"),
    ),
    Function(
        "where",
        "where(condition, a, b)",
        "a where the condition holds, else b",
        (3, 3),
        lambda t, c, a, b: t.where(c, a, b),
        kind="choice",
        kinks="where the pieces do not join smoothly",
        example=("where(x < 1, x**2, 2*x - 1)", "x=0.5"),
    ),
)
