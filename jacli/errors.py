"""The one exception that a user is meant to see: what is wrong, where, and what to type instead."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of characters, ``text[start:stop]``."""

    start: int
    stop: int

    def to(self, other: Span) -> Span:
        """The smallest span that covers both."""
        return Span(min(self.start, other.start), max(self.stop, other.stop))


class JacliError(Exception):
    """A request that cannot be served.

    Attributes:
        message: one sentence, plain words.
        span: the place in ``text``, or None when no place is to blame.
        hint: what to type instead, or None.
        text: the text that ``span`` counts in (an expression, a point, a file's content), or None.
        kind: a stable word for scripts: ``syntax``, ``name``, ``shape``, ``point``, ``option``, ``limit``, ``file``…
    """

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        hint: str | None = None,
        *,
        text: str | None = None,
        kind: str = "request",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint
        self.text = text
        self.kind = kind

    def located_in(self, text: str) -> JacliError:
        """The same error, knowing the text its span counts in (kept if it knew one already)."""
        if self.text is None:
            self.text = text
        return self
