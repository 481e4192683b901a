"""Errors as people and scripts read them: what is wrong, where, what to type instead."""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence

from jacli.errors import JacliError, Span
from jacli.text import printable, width_of

#: Characters of a long line to show on either side of the place.
AROUND = 60


def refusal(error: JacliError, *, as_json: bool) -> str:
    """The error as text with a caret run, or as one JSON document."""
    if as_json:
        return _document(error)
    lines = ["error: " + _one_line(error.message)]
    if error.text is not None and error.span is not None:
        lines += excerpt(error.text, error.span)
    if error.hint:
        lines += ["hint: " + _one_line(error.hint)]
    return "\n".join(lines) + "\n"


def _document(error: JacliError) -> str:
    import json

    from jacli.result import SCHEMA

    span = [error.span.start, error.span.stop] if error.span else None
    body = {"kind": error.kind, "message": error.message, "span": span, "hint": error.hint}
    return json.dumps({"schema": SCHEMA, "error": body}, ensure_ascii=True) + "\n"


def _one_line(text: str) -> str:
    return printable(" ".join(text.split("\n")))


def excerpt(text: str, span: Span) -> list[str]:
    """The line that ``span`` begins in, and carets under the place; a long line is shown around it only."""
    start = min(max(span.start, 0), len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_stop = text.find("\n", start)
    line_stop = len(text) if line_stop < 0 else line_stop
    stop = min(max(span.stop, start), line_stop)

    left, right = max(line_start, start - AROUND), min(line_stop, max(start + 1, min(stop, start + AROUND)) + AROUND)
    before, place, after = (printable(text[a:b]) for a, b in ((left, start), (start, min(stop, right)), (stop, right)))
    lead, trail = "… " if left > line_start else "", " …" if right < line_stop else ""
    where = f"  line {text.count(chr(10), 0, start) + 1}: " if "\n" in text.rstrip("\n") else "  "
    carets = " " * width_of(where + lead + before) + "^" * max(1, width_of(place))
    return [f"{where}{lead}{before}{place}{after}{trail}", carets]


def wants_json(words: Sequence[str]) -> bool:
    """Whether the words ask for JSON, even where they are otherwise wrong."""
    chosen = os.environ.get("JACLI_FORMAT", "")
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word == "--format":
            chosen = following
        elif word.startswith("--format="):
            chosen = word.removeprefix("--format=")
    return chosen in ("json", "jsonl")


def bug_report(bug: Exception) -> str:
    """One line: what happened, where in jacli, and how to report it."""
    frames = [frame for frame in traceback.extract_tb(bug.__traceback__) if f"{os.sep}jacli{os.sep}" in frame.filename]
    where = f" at {os.path.relpath(frames[-1].filename, _package())}:{frames[-1].lineno}" if frames else ""
    what = _one_line(f"{type(bug).__name__}: {bug}")[:300]
    return f"error: a bug in jacli: {what}{where}; please report this line and the command to the authors of jacli\n"


def _package() -> str:
    import jacli.errors

    return os.path.dirname(os.path.dirname(os.path.abspath(jacli.errors.__file__)))  # noqa: PTH100, PTH120
