"""From a ``Result`` to text or bytes: one small file per format, and this registry, the only list of formats.

A renderer takes ``(Result, Options)``. It is imported when it is asked for, so that a refusal never pays for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from jacli.render.options import Options

if TYPE_CHECKING:
    from jacli.result import Result

__all__ = ["DEFAULT", "FORMATS", "Format", "Options", "render"]

DEFAULT = "table"

Renderer = Callable[["Result", Options], str | bytes]


@dataclass(frozen=True, slots=True)
class Format:
    """One output format.

    Attributes:
        name: what ``--format`` takes.
        where: ``module:function`` below this package.
        rounds: it is for reading, so ``--digits`` applies; the others always carry full precision.
        binary: it is not text, and is not for a terminal.
    """

    name: str
    where: str
    rounds: bool = False
    binary: bool = False


FORMATS = {
    entry.name: entry
    for entry in (
        Format("table", "table:render", rounds=True),
        Format("plain", "plain:render", rounds=True),
        Format("json", "documents:render_json"),
        Format("jsonl", "documents:render_jsonl"),
        Format("csv", "delimited:render_csv"),
        Format("tsv", "delimited:render_tsv"),
        Format("markdown", "markdown:render", rounds=True),
        Format("latex", "latex:render", rounds=True),
        Format("npy", "npy:render", binary=True),
    )
}


def render(result: Result, format_name: str = DEFAULT, options: Options | None = None) -> str | bytes:
    """``result`` in the format called ``format_name``; text ends with a newline."""
    module, function = FORMATS[format_name].where.split(":")
    renderer: Renderer = getattr(import_module(f"{__name__}.{module}"), function)
    return renderer(result, options or Options())
