"""Tokens to a program, by precedence climbing (Pratt). Nothing is evaluated and no number library is needed.

From loosest to tightest: ``or``, ``and``, ``not``, comparisons, ``+ -``, ``* / @``, unary ``-``, ``**``
(to the right), then brackets behind a name. ``-x**2`` is ``-(x**2)`` and ``2**-x`` is ``2**(-x)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from fractions import Fraction
from typing import Any

from jacli.errors import JacliError, Span
from jacli.functions import Function, lookup, suggest
from jacli.language.habits import hint_for
from jacli.language.syntax import Node, Program, natural_key
from jacli.language.tokens import Token, tokenize
from jacli.recursion import deep

#: Brackets, signs and powers inside one another. Formulas people write stay far below.
MOST_NESTED = 200

_CONSTANT_ARITHMETIC: dict[str, Callable[[Fraction, Fraction], Any]] = {
    "neg": lambda a, _: -a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "pow": lambda a, b: a ** int(b),
}
_COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_BINARY = {"+": ("add", 5), "-": ("sub", 5), "*": ("mul", 6), "/": ("div", 6), "@": ("matmul", 6)}
_UNARY_POWER, _POWER = 7, 8
_CONDITION_OPS = frozenset(("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "true", "false"))
CONSTANTS = ("pi", "E")
_NOT_DECIMAL = re.compile("[xX][0-9a-fA-F]+|[bo][0-9]+")
CONDITION_WORDS = frozenset(("and", "or", "not"))
REFUSED_WORDS = frozenset(
    "import from class def return if else elif for while with as assert async await break continue del except finally "
    "global in is nonlocal pass raise try yield exec eval".split()
)


def read(text: str, bound: Collection[str] = (), *, internal: bool = False) -> Program:
    """Read a text.

    Args:
        text: statements as in ``docs/language.md``.
        bound: names that the point or ``--vars`` gives a value; among them ``pi`` and ``E`` are variables.
        internal: accept the helper functions that only the table's own formulas use.

    Raises:
        JacliError: with the span of the offending place.
    """
    try:
        with deep(20 * MOST_NESTED):
            return _Parser(text, bound, internal).program()
    except JacliError as error:
        if error.span is not None and error.kind in ("syntax", "name"):
            error.hint = hint_for(text, error.span) or error.hint
        raise error.located_in(text) from None


class _Parser:
    """One pass over the tokens. ``nodes`` grows; every method returns the index of the node it read."""

    def __init__(self, text: str, bound: Collection[str], internal: bool) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.place = 0
        self.depth = 0
        self.bound = frozenset(bound)
        self.internal = internal
        self.nodes: list[Node] = []
        self.names: dict[str, int] = {}
        self.counters: dict[str, int] = {}
        self.variables: dict[str, int] = {}

    # ---- tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    def advance(self) -> Token:
        token = self.tokens[self.place]
        self.place += 1
        return token

    def accept(self, kind: str) -> Token | None:
        return self.advance() if self.token.kind == kind else None

    def expect(self, kind: str, opened: Token) -> Token:
        if self.token.kind == kind:
            return self.advance()
        if self.token.kind in (")", "]", "}"):
            raise JacliError(
                f"{opened.text!r} is closed by {self.token.text!r}",
                self.token.span,
                f"type {kind!r} here",
                kind="syntax",
            )
        if self.token.kind == "end":
            raise JacliError(f"{opened.text!r} is never closed", opened.span, f"add {kind!r}", kind="syntax")
        if self.token.kind == ";":
            hint = "rows are typed [[a, b], [c, d]]" if kind == "]" else f"type {kind!r} before it"
            raise JacliError(f"{opened.text!r} is not closed before ';'", self.token.span, hint, kind="syntax")
        raise self.unexpected()

    def unexpected(self) -> JacliError:
        """The error for a token that cannot stand where it stands."""
        token, before = self.token, self.tokens[self.place - 1] if self.place else None
        if token.kind in ("end", "newline", ";") and (before is None or before.kind in ("newline", ";")):
            return JacliError("there is no expression", token.span, "type one, such as x0**2 + x1", kind="syntax")
        if token.kind in ("end", "newline", ";"):
            shown = before.text if before else ""
            return JacliError(f"the expression ends after {shown!r}", token.span, "type what follows it", kind="syntax")
        if token.kind in (")", "]", "}"):
            return JacliError(
                f"{token.text!r} closes nothing", token.span, "remove it or open a bracket", kind="syntax"
            )
        if token.kind == ",":
            return JacliError("there is nothing between the commas", token.span, "remove a comma", kind="syntax")
        if before and before.kind in ("number", "name", ")", "]", "power") and token.kind in ("number", "name", "("):
            return self.juxtaposition(before, token)
        hints = {
            "//": "for whole division type floor(x/y)",
            "=": "a statement is name = expression; to compare type ==",
            "{": "brackets are ( ) for grouping and [ ] for arrays; a family is {x[i]**2 for i in 0:len(x)}",
            "transpose": ".T follows an array's name or bracket",
        }
        shown = self.text[token.span.start : token.span.stop]
        return JacliError(f"{shown!r} cannot stand here", token.span, hints.get(token.kind), kind="syntax")

    def juxtaposition(self, before: Token, token: Token) -> JacliError:
        left, right = (self.text[t.span.start : t.span.stop] for t in (before, token))
        if token.text in REFUSED_WORDS:
            return JacliError(
                f"{token.text!r} is not part of the language", token.span, _word_hint(token.text), kind="syntax"
            )
        if before.kind == token.kind == "number":
            hint = "numbers are separated by commas or joined by operators"
        elif left == ")" or before.kind == "power" or right == "(":
            hint = "for a product type *"
        else:
            hint = f"for a product type {left}*{right}"
        span = Span(before.span.start, token.span.stop)
        return JacliError(f"there is no operator between {left!r} and {right!r}", span, hint, kind="syntax")

    # ---- nodes

    def add(self, op: str, args: tuple[int, ...], span: Span, value: object = None) -> int:
        self.nodes.append(Node(op, args, value, span))
        return len(self.nodes) - 1

    def span(self, node: int) -> Span:
        return self.nodes[node].span

    def since(self, start: int) -> Span:
        """From ``start`` to the end of the last token read. A name's node is shared, so its span is no guide."""
        return Span(start, self.tokens[self.place - 1].span.stop)

    def is_condition(self, node: int) -> bool:
        return self.nodes[node].op in _CONDITION_OPS

    def number_operand(self, node: int) -> int:
        """``node`` if it is a number or an array; a condition has no place in arithmetic."""
        if self.is_condition(node):
            raise JacliError(
                "a comparison can only be a condition",
                self.span(node),
                "choose with Piecewise((value, condition), (other, True)) or where(condition, a, b)",
                kind="syntax",
            )
        return node

    def condition_operand(self, node: int) -> int:
        if not self.is_condition(node):
            raise JacliError("a condition is needed here, such as x > 0", self.span(node), kind="syntax")
        return node

    def nested(self) -> None:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise JacliError(
                f"the expression is nested too deeply: at most {MOST_NESTED} levels",
                self.token.span,
                "name inner parts: u = …; f(u)",
                kind="limit",
            )

    # ---- statements

    def program(self) -> Program:
        outputs: list[int] = []
        while True:
            while self.accept(";") or self.accept("newline"):
                pass
            if self.token.kind == "end":
                break
            outputs += self.statement()
            if self.token.kind not in (";", "newline", "end"):
                raise self.unexpected()
        if not outputs:
            raise self.no_outputs()
        variables = {name: self.variables[name] for name in sorted(self.variables, key=natural_key)}
        return Program(self.text, tuple(self.nodes), tuple(outputs), self.names, variables)

    def no_outputs(self) -> JacliError:
        if self.names:
            last = list(self.names)[-1]
            return JacliError(
                "the program has no output", self.token.span, f"end it with what to differentiate: …; {last}"
            )
        return JacliError("there is no expression", None, "type one, such as x0**2 + x1", kind="syntax")

    def statement(self) -> list[int]:
        """Outputs separated by commas, or ``name = expression``, which has none."""
        if self.token.kind == "name" and self.tokens[self.place + 1].kind == "=":
            self.assignment()
            return []
        outputs = [self.number_operand(self.expression())]
        while self.accept(","):
            outputs.append(self.number_operand(self.expression()))
        if self.token.kind == "=":
            raise JacliError(
                "only a name can be given a value",
                self.span(outputs[-1]).to(self.token.span),
                "an equation a = b is differentiated as a - (b)",
                kind="syntax",
            )
        return outputs

    def assignment(self) -> None:
        target = self.advance()
        self.advance()
        name = target.text
        if name in self.names:
            raise JacliError(f"{name} already has a value", target.span, "use another name", kind="name")
        if name in self.variables:
            raise JacliError(
                f"{name} is used above before it gets a value here", target.span, "move this statement up", kind="name"
            )
        if name in self.bound:
            raise JacliError(
                f"{name} has a value in the point and another in the program", target.span, "rename one", kind="name"
            )
        self.names[name] = self.number_operand(self.expression())
        if self.token.kind == ",":
            raise JacliError(
                "a statement gives a name one value", self.token.span, f"for an array type {name} = [..., ...]"
            )

    # ---- expressions

    def expression(self, power: int = 0) -> int:
        """Precedence climbing: read everything that binds tighter than ``power``."""
        self.nested()
        start = self.token.span.start
        left = self.prefix()
        while True:
            step = self.infix(left, power, start)
            if step is None:
                break
            left = step
        self.depth -= 1
        return left

    def prefix(self) -> int:
        token = self.token
        if token.kind == "-":
            self.advance()
            inner = self.number_operand(self.expression(_UNARY_POWER))
            return self.add("neg", (inner,), self.since(token.span.start))
        if token.kind == "+":
            self.advance()
            return self.number_operand(self.expression(_UNARY_POWER))
        if token.kind == "name" and token.text == "not" and "not" not in self.bound:
            self.advance()
            inner = self.condition_operand(self.expression(3))
            return self.add("not", (inner,), self.since(token.span.start))
        return self.postfix(self.atom(), token.span.start)

    def infix(self, left: int, power: int, start: int) -> int | None:
        """The next operation if it binds tighter than ``power``, else None."""
        token = self.token
        kind = token.text if token.kind == "name" and token.text in CONDITION_WORDS else token.kind
        if kind in _BINARY:
            return self.binary(left, *_BINARY[kind], power, start)
        if kind == "**" and power <= _POWER:
            return self.raised(left, start)
        if kind == "power" and power <= _POWER:
            self.advance()
            exponent = self.add("number", (), token.span, int(token.text))
            return self.add("pow", (self.number_operand(left), exponent), self.since(start))
        if kind in _COMPARISONS and power < 4:
            return self.comparison(left, start)
        if kind in ("and", "or") and power < (2 if kind == "and" else 1):
            self.advance()
            right = self.condition_operand(self.expression(2 if kind == "and" else 1))
            return self.add(kind, (self.condition_operand(left), right), self.since(start))
        if token.kind in ("name", "(") and self.nodes[left].op == "number" and power <= 6:
            return self.implied_product(left, token, start)
        return None

    def binary(self, left: int, op: str, binding: int, power: int, start: int) -> int | None:
        if power >= binding:
            return None
        self.advance()
        right = self.number_operand(self.expression(binding))
        return self.add(op, (self.number_operand(left), right), self.since(start))

    def raised(self, left: int, start: int) -> int:
        self.advance()
        exponent = self.number_operand(self.expression(_POWER - 1) if self.token.kind != "-" else self.prefix())
        return self.add("pow", (self.number_operand(left), exponent), self.since(start))

    def is_uncertainty(self) -> bool:
        """Whether digits in brackets follow a number at once: ``1.2345(67)``, as metrologists write."""
        number, opened, digits, closed = (self.tokens + self.tokens[-1:] * 2)[self.place - 1 : self.place + 3]
        kinds = (opened.kind, digits.kind, closed.kind) == ("(", "number", ")")
        return kinds and digits.text.isdigit() and number.span.stop == opened.span.start

    def implied_product(self, left: int, token: Token, start: int) -> int | None:
        """``2x`` and ``2(x + 1)``, where nothing else could be meant."""
        number = self.tokens[self.place - 1]
        before = self.tokens[self.place - 2] if self.place > 1 else None
        if number.kind != "number" or token.text in REFUSED_WORDS | CONDITION_WORDS:
            return None
        if token.text.startswith("_") or (number.text == "0" and _NOT_DECIMAL.fullmatch(token.text)):
            raise JacliError("digits are written together, in decimal", number.span.to(token.span), kind="syntax")
        if self.is_uncertainty():
            raise JacliError(
                f"{number.text}({self.tokens[self.place + 1].text}) may be a product or an uncertainty",
                number.span.to(self.tokens[self.place + 2].span),
                f"for a product type *; a value is typed alone: {number.text}",
                kind="syntax",
            )
        if before is not None and before.kind in ("/", "**", "power"):
            both = self.text[number.span.start : token.span.stop]
            raise JacliError(
                f"it is not clear how far the {before.text!r} reaches over {both!r}",
                before.span.to(token.span),
                f"type ({number.text}*{token.text}…) or a * in the right place",
                kind="syntax",
            )
        right = self.expression(6)
        return self.add("mul", (left, right), self.since(start))

    def comparison(self, left: int, start: int) -> int:
        """``a < b``, or a chain ``a < b < c``, which means both."""
        parts: list[int] = []
        while self.token.kind in _COMPARISONS:
            op = _COMPARISONS[self.advance().kind]
            right = self.number_operand(self.expression(4))
            parts.append(self.add(op, (self.number_operand(left), right), self.since(start)))
            left = right
        if len(parts) == 1:
            return parts[0]
        return self.add("and", tuple(parts), self.since(start))

    # ---- atoms

    def atom(self) -> int:
        token = self.token
        if token.kind == "number":
            self.advance()
            return self.add("number", (), token.span, exact(token.text))
        if token.kind == "(":
            return self.group()
        if token.kind == "[":
            return self.bracketed()
        if token.kind == "{":
            return self.family()
        if token.kind != "name":
            raise self.unexpected()
        self.advance()
        if self.token.kind == "(" and token.text not in CONSTANTS:
            return self.call(token)
        return self.name(token)

    def group(self) -> int:
        opened = self.advance()
        if self.token.kind == ")":
            raise JacliError("there is nothing in the brackets", opened.span.to(self.token.span), kind="syntax")
        inner = self.expression()
        if self.token.kind == ",":
            raise JacliError(
                "brackets ( ) group one expression",
                self.token.span,
                "type [a, b] for an array; outputs need no brackets",
                kind="syntax",
            )
        self.expect(")", opened)
        return inner

    def bracketed(self) -> int:
        opened = self.advance()
        items: list[int] = []
        while self.token.kind != "]":
            items.append(self.number_operand(self.expression()))
            if not self.accept(","):
                break
        closed = self.expect("]", opened)
        if not items:
            raise JacliError("an array needs at least one entry", opened.span.to(closed.span), kind="syntax")
        return self.add("array", tuple(items), opened.span.to(closed.span))

    def family(self) -> int:
        """``{body for i in start:stop, j in start:stop}``: an array with an axis a counter.

        The ranges are read first, for the body needs to know its counters.
        """
        opened, body = self.token, self.place + 1
        self.place = self.place_of_ranges(opened)
        ranges = self.ranges()
        closed, after = self.expect("}", opened), self.place
        counters = [
            self.add("counter", (low, high), token.span, (token.text, axis, len(ranges)))
            for axis, (token, low, high) in enumerate(ranges)
        ]
        self.counters = {token.text: node for (token, _, _), node in zip(ranges, counters, strict=True)}
        self.place = body
        value = self.number_operand(self.expression())
        if not self.at_word("for"):
            raise self.unexpected()
        self.place, self.counters = after, {}
        return self.add("family", (value, *counters), opened.span.to(closed.span))

    def at_word(self, word: str) -> bool:
        return self.token.kind == "name" and self.token.text == word

    def place_of_ranges(self, opened: Token) -> int:
        """Where the ``for`` of a family stands."""
        if self.counters:
            raise JacliError("a family cannot stand inside another", opened.span, "use two counters", kind="syntax")
        depth = 0
        for place in range(self.place, len(self.tokens)):
            token = self.tokens[place]
            depth += (token.kind in "([{") - (token.kind in ")]}")
            if depth == 1 and token.kind == "name" and token.text == "for":
                return place
            if depth == 0:
                break
        raise self.unexpected()

    def ranges(self) -> list[tuple[Token, int, int]]:
        """``for i in start:stop``, again after a comma or another ``for``."""
        found: list[tuple[Token, int, int]] = []
        while self.at_word("for") or (found and self.token.kind == ","):
            self.advance()
            counter = self.advance()
            taken = {token.text for token, _, _ in found} | self.names.keys() | self.bound | REFUSED_WORDS
            if counter.kind != "name" or counter.text in taken:
                raise JacliError("a counter is a name with no other meaning", counter.span, "such as i", kind="name")
            if not self.at_word("in"):
                raise JacliError("a range is typed i in start:stop", self.token.span, kind="syntax")
            self.advance()
            low = self.number_operand(self.expression())
            if not self.accept(":"):
                raise JacliError("a range is typed start:stop", self.token.span, "stop is not included", kind="syntax")
            found.append((counter, low, self.number_operand(self.expression())))
        return found

    def name(self, token: Token) -> int:
        name = token.text
        if name in self.counters:
            return self.counters[name]
        if name in self.names:
            return self.names[name]
        if name not in self.bound:
            if name in CONSTANTS:
                return self.add(name, (), token.span)
            if name in ("True", "False", "true", "false"):
                return self.add(name.lower(), (), token.span)
            if name in REFUSED_WORDS:
                raise JacliError(f"{name!r} is not part of the language", token.span, _word_hint(name), kind="syntax")
        if name not in self.variables:
            self.variables[name] = self.add("variable", (), token.span, name)
        return self.variables[name]

    def postfix(self, node: int, start: int) -> int:
        while True:
            if self.token.kind == "[":
                node = self.index(node, start)
            elif self.accept("transpose"):
                node = self.add("transpose", (node,), self.since(start), ())
            else:
                return node

    def index(self, node: int, start: int) -> int:
        opened = self.advance()
        if self.token.kind == "]":
            raise JacliError("an index is missing", self.token.span, "type a[0], a[0,1] or a[1:]", kind="syntax")
        if self.counters:
            return self.gather(node, opened, start)
        items = [self.index_item()]
        while self.accept(","):
            items.append(self.index_item())
        self.expect("]", opened)
        return self.add("index", (node,), self.since(start), tuple(items))

    def gather(self, node: int, opened: Token, start: int) -> int:
        """An entry inside a family: its indices may count."""
        items = [self.number_operand(self.expression())]
        while self.accept(","):
            items.append(self.number_operand(self.expression()))
        if self.token.kind == ":":
            raise JacliError("a slice cannot stand inside { }", self.token.span, "type one entry, such as x[i]")
        self.expect("]", opened)
        return self.add("gather", (node, *items), self.since(start))

    def index_item(self) -> int | slice:
        start = None if self.token.kind == ":" else self.integer()
        if not self.accept(":"):
            if start is None:
                raise self.unexpected()
            return start
        stop = None if self.token.kind in (":", ",", "]") else self.integer()
        step = self.integer() if self.accept(":") and self.token.kind not in (",", "]") else None
        if step is not None and step <= 0:
            raise JacliError("a slice's step must be at least 1, as in torch", self.tokens[self.place - 1].span)
        return slice(start, stop, step)

    def integer(self) -> int:
        """A constant whole number: an index, an axis, a size, a degree."""
        node = self.expression()
        value = self.constant(node)
        if value is None or value.denominator != 1 or abs(value) > 2**62:
            raise JacliError("a constant whole number is needed here", self.span(node), kind="syntax")
        return int(value)

    def constant(self, node: int) -> Fraction | None:
        """The value of simple arithmetic on numbers, or None."""
        op, args, value, _ = self.nodes[node]
        if op == "number":
            return Fraction(value)
        parts = [self.constant(arg) for arg in args] if op in _CONSTANT_ARITHMETIC else [None]
        a, b = parts[0], parts[-1]
        if a is None or b is None or (op == "pow" and not (b.denominator == 1 and 0 <= b <= 64)):
            return None
        return Fraction(_CONSTANT_ARITHMETIC[op](a, b))

    # ---- calls

    def call(self, token: Token) -> int:
        row = lookup(token.text)
        if row is None or not (row.listed or self.internal):
            raise self.unknown_function(token)
        opened = self.advance()
        if row.name == "Piecewise":
            return self.piecewise(token, opened)
        return self.plain_call(row, token, opened)

    def plain_call(self, row: Function, token: Token, opened: Token) -> int:
        args: list[int] = []
        integers: list[int] = []
        count = 0
        while self.token.kind != ")":
            if self.tokens[self.place + 1].kind == "=" and self.token.kind == "name":
                integers.append(self.keyword(row))
            elif (row.integers_first and count == 0) or (row.integers_from is not None and count >= row.integers_from):
                integers += self.integers()
            else:
                args.append(self.expression())
            count += 1
            if not self.accept(","):
                break
        closed = self.expect(")", opened)
        span = token.span.to(closed.span)
        self.check_arity(row, token, count, span)
        return self.build(row, tuple(args), tuple(integers), span)

    def keyword(self, row: Function) -> int:
        name = self.advance()
        if row.keyword is None or name.text not in (row.keyword, "dim"):
            raise JacliError(f"{row.name} has no option {name.text!r}", name.span, f"type {row.signature}", kind="name")
        self.advance()
        return self.integer()

    def integers(self) -> list[int]:
        """One constant integer, or a bracketed list of them: ``reshape(a, 2, 3)`` and ``reshape(a, [2, 3])``."""
        opened = self.accept("[")
        if opened is None:
            return [self.integer()]
        values = [self.integer()]
        while self.accept(","):
            values.append(self.integer())
        self.expect("]", opened)
        return values

    def check_arity(self, row: Function, token: Token, count: int, span: Span) -> None:
        least, most = row.arity
        if count < least or (most is not None and count > most):
            wanted = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
            plural = "" if wanted == "1" else "s"
            raise JacliError(
                f"{token.text} takes {wanted} argument{plural}, not {count}", span, f"type {row.signature}", kind="name"
            )

    def build(self, row: Function, args: tuple[int, ...], integers: tuple[int, ...], span: Span) -> int:
        if row.name == "where":
            condition, a, b = args
            chosen = (self.condition_operand(condition), self.number_operand(a), self.number_operand(b))
            return self.add("select", chosen, span)
        operand = self.condition_operand if row.name in ("and", "or", "not") else self.number_operand
        for arg in args:
            operand(arg)
        if row.integers_first and not (0 if row.listed else -1000) <= integers[0] <= 1000:
            raise JacliError(f"the first argument of {row.name} is a whole number from 0 to 1000", span)
        if row.folds and len(args) > 2:
            node = args[0]
            for arg in args[1:]:
                node = self.add(row.name, (node, arg), span, ())
            return node
        operator = row.kind == "condition" or row.name == "pow"
        return self.add(row.name, args, span, None if operator else integers)

    def piecewise(self, token: Token, opened: Token) -> int:
        parts: list[int] = []
        while self.token.kind != ")":
            pair = self.token
            if pair.kind != "(":
                raise JacliError(
                    "each piece is (value, condition)", pair.span, "type Piecewise((x, x > 0), (-x, True))"
                )
            self.advance()
            value = self.number_operand(self.expression())
            if not self.accept(","):
                raise JacliError(
                    "a piece lacks its condition", self.token.span, "type Piecewise((x, x > 0), (-x, True))"
                )
            condition = self.condition_operand(self.expression())
            self.expect(")", pair)
            parts += [value] if self.nodes[condition].op == "true" else [condition, value]
            if not self.accept(","):
                break
            if len(parts) % 2:
                raise JacliError("no piece can follow the one whose condition is True", self.token.span)
        closed = self.expect(")", opened)
        span = token.span.to(closed.span)
        if not parts:
            raise JacliError("Piecewise needs at least one piece", span, "type Piecewise((x, x > 0), (-x, True))")
        if len(parts) == 1:
            return parts[0]
        return self.add("select", tuple(parts), span)

    def unknown_function(self, token: Token) -> JacliError:
        name, close = token.text, suggest(token.text)
        if name in REFUSED_WORDS:
            return JacliError(f"{name!r} is not part of the language", token.span, _word_hint(name), kind="syntax")
        hints = []
        if close:
            hints.append(f"did you mean {close}?")
        if name in self.variables or name in self.bound or name in self.names or len(name) == 1:
            hints = [f"for a product type {name}*(…)"]
        hints.append("jacli functions lists what there is")
        return JacliError(f"there is no function {name!r}", token.span, "; ".join(hints), kind="name")


def _word_hint(word: str) -> str:
    if word in ("if", "else", "elif"):
        return "choose with Piecewise((value, condition), (other, True)) or where(condition, a, b)"
    return "an expression is numbers, names, operators and functions; nothing in it is executed"


def exact(number: str) -> int | Fraction:
    """The exact value of a decimal: ``0.1`` is one tenth."""
    digits, _, exponent = number.lower().partition("e")
    whole, _, decimals = digits.partition(".")
    value = int(whole + decimals or "0")
    shift = int(exponent or 0) - len(decimals)
    return value * 10**shift if shift >= 0 else Fraction(value, 10**-shift)
