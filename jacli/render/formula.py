"""From a formula as SymPy prints it to LaTeX, by Python's grammar alone: the text is parsed, never executed."""

from __future__ import annotations

import ast
import keyword
import re

LONGEST = 10_000  # characters; typeset, a longer formula helps nobody

GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi "
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega".split()
)
NAMED = frozenset("sin cos tan sec csc cot sinh cosh tanh log max min det arcsin arccos arctan".split())
SPELLED = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "Max": "max", "Min": "min", "gamma": "Gamma"}

SUM, PRODUCT, POWER, ATOM = range(4)

RELATIONS: dict[type, str] = {
    ast.Lt: "<",
    ast.LtE: r"\le",
    ast.Gt: ">",
    ast.GtE: r"\ge",
    ast.Eq: "=",
    ast.NotEq: r"\ne",
}

#: Python's keywords are names like any other here; ``name`` drops the underscore again.
_KEYWORDS = re.compile(rf"\b({'|'.join(word for word in keyword.kwlist if word.islower())})\b")

Typeset = tuple[str, int]  # the LaTeX and how tightly it binds


def latex(formula: str) -> str:
    """``formula`` typeset; verbatim where it is too long or is not in Python's grammar."""
    if len(formula) <= LONGEST:
        try:
            return _set(ast.parse(_KEYWORDS.sub(r"\1_", formula), mode="eval").body)[0]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
    return verbatim(formula)


def verbatim(text: str) -> str:
    """``text`` letter by letter in typewriter type."""
    special = {"\\": r"\backslash{}", "^": r"\hat{}", "~": r"\sim{}", " ": r"\ "}
    return r"\mathtt{" + "".join(special.get(c, "\\" + c if c in "#$%&_{}" else c) for c in text) + "}"


def name(text: str) -> str:
    """A name: ``x0`` has an index, ``theta`` is Greek, longer words are upright; ``a[0,1]`` has two indices."""
    match = re.fullmatch(r"([^\W\d_]+)_?(\d*)(?:\[([\d,]+)\])?", text)
    if not match:
        return verbatim(text)
    letters, digits, entries = match.groups()
    index = ",".join(filter(None, (digits, entries)))
    return _letters(letters) + (f"_{{{index}}}" if index else "")


def number(text: str) -> str:
    """A number as Python prints it."""
    if text in ("nan", "inf", "-inf"):
        return {"nan": r"\mathrm{nan}", "inf": r"\infty", "-inf": r"-\infty"}[text]
    mantissa, e, exponent = text.lower().partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if e else text


def _letters(word: str) -> str:
    if word in GREEK:
        return "\\" + word
    return word if len(word) == 1 else rf"\mathrm{{{word}}}"


def _set(node: ast.expr) -> Typeset:
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return number(str(value)), ATOM
        case ast.Name(id=text):
            return (r"\infty" if text == "oo" else name(text)), ATOM
        case ast.Subscript():
            return name(ast.unparse(node).replace(" ", "").replace("(", "").replace(")", "")), ATOM
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return "-" + _within(operand, PRODUCT), SUM
        case ast.BinOp():
            return _binary(node)
        case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]):
            return _call(function, arguments)
        case ast.Compare(left=left, ops=[relation], comparators=[right]):
            return f"{_within(left, SUM)} {RELATIONS[type(relation)]} {_within(right, SUM)}", SUM
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return _brackets(", ".join(_set(item)[0] for item in items)), ATOM
    raise ValueError(node)


def _within(node: ast.expr, binding: int) -> str:
    """``node`` typeset, in brackets if it binds less tightly than its surroundings."""
    text, own = _set(node)
    return text if own >= binding else _brackets(text)


def _brackets(text: str) -> str:
    return rf"\left({text}\right)"


def _binary(node: ast.BinOp) -> Typeset:
    match node.op:
        case ast.Add():
            return f"{_within(node.left, SUM)} + {_within(node.right, SUM)}", SUM
        case ast.Sub():
            return f"{_within(node.left, SUM)} - {_within(node.right, PRODUCT)}", SUM
        case ast.Mult():
            return _product(node)
        case ast.Div():
            return _fraction(node)
        case ast.Pow():
            return _power(node), POWER
        case ast.BitAnd():
            return rf"{_within(node.left, SUM)} \wedge {_within(node.right, SUM)}", SUM
        case ast.BitOr():
            return rf"{_within(node.left, SUM)} \vee {_within(node.right, SUM)}", SUM
    raise ValueError(node)


def _product(node: ast.BinOp) -> Typeset:
    left, sign = _unsigned(node.left)
    right = _within(node.right, PRODUCT)
    dot = r" \cdot " if right[0].isdigit() or (right[0] == "-") else " "
    return sign + _within(left, PRODUCT) + dot + right, SUM if sign else PRODUCT


def _fraction(node: ast.BinOp) -> Typeset:
    above, sign = _unsigned(node.left)
    return rf"{sign}\frac{{{_set(above)[0]}}}{{{_set(node.right)[0]}}}", SUM if sign else PRODUCT


def _unsigned(node: ast.expr) -> tuple[ast.expr, str]:
    """A leading minus, wherever Python's grammar has put it, and what it stands before."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return operand, "-"
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
            bare, sign = _unsigned(left)
            return ast.BinOp(bare, op, right), sign
    return node, ""


def _power(node: ast.BinOp) -> str:
    exponent = _set(node.right)[0]
    match node.left:
        case ast.Call(func=ast.Name(id=function), args=[argument]) if SPELLED.get(function, function) in NAMED:
            return rf"\{SPELLED.get(function, function)}^{{{exponent}}}{_brackets(_set(argument)[0])}"
    return f"{_within(node.left, ATOM)}^{{{exponent}}}"


def _call(function: str, arguments: list[ast.expr]) -> Typeset:
    if function == "Piecewise":
        return _cases(arguments), ATOM
    inside = ", ".join(_set(argument)[0] for argument in arguments)
    spelled = SPELLED.get(function, function)
    match function:
        case "sqrt":
            return rf"\sqrt{{{inside}}}", ATOM
        case "exp":
            return f"e^{{{inside}}}", POWER
        case "Abs":
            return rf"\left|{inside}\right|", ATOM
        case "floor" | "ceiling":
            side = "floor" if function == "floor" else "ceil"
            return rf"\left\l{side} {inside} \right\r{side}", ATOM
    head = "\\" + spelled if spelled in NAMED or spelled in GREEK else rf"\operatorname{{{_escaped(function)}}}"
    return head + _brackets(inside), ATOM


def _escaped(text: str) -> str:
    return text.replace("_", r"\_")


def _cases(arguments: list[ast.expr]) -> str:
    lines = []
    for argument in arguments:
        match argument:
            case ast.Tuple(elts=[value, ast.Constant(value=True)]):
                lines.append(rf"{_set(value)[0]} & \text{{otherwise}}")
            case ast.Tuple(elts=[value, condition]):
                lines.append(rf"{_set(value)[0]} & \text{{if }} {_set(condition)[0]}")
            case _:
                raise ValueError(argument)
    return r"\begin{cases} " + r" \\ ".join(lines) + r" \end{cases}"
