"""The benchmarks' own code still runs, and every contender that is here gives the same numbers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="installed without its benchmarks")
def test_many_points_in_process() -> None:
    words = [sys.executable, str(BENCHMARKS / "points.py"), "--size", "64"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "arm 3x6: 64 points" in done.stdout
    assert done.stdout.count("jacli (two readings)") == 3
