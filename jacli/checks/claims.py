"""Reading a derivative that someone derived by hand: formulas or numbers, written onto the problem's own tape.

A claim is text in jacli's language: rows separated by ``;`` or line ends, entries by commas, or one array
``[[…], […]]``, also as SymPy, NumPy and torch print it. It may use the variables and the statements of the expression,
and make statements of its own before its rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

from jacli.checks.places import scalars
from jacli.errors import JacliError, Span
from jacli.language.parser import read
from jacli.language.points import read_point, read_text_file
from jacli.language.shapes import infer
from jacli.language.syntax import Program
from jacli.problem import MOST_OPERATIONS, Problem
from jacli.readings.lowering import Lowered, TooLarge, run
from jacli.verify import refuse_absurd

_PRINTED = re.compile(r"\s*((?:Matrix|tensor|array)\()(.*?)((?:,\s*dtype\s*=\s*[\w.]+\s*)?\)\s*)", re.DOTALL)
_ROWS_IN_ONE_BRACKET = re.compile(r"(\s*\[)([^][]*;[^][]*)(\]\s*)", re.DOTALL)
_STATEMENT = re.compile(r"\s*[^\W\d]\w*\s*=(?!=)")
_NUMBER = re.compile(r"[-+−]?([0-9]*)(\.?)([0-9]*)([eE][-+]?[0-9]+)?")

#: A whole number of fewer digits is meant exactly.
_FEWEST_DIGITS_ROUNDED = 3


@dataclass(frozen=True, slots=True)
class Written:
    """One entry of a claim: its text and its node on the problem's tape."""

    text: str
    node: int

    @property
    def digits(self) -> int:
        """How many significant digits a decimal was typed with."""
        return len("".join(char for char in self.text.lower().partition("e")[0] if char.isdigit()).lstrip("0"))

    @property
    def quantum(self) -> Decimal | None:
        """The unit of the last digit typed, for a plain decimal; None for a formula and for a short whole number."""
        found = _NUMBER.fullmatch(self.text.strip().replace(" ", ""))
        if found is None:
            return None
        whole, dot, decimals, exponent = found.groups(default="")
        if not dot and not exponent and len(whole) < _FEWEST_DIGITS_ROUNDED:
            return None
        power = int(exponent[1:]) if exponent else 0
        return Decimal(1).scaleb(power - len(decimals))


@dataclass(frozen=True, slots=True)
class Matrix:
    """A claim as it was read.

    ``formulas`` says that it depends on the variables, and so is about more than the one point.
    """

    rows: tuple[tuple[Written, ...], ...]
    formulas: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Its rows and columns."""
        return len(self.rows), len(self.rows[0])

    def flat(self) -> Matrix:
        """All its entries in one row."""
        return Matrix((tuple(entry for row in self.rows for entry in row),), self.formulas)


def read_claim(given: Any, problem: Problem) -> Matrix:
    """Read a claim.

    Args:
        given: text, ``@FILE``, or nested sequences or an array of texts and numbers.
        problem: what the claim is about; its tape gets the claim's operations.

    Raises:
        JacliError: when it cannot be read, or its rows have different lengths.
    """
    text = _text(given)
    plain, texts = _in_plain_rows(text)
    names = _names(problem)
    try:
        program = read(plain, names.keys())
        nodes = _nodes(program, problem, names)
    except JacliError as error:
        raise _about_the_claim(error, text) from None
    rows = _rows(program, nodes, texts)
    lengths = [len(row) for row in rows]
    for index, (before, after) in enumerate(pairwise(lengths), start=1):
        if before != after:
            message = f"row {index} of the claim has {before} entries and row {index + 1} has {after}"
            raise JacliError(message, None, "rows end with ; and entries with a comma", kind="shape")
    formulas = any(name in program.variables for name in names)
    return Matrix(tuple(rows), formulas)


# ---- text


def _text(given: Any) -> str:
    if not isinstance(given, str):
        return _from_objects(given)
    if not given.strip().startswith("@"):
        return given
    path = given.strip()[1:].strip()
    if path.lower().endswith(".npy"):
        values = [item.value for item in read_point(f"@{path}", "claim").items]
        data = values[0] if len(values) == 1 else None
        if data is not None and len(getattr(data, "shape", ())) == 2:
            width = data.shape[1]  # type: ignore[union-attr]
            numbers = [repr(number) for number in data.numbers]  # type: ignore[union-attr]
            return "; ".join(", ".join(numbers[i : i + width]) for i in range(0, len(numbers), width))
        return ", ".join(repr(value.numbers[0]) for value in values)  # type: ignore[union-attr]
    return read_text_file(path, "claim")


def _from_objects(given: Any) -> str:
    """Nested sequences as text; rows are separated by semicolons."""
    items = given.tolist() if hasattr(given, "tolist") else given
    if isinstance(items, str) or not isinstance(items, Sequence):
        items = [items]
    if any(isinstance(row, Sequence) and not isinstance(row, str) for row in items):
        return "; ".join(", ".join(map(str, row)) if not isinstance(row, str) else row for row in items)
    return ", ".join(map(str, items))


def _in_plain_rows(text: str) -> tuple[str, list[list[str]]]:
    """The claim as one list of entries, every character in its place, and the texts of each row's entries.

    Statements keep their ends; other line ends and semicolons outside brackets become commas.
    """
    plain = _without_wrapping(text)
    characters = list(plain)
    rows: list[list[str]] = []
    last = None
    for start, stop in _lines(plain):
        part = plain[start:stop]
        if _STATEMENT.match(part):
            continue
        entries = part.rstrip().removesuffix(",")
        characters[start:stop] = entries.ljust(len(part))
        if entries.strip():
            rows.append(_entries(entries))
            if last is not None:
                characters[last] = ","
            last = stop
        elif stop < len(plain):
            characters[stop] = " "
    if last is not None:
        characters[last:] = " " * (len(characters) - last)
    return "".join(characters), rows


def _lines(text: str) -> list[tuple[int, int]]:
    """The ranges between semicolons and line ends outside brackets."""
    ranges, start, depth = [], 0, 0
    for place, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char in ";\n" and depth <= 0:
            ranges.append((start, place))
            start = place + 1
    return [*ranges, (start, len(text))]


def _entries(row: str) -> list[str]:
    """What stands between the commas outside brackets."""
    parts, depth = [""], 0
    for char in row:
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def _without_wrapping(text: str) -> str:
    """Comments, quotation marks and what libraries print around a matrix become spaces."""
    text = re.sub(r"#[^\n]*", lambda comment: " " * len(comment.group()), text).replace('"', " ").replace("'", " ")
    for pattern in (_PRINTED, _ROWS_IN_ONE_BRACKET):
        found = pattern.fullmatch(text)
        if found:
            text = " " * len(found[1]) + found[2] + " " * len(found[3])
    return text


def _about_the_claim(error: JacliError, text: str) -> JacliError:
    span = error.span
    if span is not None and span.start >= len(text):
        span = Span(max(len(text) - 1, 0), len(text))
    message = error.message.replace("a constant of the point", "a constant")
    return JacliError(f"in the claim: {message}", span, error.hint, text=text, kind=error.kind)


# ---- nodes


def _names(problem: Problem) -> Mapping[str, tuple[int, ...]]:
    """What a claim may speak of: the variables, and the expression's own statements."""
    assert problem.lowered is not None
    return {**problem.lowered.named, **problem.lowered.variables}


