"""Functions of whole arrays: reductions, products, linear algebra, building and reshaping.

``entries`` receives numpy object arrays whose items are scalars of a program (see ``readings.lowering``); it is
ordinary numpy code. ``shape`` says the same about shapes alone, so that a wrong shape is found before any number
is computed; its ValueErrors are sentences for the user.
"""

from __future__ import annotations

import math
from typing import Any

from jacli.functions.row import Function, Shape


def words(shape: Shape) -> str:
    """A shape as people say it: ``2x3``, ``3 entries``, ``a single number``."""
    if not shape:
        return "a single number"
    return "x".join(map(str, shape)) if len(shape) > 1 else f"a vector of {shape[0]}"


def broadcast(*shapes: Shape) -> Shape:
    """The common shape of arrays combined entry by entry (numpy's rule). Raises ValueError naming the shapes."""
    rank = max(map(len, shapes))
    result = []
    for axis in range(-rank, 0):
        sizes = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        if len(sizes) > 1:
            raise ValueError("the shapes " + " and ".join(map(words, shapes)) + " do not combine entry by entry")
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def matmul_shape(a: Shape, b: Shape) -> Shape:
    """The shape of ``a @ b`` (numpy's rule: vectors and stacks of matrices too)."""
    if not a or not b:
        raise ValueError(f"@ multiplies vectors and matrices, not {words(a)} and {words(b)}; use * for numbers")
    inner = b[-2] if len(b) > 1 else b[0]
    if a[-1] != inner:
        raise ValueError(
            f"{words(a)} @ {words(b)} does not fit: the left side has {a[-1]} columns, the right side {inner} rows"
        )
    stack = broadcast(a[:-2], b[:-2]) if len(a) > 2 or len(b) > 2 else ()
    return stack + (a[-2:-1] if len(a) > 1 else ()) + (b[-1:] if len(b) > 1 else ())


def _axis(shape: Shape, axis: int) -> int:
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"there is no axis {axis} in {words(shape)}")
    return axis % len(shape)


def some(shape: Shape) -> Shape:
    """``shape``, unless it has no entries: raises ValueError then."""
    if math.prod(shape) == 0:
        raise ValueError("an array without entries has no mean, no length and no largest entry")
    return shape


def _without(shape: Shape, axis: int | None) -> Shape:
    """A reduction's shape: one axis dropped, or all of them."""
    if axis is None:
        return ()
    place = _axis(shape, axis)
    return shape[:place] + shape[place + 1 :]


def _same(shape: Shape, axis: int = 0) -> Shape:
    if axis:
        _axis(shape, axis)
    return shape


def _square(shape: Shape) -> Shape:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"a square matrix is needed, this is {words(shape)}")
    return shape


def _vectors(a: Shape, b: Shape) -> Shape:
    if len(a) != 1 or a != b:
        raise ValueError(f"two vectors of equal length are needed, not {words(a)} and {words(b)}")
    return a


def _transposed(shape: Shape) -> Shape:
    return shape[::-1]


def _solve_shape(a: Shape, b: Shape) -> Shape:
    _square(a)
    if not 1 <= len(b) <= 2 or b[0] != a[0]:
        raise ValueError(f"{words(a)} and {words(b)} do not fit: solve(a, b) needs as many rows in b as in a")
    return b


def _concatenated(*shapes: Shape) -> Shape:
    rest = {shape[1:] for shape in shapes}
    if any(not shape for shape in shapes) or len(rest) > 1:
        raise ValueError("concat joins arrays along axis 0: " + " and ".join(map(words, shapes)) + " do not fit")
    return (sum(shape[0] for shape in shapes), *shapes[0][1:])


def _stacked(*shapes: Shape) -> Shape:
    if len(set(shapes)) > 1:
        raise ValueError("stack needs equal shapes, not " + " and ".join(map(words, shapes)))
    return (len(shapes), *shapes[0])


def _reshaped(shape: Shape, *wanted: int) -> Shape:
    size = math.prod(shape)
    known = math.prod(n for n in wanted if n != -1)
    if wanted.count(-1) == 1 and known and size % known == 0:
        wanted = tuple(size // known if n == -1 else n for n in wanted)
    if math.prod(wanted) != size or any(n < 0 for n in wanted):
        raise ValueError(f"{words(shape)} has {size} entries and cannot become {'x'.join(map(str, wanted))}")
    return wanted


def _filled(*shape: int) -> Shape:
    if any(n < 0 for n in shape):
        raise ValueError("a size cannot be negative")
    return shape


def _sliding_product(a: Any, b: Any) -> Any:
    import numpy as np

    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]],
        dtype=object,
    )


