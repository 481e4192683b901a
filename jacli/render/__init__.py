"""From a ``Result`` to text or bytes: one small file per format, and this registry, the only list of formats.

A renderer takes ``(Result, Options)``. It is imported when it is asked for, so that a refusal never pays for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from jacli.errors import JacliError
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
        large: the same for the result of a large program; empty where there is none.
        sparse: it is for sparse matrices only.
        whole: a matrix in it has every entry, zeros included.
    """

    name: str
    where: str
    rounds: bool = False
    binary: bool = False
    large: str = ""
    sparse: bool = False
    whole: bool = False


FORMATS = {
    entry.name: entry
    for entry in (
        Format("table", "table:render", rounds=True, large="table:render"),
        Format("plain", "plain:render", rounds=True, large="plain:render"),
        Format("json", "documents:render_json", large="documents:render_json", whole=True),
        Format("jsonl", "documents:render_jsonl", large="documents:render_jsonl", whole=True),
        Format("csv", "delimited:render_csv", large="large:render_csv"),
        Format("tsv", "delimited:render_tsv", large="large:render_tsv"),
        Format("markdown", "markdown:render", rounds=True, large="markdown:render"),
        Format("latex", "latex:render", rounds=True),
        Format("npy", "npy:render", binary=True, large="large:render_npy"),
        Format("mtx", "", large="large:render_mtx", sparse=True),
        Format("npz", "", binary=True, large="large:render_npz", sparse=True),
        Format("coo", "", large="large:render_coo", sparse=True),
    )
}


def render(result: Result, format_name: str = DEFAULT, options: Options | None = None) -> str | bytes:
    """``result`` in the format called ``format_name``; text ends with a newline."""
    chosen = FORMATS[format_name]
    where = chosen.large if result.large else chosen.where
    if not where:
        kind = "a large sparse result" if result.large else "this result, which is no sparse matrix,"
        raise JacliError(f"{format_name} cannot hold {kind}", hint="use --format csv or json", kind="option")
    module, function = where.split(":")
    renderer: Renderer = getattr(import_module(f"{__name__}.{module}"), function)
    return renderer(result, options or Options())
