"""What all tests share.

Properties are tried on the same programs in every run; ``pytest --hypothesis-profile=explore`` looks for new ones.
"""

from __future__ import annotations

import signal

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, database=None)
settings.register_profile("explore", derandomize=False, print_blob=True)
settings.load_profile("repeatable")


def pytest_configure() -> None:
    """Processes that are interrupted by tests must hear it, also where the tests run in a shell's background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