def _three(a: Shape, b: Shape) -> Shape:
    if a != (3,) or b != (3,):
        raise ValueError(f"the cross product is of two vectors of 3, not {words(a)} and {words(b)}")
    return a


def _faddeev_leverrier(a: Any) -> tuple[Any, Any]:
    """Determinant and adjugate of a matrix of scalars, dividing by whole numbers only.

    The Faddeev-LeVerrier recurrence (Householder, The Theory of Matrices in Numerical Analysis, 6.7): no pivot is
    ever divided by, so the result is defined wherever the determinant is.
    """
    import numpy as np

    n = len(a)
    unit = np.array([[1 if i == j else 0 for j in range(n)] for i in range(n)], dtype=object)
    m, c = unit, 1
    for k in range(1, n + 1):
        product = a @ m
        c = -np.trace(product) / k
        if k < n:
            m = product + c * unit
    sign = 1 if n % 2 == 0 else -1
    return c * sign, m * -sign


def _det(a: Any) -> Any:
    """Laplace along the first row while that is short, which reads well; the recurrence beyond."""
    if len(a) == 1:
        return a[0, 0]
    if len(a) > 4:
        return _faddeev_leverrier(a)[0]
    minors = [_det(_minor(a, 0, j)) for j in range(len(a))]
    result = a[0, 0] * minors[0]
    for j in range(1, len(a)):
        term = a[0, j] * minors[j]
        result = result - term if j % 2 else result + term
    return result


def _minor(a: Any, i: int, j: int) -> Any:
    import numpy as np

    return np.delete(np.delete(a, i, axis=0), j, axis=1)


def _adjugate(a: Any) -> Any:
    import numpy as np

    n = len(a)
    if n > 4:
        return _faddeev_leverrier(a)[1]
    if n == 1:
        return np.array([[1]], dtype=object)
    cofactors = [[_det(_minor(a, j, i)) * (-1) ** (i + j) for j in range(n)] for i in range(n)]
    return np.array(cofactors, dtype=object)


def _var(a: Any) -> Any:
    mean = a.sum() / a.size
    return ((a - mean) ** 2).sum() / (a.size - 1)


def _more_than_one(shape: Shape) -> Shape:
    if math.prod(shape) < 2:
        raise ValueError("at least two entries are needed (the sum is divided by their number less one)")
    return ()


def _softmax(a: Any, axis: int | None = None) -> Any:
    import numpy as np

    powers = apply("exp", a)
    return powers / np.sum(powers, axis=axis, keepdims=axis is not None)


def apply(name: str, a: Any) -> Any:
    """An elementwise function on a numpy object array (or one scalar)."""
    import numpy as np

    return np.vectorize(lambda scalar: scalar.call(name), otypes=[object])(a)


def _at(axis: int | None) -> dict[str, int]:
    return {} if axis is None else {"dim": axis}


def _reduction(name: str, signature: str, meaning: str, torch: Any, entries: Any, **more: Any) -> Function:
    return Function(
        name,
        signature,
        meaning,
        (1, 2),
        torch,
        kind="array",
        integers_from=1,
        keyword="axis",
        shape=lambda a, axis=None: _without(a if name in ("sum", "prod") else some(a), axis),
        entries=entries,
        **more,
    )


def _array(name: str, signature: str, meaning: str, torch: Any, shape: Any, entries: Any, **more: Any) -> Function:
    """An array function with as many arguments as its signature names."""
    arity = signature.count(",") + 1
    more.setdefault("arity", (arity, arity))
    return Function(name, signature, meaning, torch=torch, kind="array", shape=shape, entries=entries, **more)


def _numpy(name: str, *arguments: Any, **options: Any) -> Any:
    import numpy as np

    return getattr(np, name)(*arguments, **options)


def _logsumexp(a: Any, axis: int | None = None) -> Any:
    return apply("log", _numpy("sum", apply("exp", a), axis=axis))


def _any_axis(a: Any, axis: int | None) -> Any:
    return tuple(range(a.ndim)) if axis is None else axis


