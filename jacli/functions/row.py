"""A row of the table of functions: everything that jacli knows about one function, in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """One function: how it is typed, what it means, and its form in each reading.

    Attributes:
        name: the name that messages and the program use.
        signature: how to type it, ``log(x, b)``.
        meaning: one line for ``jacli functions``.
        arity: least and greatest number of arguments (greatest None: any number).
        torch: ``torch(t, *tensors, *integers)`` with ``t`` the torch module, as a PyTorch user would spell it.
        aliases: other spellings that are read as this one.
        kind: ``elementwise``, ``array`` or ``condition``.
        definitions: by number of arguments, the definition in jacli's own language with the signature's names;
            the exact readings compute this, and it is what the table prints. Functions without one are
            primitives of the exact readings.
        derivatives: of a primitive, one expression an argument; ``{n}`` stands for an integer parameter.
        folds: any number of arguments is reduced two by two from the left.
        integers_first: the first argument is a constant integer (a degree, an order).
        integers_from: arguments from this position on are constant integers (an axis, a shape).
        keyword: how the first such integer may also be named, ``axis=0`` (``dim`` always works beside ``axis``).
        shape: of an array function, its result's shape from the arguments' shapes and the integers; raises
            ValueError with a plain sentence.
        entries: of an array function, its entries: numpy object arrays of scalars in, one out.
        domain: where the function is real, in words or a condition; empty when everywhere.
        kinks: where it is not differentiable, in words; empty when nowhere inside the domain.
        example: an expression in x and y and a point inside the domain, ``("log(x)", "x=2")``.
        listed: False for helpers that only derivatives need.
    """

    name: str
    signature: str
    meaning: str
    arity: tuple[int, int | None]
    torch: Callable[..., Any]
    aliases: tuple[str, ...] = ()
    kind: str = "elementwise"
    definitions: Mapping[int, str] = field(default_factory=dict)
    derivatives: tuple[str, ...] = ()
    folds: bool = False
    integers_first: bool = False
    integers_from: int | None = None
    keyword: str | None = None
    shape: Callable[..., Shape] | None = None
    entries: Callable[..., Any] | None = None
    domain: str = ""
    kinks: str = ""
    example: tuple[str, str] = ("", "")
    listed: bool = True

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names in the signature's brackets."""
        inside = self.signature[self.signature.index("(") + 1 : self.signature.rindex(")")]
        return tuple(part.strip() for part in inside.split(",") if part.strip() not in ("", "…"))

    @property
    def definition(self) -> str:
        """The definition as one text, or empty for a primitive."""
        return "; ".join(self.definitions.values())
