"""Text to tokens. Typeset characters that people paste are read as the ASCII they stand for."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import NamedTuple

from jacli.errors import JacliError, Span

#: The longest text that is read, in tokens: about what a few seconds allow.
MOST_TOKENS = 100_000

#: Digits in one number, and the greatest power of ten: doubles end at 1.8e308.
MOST_DIGITS = 1000
MOST_EXPONENT = 400


class Token(NamedTuple):
    """``kind`` is ``number``, ``name``, ``power`` (a superscript: text holds the digits), ``end``, or the operator
    itself (``+``, ``**``, ``newline`` …).
    """

    kind: str
    text: str
    span: Span


_TYPESET = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "×": "*", "·": "*", "⋅": "*", "∙": "*", "∗": "*", "÷": "/", "∕": "/",
    "⁄": "/", "≤": "<=", "≥": ">=", "≠": "!=", "π": "pi", "𝜋": "pi",
}  # fmt: skip
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
NOT_IN_NAMES = "\u00aa\u00b2\u00b3\u00b9\u00ba\u00bc-\u00be\u03c0\u2070-\u2079\u207a-\u207f\U0001d70b"

_TOKEN = re.compile(
    rf"""
    (?P<space>[ \t\r\f\v\u00a0\u2000-\u200b\u202f\u3000\ufeff]+|\#[^\n]*|\\\n)
  | (?P<newline>\n)
  | (?P<number>(?:[0-9]+\.(?!T\b)[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?)
  | (?P<name>[^\W\d{NOT_IN_NAMES}][\w]*)
  | (?P<transpose>\.T\b)
  | (?P<operator>\*\*|<=|>=|==|!=|//|&&|\|\||[-+*/^@<>=(),;:\[\]{{}}])
  | (?P<power>[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)
  | (?P<typeset>[{"".join(_TYPESET)}])
    """,
    re.VERBOSE,
)
_NAME_END = re.compile(rf"[{NOT_IN_NAMES}]")

_INSTEAD = {
    "'": "quoted strings are not part of the language",
    '"': "quoted strings are not part of the language",
    "`": "quoted strings are not part of the language",
    ".": "attribute access (the dot) is not part of the language; decimals such as .5 and 2. are",
    "%": "for a remainder type Mod(x, y); a percentage is divided by 100",
    "!": "for a factorial type gamma(n + 1); for 'not equal' type !=",
    "|": "for an absolute value type abs(x); for 'or' type Or(p, q)",
    "&": "for 'and' type And(p, q)",
    "~": "for 'not' type Not(p)",
    "√": "type sqrt(x)",
    "∛": "type cbrt(x)",
    "∞": "infinity is not a number here",
    "½": "type 1/2",
    "¼": "type 1/4",
    "¾": "type 3/4",
    "²": "type **2",
    "\\": "a line may be broken inside brackets; elsewhere leave it out",
    "?": "a condition is typed Piecewise((value, condition), (other, True))",
    "$": "leave it out: a variable is typed as a bare name",
    "±": "a value is typed alone, without its uncertainty",
    "∂": "the command differentiates: type the expression alone",
    "∇": "the command differentiates: type the expression alone",
    "∑": "for a sum type sum([a, b]) or sum({x[i] for i in 0:n})",
    "∏": "for a product type prod([a, b]) or prod({x[i] for i in 0:n})",
    "‖": "for a length type norm(x)",
    "∥": "for a length type norm(x)",
    "°": "for degrees type x*pi/180",
    "′": "a prime is no part of a name",
}


def tokenize(text: str) -> list[Token]:
    """Split ``text`` into tokens, the last of kind ``end``. Raises JacliError at a character with no meaning."""
    tokens: list[Token] = []
    place, depth = 0, 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise _unreadable(text, place)
        kind, word = match.lastgroup or "", match.group()
        if kind == "name":
            word = _cut(word)
        span = Span(place, place + len(word))
        place = span.stop
        if kind == "space":
            continue
        token = _token(kind, word, span)
        depth += (token.kind in "([{") - (token.kind in ")]}")
        if token.kind == "newline" and (depth > 0 or (tokens and tokens[-1].kind == ",")):
            continue  # a line may be broken inside brackets and after a comma
        tokens.append(token)
        if len(tokens) > MOST_TOKENS:
            raise JacliError(f"the text is too long: at most {MOST_TOKENS:,} words and signs are read", kind="limit")
    tokens.append(Token("end", "", Span(len(text), len(text))))
    return tokens


def _cut(word: str) -> str:
    """A name ends before a superscript or π, which regular expressions count among the letters."""
    stop = _NAME_END.search(word)
    return word[: stop.start()] if stop else word


def _token(kind: str, word: str, span: Span) -> Token:
    if kind == "number":
        _check_number(word, span)
        return Token("number", word, span)
    if kind == "name":
        return Token("name", word if word.isascii() else _plain_name(word, span), span)
    if kind == "power":
        return Token("power", word.translate(_SUPERSCRIPTS), span)
    if kind == "typeset":
        word = _TYPESET[word]
        return Token("name" if word == "pi" else word, word, span)
    if kind == "operator":
        return Token({"^": "**", "&&": "and", "||": "or"}.get(word, word), word, span)
    return Token(kind, word, span)


def _plain_name(word: str, span: Span) -> str:
    """A name in plain letters: subscripts are digits, and letters in mathematical type are letters.

    A raised letter is no part of a name: ``eˣ`` is not a variable.
    """
    name = word.translate(_SUBSCRIPTS)
    for char in name:
        kind = unicodedata.decomposition(char).partition(" ")[0]
        if kind in ("<super>", "<sub>", "<compat>", "<circle>", "<square>", "<fraction>"):
            hint = f"for a power type **{unicodedata.normalize('NFKC', char)}" if kind == "<super>" else None
            raise JacliError(f"the character {char!r} cannot be part of a name", span, hint, kind="syntax")
    return unicodedata.normalize("NFKC", name)


def _check_number(word: str, span: Span) -> None:
    digits, _, exponent = word.lower().partition("e")
    if len(digits) > MOST_DIGITS:
        raise JacliError(f"a number of {len(digits)} digits is too long: at most {MOST_DIGITS}", span, kind="limit")
    far = bool(exponent) and (len(exponent) > 6 or abs(int(exponent)) > MOST_EXPONENT)
    if far or math.isinf(float(word)) or (float(word) == 0 and digits.strip("0.")):
        raise JacliError(f"{word} is beyond the range of doubles (about 1e-308 to 1.8e308)", span, kind="limit")


def _unreadable(text: str, place: int) -> JacliError:
    char = text[place]
    if 0xDC80 <= ord(char) <= 0xDCFF:
        return JacliError("the text is not valid UTF-8", None, "save or type it as UTF-8", kind="syntax")
    shown = (
        f"{char!r}" if char.isprintable() and char not in "'\"" else f"U+{ord(char):04X}" if char not in "'\"" else char
    )
    hint = _INSTEAD.get(char) or _plainer(char)
    return JacliError(
        f"the character {shown} in column {_column(text, place)} has no meaning here",
        Span(place, place + 1),
        hint,
        kind="syntax",
    )


def _plainer(char: str) -> str | None:
    """What to type for a character that is another one in a different width or style: ``（`` is ``(``."""
    plain = unicodedata.normalize("NFKC", char)
    return f"type {plain}" if plain != char and plain.isascii() and plain.isprintable() and plain.strip() else None


def _column(text: str, place: int) -> int:
    return place - (text.rfind("\n", 0, place) + 1) + 1