REDUCTIONS = (
    _reduction(
        "sum", "sum(a, axis)", "sum of all entries, or along one axis",
        lambda t, a, axis=None: t.sum(a, **_at(axis)),
        lambda a, axis=None: _numpy("sum", a, axis=axis),
        example=("sum([x, y])", "x=1, y=2"),
    ),
    _reduction(
        "mean", "mean(a, axis)", "arithmetic mean",
        lambda t, a, axis=None: t.mean(a, **_at(axis)),
        lambda a, axis=None: _numpy("sum", a, axis=axis) / (a.size if axis is None else a.shape[axis]),
        example=("mean([x, y])", "x=1, y=2"),
    ),
    _reduction(
        "prod", "prod(a, axis)", "product",
        lambda t, a, axis=None: t.prod(a, **_at(axis)),
        lambda a, axis=None: _numpy("prod", a, axis=axis),
        example=("prod([x, y])", "x=3, y=2"),
    ),
    _reduction(
        "norm", "norm(a, axis)", "Euclidean length",
        lambda t, a, axis=None: t.linalg.vector_norm(a, **_at(axis)),
        lambda a, axis=None: apply("sqrt", _numpy("sum", a**2, axis=axis)),
        kinks="cone point where all entries are 0",
        example=("norm([x, y])", "x=3, y=4"),
    ),
    _reduction(
        "logsumexp", "logsumexp(a, axis)", "log(sum(exp(a)))",
        lambda t, a, axis=None: t.logsumexp(a, dim=_any_axis(a, axis)),
        _logsumexp,
        example=("logsumexp([x, y])", "x=1, y=2"),
    ),
    _array(
        "var", "var(a)", "variance, divided by n - 1 as torch does",
        lambda t, a: t.var(a), _more_than_one, _var,
        example=("var([x, y, 3])", "x=1, y=2"),
    ),
    _array(
        "std", "std(a)", "standard deviation, the square root of var",
        lambda t, a: t.std(a), _more_than_one, lambda a: apply("sqrt", _var(a)),
        kinks="where all entries are equal",
        example=("std([x, y, 3])", "x=1, y=2"),
    ),
)  # fmt: skip

ALONG_AN_AXIS = (
    Function(
        "softmax", "softmax(a, axis)", "exp(a)/sum(exp(a)), of the whole array or along one axis", (1, 2),
        lambda t, a, axis=None: t.softmax(a.reshape(-1), 0).reshape(a.shape) if axis is None else t.softmax(a, axis),
        kind="array", integers_from=1, keyword="axis",
        shape=lambda a, axis=0: _same(a, axis), entries=_softmax,
        example=("softmax([x, y])", "x=1, y=2"),
    ),
    Function(
        "cumsum", "cumsum(a, axis)", "running sum along an axis (0 unless given)", (1, 2),
        lambda t, a, axis=0: t.cumsum(a, axis),
        kind="array", integers_from=1, keyword="axis",
        shape=lambda a, axis=0: _same(a, axis) if a else _numberless("cumsum"),
        entries=lambda a, axis=0: _numpy("cumsum", a, axis=axis),
        example=("cumsum([x, y])", "x=1, y=2"),
    ),
)  # fmt: skip


def _numberless(name: str) -> Shape:
    raise ValueError(f"{name} needs an array, not a single number")


