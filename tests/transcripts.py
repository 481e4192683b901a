"""The transcripts in the documents: ``python tests/transcripts.py`` writes them anew; a test compares."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def rerun(transcript: str) -> str:
    """Every command of a transcript with what it prints now, errors last."""
    env = {k: v for k, v in os.environ.items() if k != "JACLI_FORMAT"} | {"PYTHONPATH": str(ROOT)}
    shown = ""
    for line in transcript.splitlines():
        if line.startswith("$ jacli "):
            words = [sys.executable, "-m", "jacli", *shlex.split(line)[2:]]
            done = subprocess.run(words, capture_output=True, env=env, timeout=120, check=False)
            shown += f"{line}\n{done.stdout.decode()}{done.stderr.decode()}"
    return shown


if __name__ == "__main__":
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        old = page.read_text()
        page.write_text(CONSOLE.sub(lambda found: f"```console\n{rerun(found[1])}```", old))
