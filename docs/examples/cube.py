"""A function with a backward pass of its own, which forgets a factor of two."""

from __future__ import annotations

from typing import Any

import torch


class Cube(torch.autograd.Function):
    """(2*x)**3."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """The value."""
        ctx.save_for_backward(x)
        return (2 * x) ** 3

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient: what comes in times 6*(2*x)**2, had somebody thought of the inner derivative."""
        (x,) = ctx.saved_tensors
        return gradient * 3 * (2 * x) ** 2


def volume(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """y*(2*x)**3."""
    return y * Cube.apply(x)
