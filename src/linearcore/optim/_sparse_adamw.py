"""AdamW whose step costs what its gradient holds."""

from collections.abc import Callable, Iterable
from typing import Any, overload

import torch
from torch import Tensor
from torch.optim import Optimizer

from linearcore._checks import complaint, positive
from linearcore._typing import compute_dtype


class SparseAdamW(Optimizer):
    """AdamW for parameters with sparse gradients, dense ones welcome: a step touches only the entries that have a gradient.

        m ← β₁ m + (1 − β₁) g      v ← β₂ v + (1 − β₂) g²      p ← (1 − η λ)^e p − η m̂ / (√v̂ + ε)

    for the entries (or rows) in the gradient; e is the number of steps since the entry's last one, so that weight decay
    misses nothing, and m̂, v̂ are corrected with the number of all steps. As in torch.optim.SparseAdam the moments of an entry
    rest while it has no gradient, and a parameter with the same few entries in every gradient behaves as under AdamW. Take
    torch.optim.SparseAdam for no weight decay, torch.optim.AdamW where all gradients are dense.

    Args:
        params: parameters or groups, as for every torch optimiser. A sparse gradient wants a contiguous parameter.
        lr: η.
        betas: β₁, β₂.
        eps: ε.
        weight_decay: λ.

    Example:
        >>> table = torch.nn.Embedding(100_000, 8, sparse=True)
        >>> optimizer = SparseAdamW(table.parameters(), lr=1e-2)
        >>> table(torch.tensor([3, 5])).square().sum().backward()
        >>> optimizer.step()

    Time O(entries in the gradient), after an O(size) first step; memory two numbers a parameter, and one a row for decay.
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
        """One step; with `closure` as for every torch optimiser."""
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
        """As for every torch optimiser. Step counters keep their integer type, which torch would cast to the parameter's."""
        super().load_state_dict(state_dict)
        saved = [number for group in state_dict["param_groups"] for number in group["params"]]
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        for number, parameter in zip(saved, parameters, strict=True):
            last = state_dict["state"].get(number, {}).get("last")
            if last is not None:
                self.state[parameter]["last"] = last.to(parameter.device, torch.int32, copy=True)

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["step"] = 0
            state["exp_avg"] = torch.zeros_like(parameter, memory_format=torch.contiguous_format)
            state["exp_avg_sq"] = torch.zeros_like(parameter, memory_format=torch.contiguous_format)
        state["step"] += 1
        if not gradient.is_sparse:
            # Entries may have rested in steps with sparse gradients before.
            rested = state["step"] - state["last"] if "last" in state else 1
            parameter.mul_(_kept(parameter, rested, group))
            if "last" in state:
                state["last"].fill_(state["step"])
            _step(parameter, state["exp_avg"], state["exp_avg_sq"], gradient, state["step"], group)
            return
        gradient = gradient.coalesce()
        places, values = _flat(gradient), gradient.values()
        tail = gradient.shape[gradient.sparse_dim() :]
        table, first, second = (tensor.view(-1, *tail) for tensor in (parameter, state["exp_avg"], state["exp_avg_sq"]))
        rows, m, v = (tensor.index_select(0, places) for tensor in (table, first, second))
        if group["weight_decay"]:
            if "last" not in state:
                steps = state["step"] - 1
                state["last"] = torch.full(
                    gradient.shape[: gradient.sparse_dim()], steps, dtype=torch.int32, device=table.device
                )
            last = state["last"].view(-1)
            rows.mul_(_kept(rows, state["step"] - last.index_select(0, places), group))
            last.index_fill_(0, places, state["step"])
        _step(rows, m, v, values, state["step"], group)
        for tensor, new in ((table, rows), (first, m), (second, v)):
            tensor.index_copy_(0, places, new)


def _step(p: Tensor, m: Tensor, v: Tensor, g: Tensor, step: int, group: dict[str, Any]) -> None:
    """Adam's step without decay, in place on p, m and v."""
    low, high = group["betas"]
    m.lerp_(g, 1 - low)
    v.mul_(high).addcmul_(g, g, value=1 - high)
    size = (v / (1 - high**step)).sqrt_().add_(group["eps"])
    p.addcdiv_(m, size, value=-group["lr"] / (1 - low**step))


def _kept(p: Tensor, rested: Tensor | int, group: dict[str, Any]) -> Tensor | float:
    """What weight decay leaves of p after `rested` steps, which may be a number for each leading entry of p."""
    base: float = 1 - group["lr"] * group["weight_decay"]
    if isinstance(rested, int):
        return base**rested
    # In float64: in bfloat16 a base of 0.999 would be 1.
    kept = (base ** rested.double()).to(compute_dtype(p))
    return kept.view(*rested.shape, *(1 for _ in range(p.dim() - rested.dim())))


def _flat(gradient: Tensor) -> Tensor:
    """(M,): the places of a sparse gradient's entries, its sparse dimensions taken as one."""
    places = torch.zeros(gradient.indices().shape[1], dtype=torch.long, device=gradient.device)
    for dimension, index in enumerate(gradient.indices()):
        places = places * gradient.shape[dimension] + index
    return places
