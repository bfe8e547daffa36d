"""AdamW for sparse gradients."""

import math
from collections.abc import Callable, Iterable
from typing import Any, overload

import torch
from torch import Tensor
from torch.optim import Optimizer

from linearcore._checks import complaint, positive
from linearcore._torch import sparse_entries
from linearcore._typing import compute_dtype
from linearcore.kernels import AdamWStep, sparse_adamw


class SparseAdamW(Optimizer):
    """AdamW for parameters with sparse gradients: a step updates only the entries that have a gradient.

        m ← β₁ m + (1 − β₁) g      v ← β₂ v + (1 − β₂) g²      p ← (1 − η λ)^k p − η m̂ / (√v̂ + ε)

    The update applies to the entries (or rows) in the gradient. k is the number of steps since the entry's last update, so
    the weight decay of skipped steps is applied. m̂ and v̂ are bias-corrected with the total number of steps. As in
    torch.optim.SparseAdam, the moments of an entry without gradient are not updated. If every gradient has all entries,
    the result equals AdamW's. Dense gradients are accepted too; if all are dense, use torch.optim.AdamW.

    Args:
        params: parameters or parameter groups. A sparse gradient requires a contiguous parameter.
        lr: learning rate η.
        betas: decay rates β₁, β₂ of the moments.
        eps: ε, added to the denominator.
        weight_decay: λ.

    Example:
        >>> table = torch.nn.Embedding(100_000, 8, sparse=True)
        >>> optimizer = SparseAdamW(table.parameters(), lr=1e-2)
        >>> table(torch.tensor([3, 5])).square().sum().backward()
        >>> optimizer.step()

    Time: O(entries in the gradient), after a first step of O(size); on a GPU without synchronisation. Memory: two values per
    parameter, plus one integer per row with weight decay. Steps with sparse gradients cannot be captured in a CUDA graph,
    because the step counter is a Python integer.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        positive("lr", lr, "for example 1e-3")
        positive("eps", eps, "for example 1e-8")
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError(complaint("betas", "be in [0, 1)", betas, "for example (0.9, 0.999)"))
        if not 0 <= weight_decay < 1 / lr:
            raise ValueError(complaint("weight_decay", "be in [0, 1/lr)", weight_decay, "for example 1e-2"))
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Performs one step, and returns the loss of `closure` if one is passed."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state. Step counters stay integers, which torch would cast to the dtype of the parameter."""
        super().load_state_dict(state_dict)
        saved_indices = [index for group in state_dict["param_groups"] for index in group["params"]]
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        for index, parameter in zip(saved_indices, parameters, strict=True):
            last = state_dict["state"].get(index, {}).get("last")
            if last is not None:
                self.state[parameter]["last"] = last.to(parameter.device, torch.int32, copy=True)

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        if gradient.is_sparse and parameter.is_cuda and torch.cuda.is_current_stream_capturing():
            advice = "capture the loss and its backward pass, and call `step` after the replay"
            raise RuntimeError(
                complaint("step", "not be captured in a CUDA graph, which would repeat its number", "a capture", advice)
            )
        state = self.state[parameter]
        if not state:
            state["step"] = 0
            state["exp_avg"] = torch.zeros_like(parameter, memory_format=torch.contiguous_format)
            state["exp_avg_sq"] = torch.zeros_like(parameter, memory_format=torch.contiguous_format)
        state["step"] += 1
        if not gradient.is_sparse:
            # Earlier steps with sparse gradients may have skipped some entries.
            num_steps = state["step"] - state["last"] if "last" in state else 1
            parameter.mul_(_decay_factor(parameter, num_steps, group))
            if "last" in state:
                state["last"].fill_(state["step"])
            _step(parameter, state["exp_avg"], state["exp_avg_sq"], gradient, state["step"], group)
            return
        if group["weight_decay"] and "last" not in state:
            size, steps = gradient.shape[: gradient.sparse_dim()], state["step"] - 1
            state["last"] = torch.full(size, steps, dtype=torch.int32, device=parameter.device)
        if not _update_in_one_pass(parameter, gradient, state, group):
            _update_entries(parameter, gradient.coalesce(), state, group)


def _update_in_one_pass(parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> bool:
    """Calls the kernel for a sparse gradient, which need not be coalesced. Returns False if there is none."""
    indices, values = sparse_entries(gradient)
    row_size = math.prod(gradient.shape[gradient.sparse_dim() :])
    if row_size == 0 or not parameter.is_contiguous():
        return False
    table, first, second = (tensor.view(-1, row_size) for tensor in (parameter, state["exp_avg"], state["exp_avg_sq"]))
    decay, last = 1 - group["lr"] * group["weight_decay"], state["last"].view(-1) if group["weight_decay"] else None
    step = AdamWStep(state["step"], group["lr"], group["betas"], group["eps"], decay)
    return sparse_adamw(
        (table, first, second), last, _flat_indices(indices, gradient.shape), values.reshape(-1, row_size), step
    )


def _update_entries(parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Performs the step for a coalesced gradient with torch operations."""
    indices, values = _flat_indices(gradient.indices(), gradient.shape), gradient.values()
    row_shape = gradient.shape[gradient.sparse_dim() :]
    table, first, second = (tensor.view(-1, *row_shape) for tensor in (parameter, state["exp_avg"], state["exp_avg_sq"]))
    rows, m, v = (tensor.index_select(0, indices) for tensor in (table, first, second))
    if group["weight_decay"]:
        last = state["last"].view(-1)
        rows.mul_(_decay_factor(rows, state["step"] - last.index_select(0, indices), group))
        last.index_fill_(0, indices, state["step"])
    _step(rows, m, v, values, state["step"], group)
    for tensor, new in ((table, rows), (first, m), (second, v)):
        tensor.index_copy_(0, indices, new)


def _step(p: Tensor, m: Tensor, v: Tensor, g: Tensor, step: int, group: dict[str, Any]) -> None:
    """Performs Adam's step without weight decay, in place on p, m and v."""
    beta1, beta2 = group["betas"]
    m.lerp_(g, 1 - beta1)
    v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
    denominator = (v / (1 - beta2**step)).sqrt_().add_(group["eps"])
    p.addcdiv_(m, denominator, value=-group["lr"] / (1 - beta1**step))


def _decay_factor(p: Tensor, num_steps: Tensor | int, group: dict[str, Any]) -> Tensor | float:
    """Returns the factor of weight decay over `num_steps` steps, an int or one value per leading entry of p."""
    base: float = 1 - group["lr"] * group["weight_decay"]
    if isinstance(num_steps, int):
        return base**num_steps
    # In float64, since a base of 0.999 would round to 1 in bfloat16.
    factor = (base ** num_steps.double()).to(compute_dtype(p))
    return factor.view(*num_steps.shape, *(1 for _ in range(p.dim() - num_steps.dim())))


def _flat_indices(indices: Tensor, shape: torch.Size) -> Tensor:
    """Returns the indices (M,) of a sparse gradient's entries, with its sparse dimensions flattened."""
    flat = indices[0]
    for dimension, index in enumerate(indices[1:], 1):
        flat = flat * shape[dimension] + index
    return flat
