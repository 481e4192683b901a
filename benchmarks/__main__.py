"""Every table in one run: ``python benchmarks`` prints what docs/performance.md is made from.

    python benchmarks           # one answer, many points, proofs: some minutes
    python benchmarks --large   # a large Jacobian besides

jax, casadi, symengine and sympy take part where they are installed; all who compute must give the same numbers.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent

TABLES = {
    "One answer, whole processes": ["cold.py"],
    "Many points, in process, one core": ["points.py"],
    "Many points, whole processes": ["points.py", "--files"],
    "Many points, memory": ["points.py", "--memory"],
    "Exact values": ["proof.py"],
}
LARGE = {"One large Jacobian": ["large.py", "--peers"]}


def main() -> None:
    """Each table from a fresh process: what one imports is not there for the next."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--large", action="store_true", help="also one large Jacobian, which takes long")
    for title, (script, *words) in (TABLES | (LARGE if options.parse_args().large else {})).items():
        print(f"\n## {title}\n", flush=True)
        subprocess.run([sys.executable, str(HERE / script), *words], check=True)  # noqa: S603 - our own words


if __name__ == "__main__":
    main()
