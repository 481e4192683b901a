"""The words of the command line, read against the table of commands.

A usual parser takes every word that begins with a minus for an option; here ``-x**2 + y`` is an expression and
``-1,2`` a point. Only a known option, or a word that could be nothing else than a mistyped one, is an option.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jacli.cli.commands import COMMANDS, SOURCE, Command, Option
from jacli.errors import JacliError, Span
from jacli.render import FORMATS

#: Words that other programs understand where a command is expected.
_INSTEAD = {
    **dict.fromkeys(("help", "?"), "--help"),
    "version": "--version",
    **dict.fromkeys(("jac", "j", "J", "derivative", "diff", "differentiate"), "jacobian"),
    "backprop": "backward",
}

_VALUE = re.compile(r"(?:[^\W\d]\w*=)?[-+.\d]\S*")
_LOOKS_LIKE_OPTION = re.compile(r"--[A-Za-z][A-Za-z_-]*(=.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Invocation:
    """What the words ask for: help or the version (of a command, or of jacli), or a command with its options."""

    command: Command | None = None
    help: bool = False
    version: bool = False
    given: Mapping[str, Any] = field(default_factory=dict)


def parse(words: Sequence[str]) -> Invocation:
    """Read the words. Raises JacliError for what no command understands."""
    words = [_as_utf8(word, number) for number, word in enumerate(words, start=1)]
    if not words:
        hint = f"type {COMMANDS['jacobian'].example}, or jacli --help for everything"
        raise JacliError("a command is missing", hint=hint, kind="option")
    if words[0] in ("--help", "-h"):
        return Invocation(help=True)
    if words[0] in ("--version", "-V"):
        return Invocation(version=True)
    command = _command(words[0])
    if words[1:] == ["-h"]:  # with an expression beside it, -h is the negative of h
        return Invocation(command, help=True)
    return _sort(command, words[1:])


def _as_utf8(word: str, number: int) -> str:
    """The word's bytes read as UTF-8, whatever encoding the locale would have them in."""
    try:
        return os.fsencode(word).decode("utf-8")
    except UnicodeError:
        raise JacliError(f"word {number} of the command line is not UTF-8 text", kind="option") from None


def _command(word: str) -> Command:
    if word in COMMANDS:
        return COMMANDS[word]
    if _LOOKS_LIKE_OPTION.fullmatch(word):
        hint = f"the command comes first: {COMMANDS['jacobian'].example}"
        raise JacliError(f"{word} comes before any command", hint=hint, kind="option")
    close = _INSTEAD.get(word) or _closest(word, COMMANDS)
    if close:
        hint = f"did you mean jacli {close}?"
    elif re.search(r"[^A-Za-z]", word):
        hint = f"to differentiate an expression, type: jacli jacobian '{word}' --at …"
    else:
        hint = "the commands are " + ", ".join(COMMANDS)
    raise JacliError(f"there is no command {word}", hint=hint, kind="option")


def _sort(command: Command, words: Sequence[str]) -> Invocation:
    """Tell the options with their values from the expression."""
    known = {option.name: option for option in command.options}
    given: dict[str, Any] = {option.key: option.default for option in command.options} | {"expression": None}
    others: list[str] = []
    rest = iter(words)
    for word in rest:
        option = known.get(word.partition("=")[0])
        if option:
            if given[option.key] is not None and _once(command, option):
                hint = "give it once; its values are separated by commas"
                raise JacliError(f"{option.name} is given twice", hint=hint, kind="option")
            value = _value(option, word, rest, known)
            given[option.key] = (*given[option.key], value) if option.many else value
        elif word == "--help":
            return Invocation(command, help=True)
        elif word == "--":
            others += rest
        elif _LOOKS_LIKE_OPTION.fullmatch(word):
            raise _unknown(command, word)
        else:
            others.append(word)
    if len(others) > command.takes_expression:
        raise _too_many(command, others, given.get("at"))
    return Invocation(command, given=given | {"expression": others[0] if others else None})


def _value(option: Option, word: str, rest: Iterator[str], known: Mapping[str, Option]) -> str | bool:
    """What follows the equals sign, or the next word, whatever it begins with, unless that is itself an option."""
    name, equals, attached = word.partition("=")
    if not option.metavar:
        if equals:
            span = Span(len(name), len(word))
            raise JacliError(f"{name} takes no value", span, f"type {name}", text=word, kind="option")
        return True
    value = attached if equals else next(rest, None)
    if not value or (not equals and value.partition("=")[0] in known):
        raise JacliError(f"{name} needs a value", hint=f"type {name} {option.metavar}", kind="option")
    return value


def _once(command: Command, option: Option) -> bool:
    """Whether an option is part of the question. How the answer is shown may be said again: the last word counts."""
    return bool(option.metavar) and not option.many and option in (*command.arguments, *SOURCE)


def _unknown(command: Command, word: str) -> JacliError:
    name = word.partition("=")[0]
    named = [option.name for option in command.options if name in option.also]
    if name[2:] in FORMATS:
        hint = f"did you mean --format {name[2:]}?"
    elif close := next(iter(named), None) or _closest(name, [option.name for option in command.options], 0.7):
        hint = f"did you mean {close}?"
    else:
        hint = f"jacli {command.name} --help lists its options"
        hint += f"; an expression is typed --expr={word}" if command.takes_expression else ""
    return JacliError(f"{command.name} has no option {name}", hint=hint, kind="option")


def _too_many(command: Command, others: Sequence[str], at: str | None) -> JacliError:
    if not command.takes_expression:
        return JacliError(f"{command.name} takes no {others[0]}", hint=f"type jacli {command.name}", kind="option")
    message = f"one expression is expected, and there are {len(others)}: {'  '.join(others)}"
    return JacliError(message, hint=_why_too_many(command, others, at), kind="option")


def _why_too_many(command: Command, others: Sequence[str], at: str | None) -> str:
    values = [word.strip(",") for word in others if _VALUE.fullmatch(word)]
    short = next((word for word in others if re.fullmatch("-[A-Za-z]+", word)), None)
    if any(_LOOKS_LIKE_OPTION.fullmatch(word) for word in others):
        return "options stand before --, and only the expression behind it"
    if short:
        names = [option.name for option in command.options if short in option.also or option.name == "-" + short]
        close = "--help" if short == "-h" else next(iter(names), None)
        return f"did you mean {close}?" if close else f"options begin with --: jacli {command.name} --help lists them"
    if values and len(values) >= len(others) - 1:
        given = [at] if at else []
        return f"a point is one word, without blanks: --at {','.join([*given, *values])}"
    return f"put the whole expression between quotes: {command.example}"


def _closest(word: str, choices: Mapping[str, Command] | Sequence[str], cutoff: float = 0.6) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(word.lower(), list(choices), n=1, cutoff=cutoff)), None)
