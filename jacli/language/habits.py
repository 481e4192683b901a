"""Other notations – LaTeX, Python, MATLAB, a textbook's – and what to type here instead.

They are never read, for some of them mean something else elsewhere; but who types them is told the words of this
language, made of what was typed.
"""

from __future__ import annotations

import re

from jacli.errors import Span
from jacli.functions import lookup

#: Characters on either side of a place that may explain it.
AROUND = 60

_NAME = r"[^\W\d]\w*"
_MODULES = "np|numpy|jnp|jax|torch|math|cmath|sympy|sp|scipy|special|tf|nn|F|mpmath|mp"
_ALONE = "the command differentiates: type the expression alone"

#: What a habit looks like, and what to say of it. A group ``function`` must be a function's name.
_HABITS = [
    (re.compile(pattern), hint)
    for pattern, hint in (
        (r"\\d?frac\b", "this looks like LaTeX: type \\\\frac{a}{b} as (a)/(b), and every product with *"),
        (r"\\(?:left|right)\b|\\[,;!{}]", "this looks like LaTeX: leave it out"),
        (r"\\(?:cdot|times)\b", "this looks like LaTeX: type *"),
        (r"\\([A-Za-z]+)", r"this looks like LaTeX: type \1 without the backslash, and every product with *"),
        (r"([^\W\d]\w*?)_\{(\w+)\}", r"type \1_\2"),
        (r"(?:\^|\*\*)\s*\{([^{}]*)\}", r"type ^(\1)"),
        (rf"(?P<function>{_NAME})\s*(?:\^|\*\*)\s*\(?-\s*1\)?\s*\(?", r"type 1/\1(…); the inverse of sin is asin(…)"),
        (rf"(?P<function>{_NAME})\s*(?:\^|\*\*)\s*([0-9]+)\s*\(([^()]*)\)", r"type \1(\3)^\2"),
        (rf"(?P<function>{_NAME})\s*(?:\^|\*\*)\s*([0-9]+)", r"type \1(…)^\2"),
        (rf"(?P<function>{_NAME})([²³])", r"type \1(…)\2"),
        (rf"(?P<function>{_NAME})\s+(\w+)", r"type \1(\2)"),
        (rf"\b(?:{_MODULES})(?:\.\w+)*\.(\w+)", r"functions are typed without a module: \1"),
        (r"\.([*/^])", r"operators work entry by entry: type \1"),
        (rf"[\w)\]]\.({_NAME})\(", r"a method is typed as a function: \1(…)"),
        (rf"\bd({_NAME})\s*/\s*dt\s*=", r"type the right side alone, or name it: d\1 = …; d\1"),
        (rf"\b[d∂][²³]?(?:\^[0-9])?({_NAME})?\s*/\s*[d∂]{_NAME}(?:\^[0-9])?", _ALONE),
        (r"\b(?:diff|Diff|derivative|Derivative|D|grad|gradient|jacobian|hessian)\s*\(", _ALONE),
        (rf"({_NAME})\s*\(\s*{_NAME}(?:\s*,\s*{_NAME})*\s*\)\s*=(?!=)", r"a statement names a value: type \1 = …; \1"),
        (rf"({_NAME})['’′]", r"a prime is no part of a name: type d\1"),
        (rf"({_NAME})\s*:=", r"type \1 = …"),
        (r"[-+*/]=", "a name has one value; give the new one another name"),
        (r"\blambda\b[\w\s,]*:|@\s*\([\w\s,]*\)|[-=]>", "type the expression alone: names need no declaration"),
        (r"\b(?:if|iif|IF|ifelse|cond)\s*\(", "type where(condition, a, b)"),
    )
]  # fmt: skip


def hint_for(text: str, span: Span) -> str | None:
    """What to type instead of a habit that ``span`` is part of, or None."""
    start = max(0, span.start - AROUND)
    place, stop = span.start - start, max(span.stop, span.start + 1) - start
    window = text[start : start + stop + AROUND]
    for pattern, hint in _HABITS:
        for match in pattern.finditer(window):
            if match.start() < stop and place < match.end() and _holds(match):
                return match.expand(hint)
    return None


def _holds(match: re.Match[str]) -> bool:
    """Whether a name that must be a function's is one."""
    name = match.groupdict().get("function")
    return name is None or lookup(name) is not None
