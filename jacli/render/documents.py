"""JSON: strict, one document, keys in the order of ``docs/json.md``, full precision."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jacli.render.options import Options
    from jacli.result import Result


def dump(document: Any) -> str:
    """Compact strict JSON; a number that JSON cannot hold is a bug, never a bare NaN."""
    return json.dumps(document, allow_nan=False, ensure_ascii=False)


def render_json(result: Result, _: Options) -> str:
    """One key a line: easy to read, to compare and to grep, and still one document."""
    lines = (f"  {dump(key)}: {dump(value)}" for key, value in result.to_dict().items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def render_jsonl(result: Result, _: Options) -> str:
    """The same document on one line."""
    return dump(result.to_dict()) + "\n"
