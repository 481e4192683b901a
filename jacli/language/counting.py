"""Whole numbers that are known before the point is: bounds of families, and the indices in them.

``{x[i+1] - x[i] for i in 0:len(x)-1}`` counts ``i`` along an axis of its own, so that every expression of counters
is an array of integers, with broadcasting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from jacli.language.syntax import Node

#: The greatest whole number that is counted with: its sums are still exact in 64 bits.
MOST_COUNTED = 2**62

#: What can be counted with, beside numbers, counters and ``len``.
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "neg": lambda a: -a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "Mod": lambda a, b: a % b,
}


def counts(nodes: Sequence[Node], index: int, shape: Callable[[int], tuple[int, ...]]) -> Any:
    """The integers that an expression of counters stands for: an int, or an array with an axis a counter.

    Args:
        nodes: a program's nodes.
        index: the expression.
        shape: the shape of a node (for ``len``).

    Raises:
        ValueError: a plain sentence, where it is no expression of counters.
    """
    node = nodes[index]
    if node.op == "number":
        if node.value.denominator != 1:
            raise ValueError(f"{node.value} is not a whole number")
        return _within(int(node.value))
    if node.op == "len":
        sizes = shape(node.args[0])
        axis = node.value[0] if node.value else 0
        if not -len(sizes) <= axis < len(sizes):
            raise ValueError("len needs an array" if not sizes else f"there is no axis {axis}")
        return sizes[axis]
    if node.op == "counter":
        return _counted(nodes, node, shape)
    if node.op not in _OPERATIONS:
        raise ValueError("bounds and indices in { } are made of whole numbers, counters, len, + - * and Mod")
    args = [counts(nodes, arg, shape) for arg in node.args]
    if node.op == "Mod" and _is_zero(args[1]):
        raise ValueError("Mod by zero")
    if node.op == "mul":
        _within(math.prod(max(map(abs, _extremes(arg))) for arg in args))
    result = _OPERATIONS[node.op](*args)
    _within(*_extremes(result))
    return result


def _extremes(value: Any) -> tuple[int, int]:
    return (int(value.min()), int(value.max())) if hasattr(value, "min") else (value, value)


def _within(*numbers: int) -> int:
    """The last of the numbers. Raises ValueError where 64 bits could not count with them."""
    if max(map(abs, numbers)) > MOST_COUNTED:
        raise ValueError("bounds and indices in { } are whole numbers up to 2**62")
    return numbers[-1]


def _is_zero(value: Any) -> bool:
    return bool((value == 0).any()) if hasattr(value, "any") else value == 0


def _counted(nodes: Sequence[Node], node: Node, shape: Callable[[int], tuple[int, ...]]) -> Any:
    import numpy as np

    start, stop = bounds(nodes, node, shape)
    return np.arange(start, stop).reshape(counter_shape(nodes, node, shape))


def counter_shape(nodes: Sequence[Node], node: Node, shape: Callable[[int], tuple[int, ...]]) -> tuple[int, ...]:
    """The axis of a counter among those of its family. Raises ValueError where its range is empty."""
    name, axis, rank = node.value[0], int(node.value[1]), int(node.value[2])
    start, stop = bounds(nodes, node, shape)
    if stop <= start:
        raise ValueError(f"{name} takes no value: its range {start}:{stop} is empty")
    return (1,) * axis + (stop - start,) + (1,) * (rank - axis - 1)


def bounds(nodes: Sequence[Node], node: Node, shape: Callable[[int], tuple[int, ...]]) -> tuple[int, int]:
    """The first value of a counter, and the one after its last. Raises ValueError."""
    found = [counts(nodes, arg, shape) for arg in node.args]
    if any(hasattr(bound, "shape") for bound in found):
        raise ValueError(f"the bounds of {node.value[0]} cannot depend on another counter")
    return found[0], found[1]


def gathered(nodes: Sequence[Node], node: Node, shape: Callable[[int], tuple[int, ...]]) -> tuple[Any, ...]:
    """The indices of a ``gather``, one a dimension. Raises ValueError where one is out of range."""
    sizes = shape(node.args[0])
    if len(node.args) - 1 != len(sizes):
        what = "a single number has no entries" if not sizes else f"{len(sizes)} indices are needed"
        raise ValueError(f"{what}; {len(node.args) - 1} given")
    found = tuple(counts(nodes, arg, shape) for arg in node.args[1:])
    for axis, (index, size) in enumerate(zip(found, sizes, strict=True)):
        least, most = _extremes(index)
        if least < 0 or most >= size:
            place = f" of axis {axis}" if len(sizes) > 1 else ""
            raise ValueError(f"the index{place} runs from {least} to {most}, but entries count from 0 to {size - 1}")
    return found
