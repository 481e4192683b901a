"""Functions of numbers, applied entry by entry to arrays.

Derivative formulas of the primitives: NIST Digital Library of Mathematical Functions (DLMF), chapters 4 to 7 and
10.29 (Bessel), 5.2 and 5.15 (gamma and polygamma). Every one of them is tested against the other readings.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from jacli.functions.row import Function


def _unary(name: str, meaning: str, derivative: str, at: str = "0.3", **more: Any) -> Function:
    """A primitive of one argument that torch spells by the same name."""
    more.setdefault("torch", lambda t, x: getattr(t, name)(x))
    return Function(
        name,
        f"{name}(x)",
        meaning,
        (1, 1),
        derivatives=(derivative,),
        example=(f"{name}(x)", f"x={at}"),
        **more,
    )


def _defined(name: str, signature: str, meaning: str, definition: str, torch: Any, at: str, **more: Any) -> Function:
    """A function that the exact readings take from its definition."""
    arity = signature.count(",") + 1
    return Function(
        name,
        signature,
        meaning,
        (arity, arity),
        torch,
        definitions={arity: definition},
        example=(signature, at),
        **more,
    )


def _gamma(t: Any, x: Any) -> Any:
    """Γ from lgamma; left of zero the sign alternates between the poles (DLMF 5.5.3)."""
    odd = t.remainder(t.floor(x), 2) != 0
    return t.where((x < 0) & odd, -1.0, 1.0).to(x.dtype) * t.exp(t.lgamma(x))


def _polynomial(name: str, meaning: str, first: Any, step: Any, **more: Any) -> Function:
    """A classical orthogonal polynomial of constant degree, by its three-term recurrence (DLMF 18.9).

    ``first(x)`` is the polynomial of degree 1; ``step(k, x, p, q)`` is that of degree k+1 from degrees k and k-1.
    """

    def value(x: Any, degree: int) -> Any:
        before, now = x * 0 + 1, first(x)
        for k in range(1, degree):
            before, now = now, step(k, x, now, before)
        return now if degree else before

    return Function(
        name,
        f"{name}(n, x)",
        meaning,
        (2, 2),
        torch=lambda t, x, n: value(x, n),
        integers_first=True,
        entries=lambda x, n: _monomials(value, x, n),
        example=(f"{name}(4, x)", "x=0.3"),
        **more,
    )


def _monomials(value: Any, x: Any, degree: int) -> Any:
    """The polynomial written out in powers of x: what a formula should show, and exact in the exact readings."""
    from flint import fmpq_poly

    coefficients = value(fmpq_poly([0, 1]), degree).coeffs()
    terms = [Fraction(int(c.p), int(c.q)) * x**k for k, c in enumerate(coefficients) if c != 0]
    return sum(terms[1:], terms[0])


EXPONENTIAL = (
    _unary("exp", "exponential", "exp(x)"),
    _defined("expm1", "expm1(x)", "exp(x) - 1, accurate near 0", "exp(x) - 1", lambda t, x: t.expm1(x), "x=0.3"),
    Function(
        "log",
        "log(x, b)",
        "natural logarithm, or to base b",
        (1, 2),
        lambda t, x, b=None: t.log(x) if b is None else t.log(x) / t.log(b),
        aliases=("ln",),
        definitions={2: "log(x)/log(b)"},
        derivatives=("1/x",),
        domain="x > 0",
        example=("log(x)", "x=2"),
    ),
    _defined(
        "log1p",
        "log1p(x)",
        "log(1 + x), accurate near 0",
        "log(1 + x)",
        lambda t, x: t.log1p(x),
        "x=0.3",
        domain="x > -1",
    ),
    _defined("log2", "log2(x)", "logarithm to base 2", "log(x)/log(2)", lambda t, x: t.log2(x), "x=3", domain="x > 0"),
    _defined(
        "log10", "log10(x)", "logarithm to base 10", "log(x)/log(10)", lambda t, x: t.log10(x), "x=3", domain="x > 0"
    ),
    _unary("sqrt", "square root", "1/(2*sqrt(x))", at="2", domain="x >= 0", kinks="infinite slope at x = 0"),
    _defined(
        "cbrt",
        "cbrt(x)",
        "real cube root, of negative numbers too",
        "sign(x)*abs(x)**(1/3)",
        lambda t, x: t.sign(x) * t.abs(x) ** (1 / 3),
        "x=-8",
        kinks="infinite slope at x = 0",
    ),
    Function(
        "pow",
        "pow(x, y)",
        "power, as x**y and x^y",
        (2, 2),
        lambda t, x, y: t.pow(x, y),
        aliases=("power", "Pow"),
        derivatives=("y*x**(y - 1)", "log(x)*x**y"),
        domain="x > 0, or y an integer; x = 0 with y > 0",
        example=("pow(x, y)", "x=2, y=1.5"),
    ),
)

TRIGONOMETRIC = (
    _unary("sin", "sine, of radians", "cos(x)"),
    _unary("cos", "cosine", "-sin(x)"),
    _unary("tan", "tangent", "1 + tan(x)**2", domain="x not an odd multiple of pi/2"),
    _defined("sec", "sec(x)", "secant", "1/cos(x)", lambda t, x: 1 / t.cos(x), "x=0.3"),
    _defined("csc", "csc(x)", "cosecant", "1/sin(x)", lambda t, x: 1 / t.sin(x), "x=0.3"),
    _defined("cot", "cot(x)", "cotangent", "cos(x)/sin(x)", lambda t, x: t.cos(x) / t.sin(x), "x=0.3"),
    _unary(
        "asin",
        "inverse sine",
        "1/sqrt(1 - x**2)",
        domain="-1 <= x <= 1",
        aliases=("arcsin",),
        kinks="infinite slope at ±1",
    ),
    _unary(
        "acos",
        "inverse cosine",
        "-1/sqrt(1 - x**2)",
        domain="-1 <= x <= 1",
        aliases=("arccos",),
        kinks="infinite slope at ±1",
    ),
    _unary("atan", "inverse tangent", "1/(1 + x**2)", aliases=("arctan",)),
    Function(
        "atan2",
        "atan2(y, x)",
        "angle of the point (x, y), in (-pi, pi]",
        (2, 2),
        lambda t, y, x: t.atan2(y, x),
        aliases=("arctan2",),
        derivatives=("x/(x**2 + y**2)", "-y/(x**2 + y**2)"),
        domain="not (0, 0)",
        kinks="jump by 2*pi across y = 0, x < 0",
        example=("atan2(y, x)", "y=3, x=4"),
    ),
)

HYPERBOLIC = (
    _unary("sinh", "hyperbolic sine", "cosh(x)"),
    _unary("cosh", "hyperbolic cosine", "sinh(x)"),
    _unary("tanh", "hyperbolic tangent", "1 - tanh(x)**2"),
    _unary("asinh", "inverse hyperbolic sine", "1/sqrt(x**2 + 1)", aliases=("arcsinh",)),
    _unary(
        "acosh",
        "inverse hyperbolic cosine",
        "1/sqrt(x**2 - 1)",
        at="2",
        domain="x >= 1",
        aliases=("arccosh",),
    ),
    _unary("atanh", "inverse hyperbolic tangent", "1/(1 - x**2)", domain="-1 < x < 1", aliases=("arctanh",)),
)

PIECEWISE_SMOOTH = (
    _unary("abs", "absolute value", "sign(x)", at="-0.3", kinks="kink at x = 0", aliases=("Abs", "fabs")),
    _unary("sign", "-1, 0 or 1", "0", kinks="jump at x = 0", aliases=("sgn",)),
    _unary("floor", "greatest integer not above x", "0", kinks="jump at every integer"),
    _unary("ceil", "least integer not below x", "0", kinks="jump at every integer", aliases=("ceiling",)),
    _defined(
        "Mod",
        "Mod(x, y)",
        "remainder with the sign of y",
        "x - y*floor(x/y)",
        lambda t, x, y: t.remainder(x, y),
        "x=7.3, y=2",
        aliases=("mod", "remainder"),
        kinks="jump where x/y is an integer",
    ),
    Function(
        "min",
        "min(x, y, …)",
        "smallest of its arguments, entry by entry; of one array, its smallest entry",
        (1, None),
        lambda t, *xs: t.amin(xs[0]) if len(xs) == 1 else _fold(t.minimum, xs),
        aliases=("Min", "minimum"),
        folds=True,
        kinks="kink where two are equal",
        example=("min(x, y)", "x=2, y=3"),
    ),
    Function(
        "max",
        "max(x, y, …)",
        "largest of its arguments, entry by entry; of one array, its largest entry",
        (1, None),
        lambda t, *xs: t.amax(xs[0]) if len(xs) == 1 else _fold(t.maximum, xs),
        aliases=("Max", "maximum"),
        folds=True,
        kinks="kink where two are equal",
        example=("max(x, y)", "x=2, y=3"),
    ),
    _defined(
        "clip",
        "clip(x, lo, hi)",
        "x held between lo and hi",
        "min(max(x, lo), hi)",
        lambda t, x, lo, hi: t.minimum(t.maximum(x, lo), hi),
        "x=2.5, lo=0, hi=3",
        aliases=("clamp",),
        kinks="kinks at lo and hi",
    ),
    _defined(
        "Heaviside",
        "Heaviside(x)",
        "unit step, 1/2 at 0",
        "(1 + sign(x))/2",
        lambda t, x: (1 + t.sign(x)) / 2,
        "x=0.3",
        aliases=("heaviside", "step"),
        kinks="jump at x = 0",
    ),
)

SPECIAL = (
    _unary("erf", "error function", "2*exp(-x**2)/sqrt(pi)"),
    _unary("erfc", "1 - erf(x)", "-2*exp(-x**2)/sqrt(pi)"),
    _unary(
        "gamma",
        "gamma function",
        "gamma(x)*digamma(x)",
        at="2.5",
        torch=_gamma,
        domain="x not in 0, -1, -2, …",
        aliases=("Gamma",),
    ),
    _unary(
        "lgamma",
        "log |gamma(x)|",
        "digamma(x)",
        at="2.5",
        domain="x not in 0, -1, -2, …",
        aliases=("loggamma", "gammaln"),
    ),
    _unary(
        "digamma", "derivative of lgamma", "polygamma(1, x)", at="2.5", domain="x not in 0, -1, -2, …", aliases=("psi",)
    ),
    Function(
        "polygamma",
        "polygamma(n, x)",
        "n-th derivative of digamma",
        (2, 2),
        lambda t, x, n: t.polygamma(n, x),
        derivatives=("polygamma({n} + 1, x)",),
        integers_first=True,
        domain="x not in 0, -1, -2, …",
        example=("polygamma(1, x)", "x=2.5"),
    ),
    _defined(
        "besseli0",
        "besseli0(x)",
        "modified Bessel function of order 0",
        "besseli(0, x)",
        lambda t, x: t.special.i0(x),
        "x=0.3",
        aliases=("i0",),
    ),
    _defined(
        "besseli1",
        "besseli1(x)",
        "modified Bessel function of order 1",
        "besseli(1, x)",
        lambda t, x: t.special.i1(x),
        "x=0.3",
        aliases=("i1",),
    ),
    Function(
        "besseli",
        "besseli(n, x)",
        "modified Bessel function of integer order n",
        (2, 2),
        lambda t, x, n: (t.special.i0, t.special.i1)[n](x),
        derivatives=("(besseli({n} - 1, x) + besseli({n} + 1, x))/2",),
        integers_first=True,
        example=("besseli(0, x)", "x=0.3"),
        listed=False,
    ),
    _defined(
        "sinc",
        "sinc(x)",
        "sin(x)/x, and 1 at 0 (not the normalised sin(pi*x)/(pi*x))",
        "Piecewise((sin(x)/x, Ne(x, 0)), (1, True))",
        lambda t, x: t.sinc(x / math.pi),
        "x=0.3",
    ),
)

NEURAL = (
    _defined(
        "sigmoid",
        "sigmoid(x)",
        "logistic function",
        "1/(1 + exp(-x))",
        lambda t, x: t.sigmoid(x),
        "x=0.3",
        aliases=("expit",),
    ),
    _defined(
        "logit",
        "logit(p)",
        "inverse of sigmoid",
        "log(p/(1 - p))",
        lambda t, p: t.logit(p),
        "p=0.3",
        domain="0 < p < 1",
    ),
    _defined(
        "softplus",
        "softplus(x)",
        "smooth relu",
        "log(1 + exp(x))",
        lambda t, x: t.nn.functional.softplus(x, threshold=40.0),
        "x=0.3",
    ),
    _defined(
        "relu",
        "relu(x)",
        "positive part",
        "max(x, 0)",
        lambda t, x: t.relu(x),
        "x=0.3",
        aliases=("ReLU",),
        kinks="kink at x = 0",
    ),
    _defined(
        "gelu",
        "gelu(x)",
        "Gaussian error linear unit, exact form",
        "x*(1 + erf(x/sqrt(2)))/2",
        lambda t, x: t.nn.functional.gelu(x),
        "x=0.3",
        aliases=("GELU",),
    ),
    _defined(
        "silu",
        "silu(x)",
        "sigmoid-weighted linear unit",
        "x/(1 + exp(-x))",
        lambda t, x: t.nn.functional.silu(x),
        "x=0.3",
        aliases=("swish", "SiLU"),
    ),
    _defined(
        "hypot",
        "hypot(x, y)",
        "length of (x, y)",
        "sqrt(x**2 + y**2)",
        lambda t, x, y: t.hypot(x, y),
        "x=3, y=4",
        kinks="cone point at (0, 0)",
    ),
)

POLYNOMIALS = (
    _polynomial("chebyshevt", "Chebyshev polynomial of the first kind", lambda x: x, lambda k, x, p, q: 2 * x * p - q),
    _polynomial(
        "chebyshevu", "Chebyshev polynomial of the second kind", lambda x: 2 * x, lambda k, x, p, q: 2 * x * p - q
    ),
    _polynomial(
        "legendre", "Legendre polynomial", lambda x: x, lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1)
    ),
    _polynomial(
        "hermite", "Hermite polynomial (physicists')", lambda x: 2 * x, lambda k, x, p, q: 2 * x * p - 2 * k * q
    ),
    _polynomial(
        "laguerre", "Laguerre polynomial", lambda x: 1 - x, lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1)
    ),
)


def _fold(step: Any, values: tuple[Any, ...]) -> Any:
    result = values[0]
    for value in values[1:]:
        result = step(result, value)
    return result


ELEMENTWISE = (*EXPONENTIAL, *TRIGONOMETRIC, *HYPERBOLIC, *PIECEWISE_SMOOTH, *SPECIAL, *NEURAL, *POLYNOMIALS)