def _lowered(problem: Problem) -> Lowered:
    assert problem.lowered is not None
    return problem.lowered


def _nodes(program: Program, problem: Problem, names: Mapping[str, tuple[int, ...]]) -> list[Any]:
    """What every output is: a scalar, or a numpy array of scalars."""
    shapes = {variable.name: variable.shape for variable in problem.variables}
    shapes = {name: tuple(problem.shapes[node]) for name, node in problem.program.names.items()} | shapes
    tape = _lowered(problem).tape
    values: dict[int, Any] = {}
    for name, node in program.variables.items():
        if name not in names:
            known = ", ".join([variable.name for variable in problem.variables])
            message = f"{name} is neither a variable nor a statement of the expression"
            raise JacliError(message, program.nodes[node].span, f"the variables are {known}", kind="name")
        values[node] = scalars(tape, names[name], shapes[name])
    infer(program, {name: shapes[name] for name in program.variables})
    try:
        run(program, tape, values, len(tape.ops) + MOST_OPERATIONS, spans=False)
    except TooLarge:
        raise JacliError("it is too long", kind="limit") from None
    outputs = [values[node] for node in program.outputs]
    refuse_absurd(tape, [scalar.node for output in outputs for scalar in _flat(output)])
    return outputs


def _flat(value: Any) -> list[Any]:
    """The scalars in a scalar or an array."""
    return list(value.reshape(-1)) if hasattr(value, "reshape") else [value]


def _rows(program: Program, values: Sequence[Any], texts: Sequence[Sequence[str]]) -> list[tuple[Written, ...]]:
    """The entries row by row. An output may be an array: a whole row, or the whole matrix."""
    rows: list[tuple[Written, ...]] = []
    given = iter(zip(program.outputs, values, strict=True))
    for line in texts:
        row: list[Written] = []
        for text, (output, value) in zip(line, given, strict=False):
            shape: tuple[int, ...] = getattr(value, "shape", ())
            if len(shape) > 2:
                raise JacliError("a claim is a matrix, and this array has more than two axes", kind="shape")
            parts = _parts(program, output, value) if shape else [Written(text, value.node)]
            if len(shape) == 2:
                rows += [tuple(parts[i : i + shape[1]]) for i in range(0, len(parts), shape[1])]
            else:
                row += parts
        rows += [tuple(row)] if row else []
    return rows


def _parts(program: Program, output: int, value: Any) -> list[Written]:
    """The entries of one output, each with the text it was read from where there is one."""
    items = _flat(value)
    texts = _leaves(program, output)
    if len(texts) != len(items):
        whole = program.source(output)
        texts = [whole if len(items) == 1 else f"({whole})[{i}]" for i in range(len(items))]
    return [Written(text, item.node) for text, item in zip(texts, items, strict=True)]


def _leaves(program: Program, node: int) -> list[str]:
    """The texts in a nest of brackets."""
    if program.nodes[node].op != "array":
        return [program.source(node)]
    return [text for arg in program.nodes[node].args for text in _leaves(program, arg)]
