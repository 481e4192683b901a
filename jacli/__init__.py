"""jacli: Jacobians and vector-Jacobian products, each entry beside its proved exact value.

Importing this package is cheap: torch and SymPy are imported when a result is asked for.
"""

from __future__ import annotations

from jacli.version import __version__

TYPE_CHECKING = False  # typing is not imported for its name alone: every call pays for what is imported here
if TYPE_CHECKING:
    from typing import Any

    from jacli.api import backward, check, grad, hessian, hvp, jacobian, jvp, read, sparse_jacobian, sparsity, vjp
    from jacli.stream.api import at_points

__all__ = [
    "JacliError",
    "__version__",
    "at_points",
    "backward",
    "check",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "read",
    "sparse_jacobian",
    "sparsity",
    "vjp",
]


def __getattr__(name: str) -> Any:
    if name == "at_points":
        from jacli.stream.api import at_points

        return at_points
    if name == "JacliError":
        from jacli.errors import JacliError

        return JacliError
    if name in __all__:
        from jacli import api

        return getattr(api, name)
    raise AttributeError(f"module 'jacli' has no attribute {name!r}")
