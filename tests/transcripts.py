"""The transcripts in the documents: ``python tests/transcripts.py`` writes them anew; a test compares."""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).parent.parent
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def rerun(transcript: str) -> str:
    """Every command of a transcript with what it prints now, errors last."""
    lines = [line for line in transcript.splitlines() if line.startswith("$ jacli ")]
    return "".join(f"{line}\n{said(shlex.split(line)[2:])}" for line in lines)


def said(words: Sequence[str]) -> str:
    """What a command prints, in this process: torch is imported once for all pages."""
    from jacli.cli import run

    out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
    with patch.dict(os.environ), redirect_stdout(out), redirect_stderr(err):
        os.environ.pop("JACLI_FORMAT", None)
        run(words)
    return "".join(stream.buffer.getvalue().decode() for stream in (out, err))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        old = page.read_text()
        page.write_text(CONSOLE.sub(lambda found: f"```console\n{rerun(found[1])}```", old))
