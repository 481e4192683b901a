"""The command line: words → request → result → bytes and an exit status. No mathematics here.

Nothing heavy is imported before it is needed: ``--help``, ``functions`` and every refusal answer without torch,
SymPy or NumPy.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

ALL_AGREE, SOME_DO_NOT, REFUSED, BUG, INTERRUPTED = 0, 1, 2, 70, 130


def main() -> None:
    """The entry point. It leaves at once after flushing: torch's own goodbye takes half a second."""
    import gc
    import warnings

    gc.set_threshold(100_000)  # importing makes many objects and no garbage
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # what a library has to say to programmers
    os._exit(run(sys.argv[1:]))


def run(words: Sequence[str]) -> int:
    """Serve one command line and return its exit status; what was written is flushed."""
    from jacli.cli import streams
    from jacli.errors import JacliError

    try:
        from jacli.cli.app import serve

        status = serve(words)
    except JacliError as error:
        from jacli.cli.diagnostics import refusal, wants_json

        streams.write_error(refusal(error, as_json=wants_json(words)))
        status = REFUSED
    except KeyboardInterrupt:
        status = INTERRUPTED
    except Exception as bug:
        if sys.flags.dev_mode:
            raise
        from jacli.cli.diagnostics import bug_report

        streams.write_error(bug_report(bug))
        status = BUG
    return status
