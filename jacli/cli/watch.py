"""What a person sees while many points are computed, and how it ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from jacli.cli import ALL_AGREE, SOME_DO_NOT, streams
from jacli.cli.request import View
from jacli.text import printable

if TYPE_CHECKING:
    from jacli.stream.run import Tally
    from jacli.stream.source import Bad
    from jacli.stream.task import Task

#: A bad line is shown up to this many characters.
_SHOWN = 200

#: Seconds between two looks of the progress bar.
_PULSE = 0.2


def remark_unused(view: View, columns: Sequence[str] | None, task: Task) -> None:
    """Say which columns the program does not need."""
    unused = [
        name or "a column without a name"
        for place, name in enumerate(columns or ())
        if place not in task.layout.sources
    ]
    if unused:
        view.remark(f"not used by the program: {', '.join(unused)}"[:_SHOWN])


def status(tally: Tally) -> int:
    """The exit status."""
    return ALL_AGREE if tally.flawless else SOME_DO_NOT


def complain(view: View, text: str) -> None:
    """A line on standard error, unless quiet was asked for."""
    if not view.quiet:
        streams.write_error(text)


class Reported(Protocol):
    """What is watched: what its places are called, and how far it is."""

    @property
    def unit(self) -> str:
        """``line`` or ``row``."""

    def progress(self) -> float | None:
        """The part that is done, or None where nobody knows."""


class Watch:
    """What a person sees while it runs: bad lines, and on a terminal how far it is."""

    def __init__(self, source: Reported, view: View) -> None:
        self._source, self._view = source, view
        self._shows = not view.quiet and streams.is_terminal(sys.stderr)
        self._began = self._looked = time.monotonic()
        self._drawn = False

    def bad(self, bad: Bad) -> None:
        """A line that is no point."""
        self.clear()
        text = printable(bad.text)
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + f"… ({len(text)} characters)"
        complain(self._view, f"error: {self._source.unit} {bad.line}: {bad.message}: {shown}\n")

    def progress(self, tally: Tally) -> None:
        """Draw the bar, not too often."""
        now = time.monotonic()
        if not self._shows or now - self._looked < _PULSE:
            return
        self._looked = now
        spent = now - self._began
        part = self._source.progress()
        text = f"{tally.points:,} points  {tally.points / spent:,.0f}/s"
        if part:
            full = int(part * 20)
            text = f"[{'#' * full}{'.' * (20 - full)}] {part:4.0%}  {text}  {spent * (1 - part) / part:.0f} s left"
        self._drawn = True
        streams.write_error(f"\r\x1b[K{text}")

    def clear(self) -> None:
        """Take the bar away."""
        if self._drawn:
            streams.write_error("\r\x1b[K")
            self._drawn = False
