"""Results for the eye: a few points in a table, many in a summary."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, BinaryIO

from jacli.render.numbers import show
from jacli.render.options import Options
from jacli.render.sections import Facts, Section, Table, Verdict
from jacli.stream.answer import POINT_STATUSES, Answer
from jacli.stream.run import Tally, relative
from jacli.stream.sink import Kept, names_of, numbers_of
from jacli.stream.source import Rows
from jacli.stream.task import Task

#: With more points than this, a summary is shown.
MOST_SHOWN = 100


class Board:
    """A table, or a summary, written at the end."""

    def __init__(self, task: Task, unit: str, tally: Tally, options: Options, format_name: str) -> None:
        self.task, self.unit, self.tally = task, unit, tally
        self.options, self.format_name = options, format_name
        self._rows: list[tuple[str, ...]] = []
        self._file: BinaryIO | None = None

    def open(self, file: BinaryIO, *, resume: bool) -> Kept:
        """Remember the file; a table is never continued."""
        assert not resume
        self._file = file
        return Kept()

    def write(self, rows: Rows, answer: Answer) -> None:
        """Keep the first rows."""
        room = MOST_SHOWN + 1 - len(self._rows)
        if room > 0 and len(rows.lines):
            digits = self.options.digits
            table = numbers_of(rows.numbers, answer)[:room].tolist()
            for line, numbers, code in zip(rows.lines.tolist(), table, answer.status.tolist(), strict=False):
                self._rows.append((str(line), *(show(number, digits) for number in numbers), POINT_STATUSES[code]))

    def close(self) -> None:
        """Write everything."""
        assert self._file is not None
        self._file.write(composed(self._sections(), self.options, self.format_name))
        self._file.flush()

    def _sections(self) -> list[Section]:
        if self.tally.points > MOST_SHOWN:
            return summary(self.tally, self.task, self.unit)
        header = (self.unit, *names_of(self.task), "status")
        last = len(header) - 1
        table = Table("Points", header, tuple(self._rows), words=frozenset({last}), verdict=last)
        return [table, Verdict(self.tally.worst, verdict(self.tally, self.unit))]


def summary(tally: Tally, task: Task, unit: str) -> list[Section]:
    """What there is to say about points that are not shown."""
    return [Facts(tuple(_facts(tally, task, unit))), Verdict(tally.worst, verdict(tally, unit))]


def composed(sections: Sequence[Section], options: Options, format_name: str) -> bytes:
    """The sections in a format for the eye."""
    compose: Any = import_module(f"jacli.render.{format_name}").compose
    text: str = compose(sections, options)
    return text.encode("utf-8", "backslashreplace")


def _facts(tally: Tally, task: Task, unit: str) -> list[tuple[str, str]]:
    facts = [
        ("points", f"{tally.points:,}"),
        ("variables", ", ".join(task.layout.names[:20]) + (", …" if len(task.layout.names) > 20 else "")),
        ("each", f"{_many(len(task.outputs), 'value')}, {_many(len(task.entries), 'derivative')}"),
        ("statuses", counted(tally)),
        ("proved", f"{_many(tally.settled, 'point')} {'was' if tally.settled == 1 else 'were'} settled one by one"),
    ]
    if tally.gap[0]:
        facts.append(("largest gap", f"{relative(tally.gap[0])} relative, at {unit} {tally.gap[1]}"))
    return facts


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def counted(tally: Tally) -> str:
    """Points by status, the worst last."""
    return (
        ", ".join(f"{tally.counts[name]:,} {name}" for name in POINT_STATUSES if tally.counts.get(name)) or "no points"
    )


def verdict(tally: Tally, unit: str) -> str:
    """The last line: the worst status, and where it was seen first."""
    text = f"verdict: {tally.worst} ({counted(tally)}"
    text += f"; {tally.bad:,} {unit}{'s' * (tally.bad != 1)} could not be read)" if tally.bad else ")"
    if tally.worst in tally.first:
        line, reason = tally.first[tally.worst]
        text += f"; first at {unit} {line}" + (f": {reason}" if reason else "")
    return text