PRODUCTS = (
    _array(
        "dot", "dot(a, b)", "sum of products of two vectors",
        lambda t, a, b: t.dot(a, b), lambda a, b: _vectors(a, b)[:0], lambda a, b: (a * b).sum(),
        example=("dot([x, 2], [y, x])", "x=1, y=2"),
    ),
    _array(
        "cross", "cross(a, b)", "cross product of two vectors of 3",
        lambda t, a, b: t.linalg.cross(a, b), _three, _sliding_product,
        example=("cross([x, y, 1], [y, 2, x])", "x=1, y=2"),
    ),
    _array(
        "outer", "outer(a, b)", "all products a[i]*b[j] of two vectors",
        lambda t, a, b: t.outer(a.reshape(-1), b.reshape(-1)), lambda a, b: (math.prod(a), math.prod(b)),
        lambda a, b: _numpy("outer", a, b),
        example=("outer([x, y], [y, 2])", "x=1, y=2"),
    ),
    _array(
        "trace", "trace(a)", "sum of the diagonal",
        lambda t, a: t.trace(a), lambda a: _square(a)[:0], lambda a: _numpy("trace", a),
        example=("trace([[x, y], [y, x]])", "x=1, y=2"),
    ),
    _array(
        "det", "det(a)", "determinant",
        lambda t, a: t.linalg.det(a), lambda a: _square(a)[:0], _det,
        example=("det([[x, y], [y, 3]])", "x=1, y=2"),
    ),
    _array(
        "inv", "inv(a)", "matrix inverse",
        lambda t, a: t.linalg.inv_ex(a).inverse, _square, lambda a: _adjugate(a) / _det(a),
        domain="det(a) != 0", example=("inv([[x, y], [y, 3]])", "x=1, y=2"),
    ),
    _array(
        "solve", "solve(a, b)", "the x with a @ x = b",
        lambda t, a, b: t.linalg.solve_ex(a, b).result, _solve_shape, lambda a, b: (_adjugate(a) @ b) / _det(a),
        domain="det(a) != 0", example=("solve([[x, y], [y, 3]], [1, x])", "x=1, y=2"),
    ),
)  # fmt: skip

BUILDING = (
    Function(
        "len", "len(a, axis)", "how many entries an array has along an axis (0 unless given)", (1, 2),
        lambda t, a, axis=0: t.tensor(float(a.shape[axis]), dtype=t.float64),
        kind="array", integers_from=1, keyword="axis",
        shape=lambda a, axis=0: a[_axis(a, axis) :][:0] if a else _numberless("len"),
        entries=lambda a, axis=0: _numpy("full", (), a.shape[axis], dtype=object),
        example=("x*len([x, y])", "x=1, y=2"),
    ),
    _array(
        "transpose", "transpose(a)", "axes reversed, as a.T",
        lambda t, a: a.permute(tuple(range(a.ndim - 1, -1, -1))), _transposed, lambda a: a.T,
        example=("transpose([[x, y]])", "x=1, y=2"),
    ),
    Function(
        "stack", "stack(a, b, …)", "equal arrays along a new first axis, as [a, b, …]", (1, None),
        lambda t, *arrays: t.stack(arrays), kind="array",
        shape=_stacked, entries=lambda *arrays: _numpy("stack", arrays),
        example=("stack([x, y], [y, 1])", "x=1, y=2"),
    ),
    Function(
        "concat", "concat(a, b, …)", "arrays joined along axis 0", (1, None),
        lambda t, *arrays: t.cat(arrays), aliases=("cat", "concatenate"), kind="array",
        shape=_concatenated, entries=lambda *arrays: _numpy("concatenate", arrays),
        example=("concat([x, y], [1, x])", "x=1, y=2"),
    ),
    Function(
        "reshape", "reshape(a, n, m, …)", "the same entries, row-major, in another shape", (2, None),
        lambda t, a, *shape: a.reshape(shape), kind="array", integers_from=1,
        shape=_reshaped, entries=lambda a, *shape: a.reshape(shape),
        example=("reshape([x, y, 1, 2], 2, 2)", "x=1, y=2"),
    ),
    Function(
        "zeros", "zeros(n, m, …)", "array of zeros", (1, None),
        lambda t, *shape: t.zeros(shape, dtype=t.float64), kind="array", integers_from=0,
        shape=_filled, entries=lambda *shape: _numpy("full", shape, 0, dtype=object),
        example=("zeros(2) + x", "x=1"),
    ),
    Function(
        "ones", "ones(n, m, …)", "array of ones", (1, None),
        lambda t, *shape: t.ones(shape, dtype=t.float64), kind="array", integers_from=0,
        shape=_filled, entries=lambda *shape: _numpy("full", shape, 1, dtype=object),
        example=("ones(2)*x", "x=1"),
    ),
    Function(
        "eye", "eye(n)", "identity matrix", (1, 1),
        lambda t, n: t.eye(n, dtype=t.float64), kind="array", integers_from=0,
        shape=lambda n: _filled(n, n), entries=lambda n: _numpy("eye", n, dtype=object),
        example=("eye(2)*x", "x=1"),
    ),
)  # fmt: skip

ARRAYS = (*REDUCTIONS, *ALONG_AN_AXIS, *PRODUCTS, *BUILDING)
