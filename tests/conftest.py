"""Properties are tried on the same programs in every run; `pytest --hypothesis-profile=explore` looks for new ones."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, database=None)
settings.register_profile("explore", derandomize=False, print_blob=True)
settings.load_profile("repeatable")
