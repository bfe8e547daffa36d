"""Base class of the chain heads: parameters, masks, reductions, constraints and decoding."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from linearcore._checks import complaint, holds, nan_where
from linearcore._torch import can_read
from linearcore._typing import compute_dtype
from linearcore.heads._arguments import check_positive_int, check_reduction, number_by_name
from linearcore.heads._batch import IGNORED_TAG, Batch, check_shapes, to_batch
from linearcore.heads._linear import ProjectedLoss
from linearcore.heads._minimum_risk import CANDIDATES, SAMPLES, check_risk_options, minimum_risk
from linearcore.kernels import beam, fused_kernels_for, kbest, viterbi
from linearcore.structures import Chain, Constraints, Cost, Sites, resolve_cost


class ChainHead(ProjectedLoss, ABC):
    """Base class of the chain heads: start, transition and end scores that are added to a network's emissions.

        h(x, y) = start[y_1] + Σ_j emissions[j, y_j] + Σ_{j>1} transitions[y_{j−1}, y_j] + end[y_L]

    The interface is torchcrf's. Subclasses implement the loss; decoding, masks and reductions are implemented here.

    Masks work as in torchcrf. In addition, masked positions inside a sequence are skipped, so the unmasked positions around
    them become neighbours. Positions with tag −100 are masked out; a masked first position needs `strict_mask=False`.

    Args:
        num_tags: |Y|.
        batch_first: emissions are (B, L, |Y|) instead of (L, B, |Y|); the same for tags and masks.
        rank: r, for transitions = F Tᵀ with two factors (|Y|, r) instead of one matrix with |Y|² entries.
        constraints: forbidden transitions, first tags and last tags, in training and in decoding. They are not saved in
            the state dict, which stays compatible with torchcrf.
        strict_mask: if True, a masked first position raises, as in torchcrf. Use False for inputs that start with [CLS].
        validate: also check values, as torchcrf does: masks, tags in range, constraints, NaN in decoding. Each check
            synchronises with the GPU. With False there are no checks that synchronise; a tag out of range then makes the
            loss of its sequence NaN (on a CPU it still raises), and NaN emissions decode to score NaN and tags −100. Nothing
            is checked under torch.compile and in CUDA graphs.
    """

    _allowed_start: Tensor | None
    _allowed_transitions: Tensor | None
    _allowed_end: Tensor | None

    def __init__(
        self,
        num_tags: int,
        batch_first: bool = False,
        *,
        rank: int | None = None,
        constraints: Constraints | None = None,
        strict_mask: bool = True,
        validate: bool = True,
    ) -> None:
        if not isinstance(num_tags, int) or isinstance(num_tags, bool) or num_tags <= 0:
            raise ValueError(f"invalid number of tags: {num_tags}; pass a positive integer")
        if rank is not None and (not isinstance(rank, int) or rank <= 0):
            advice = "for example 32, or None for a full matrix"
            raise ValueError(complaint("rank", "be a positive integer or None", repr(rank), advice))
        super().__init__()
        self.num_tags = num_tags
        self.batch_first = batch_first
        self.rank = rank
        self.constraints = _check_constraints_type(constraints, num_tags)
        self.strict_mask = strict_mask
        self.validate = validate
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        if rank is None:
            self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        else:
            self.transitions_from = nn.Parameter(torch.empty(num_tags, rank))
            self.transitions_to = nn.Parameter(torch.empty(num_tags, rank))
        # Buffers move with the module. Not persistent, so the state dict stays compatible with torchcrf.
        for name in ("start", "transitions", "end"):
            allowed = None if constraints is None else getattr(constraints, name)
            self.register_buffer(f"_allowed_{name}", allowed, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialises parameters from U(−0.1, 0.1) in torchcrf's order.

        With `rank`, the two factors are initialised so that the entries of their product have the same variance.
        """
        nn.init.uniform_(self.start_transitions, -0.1, 0.1)
        nn.init.uniform_(self.end_transitions, -0.1, 0.1)
        if self.rank is None:
            nn.init.uniform_(self.transitions, -0.1, 0.1)
        else:
            # The variance of an entry of F Tᵀ is r·σ⁴, that of U(−0.1, 0.1) is 0.01/3.
            std = (0.01 / 3 / self.rank) ** 0.25
            nn.init.normal_(self.transitions_from, 0.0, std)
            nn.init.normal_(self.transitions_to, 0.0, std)

    @property
    def may_underflow(self) -> bool:
        """Whether underflow makes the loss NaN in a CUDA graph; an eager step falls back to the log domain."""
        return False

    def extra_repr(self) -> str:
        extra = "" if self.rank is None else f", rank={self.rank}"
        extra += ", batch_first=True" if self.batch_first else ""
        return f"num_tags={self.num_tags}{extra}{', constrained' if self.constraints is not None else ''}"

    def loss(self, emissions: Tensor, tags: Tensor, mask: Tensor | None = None, reduction: str = "token_mean") -> Tensor:
        """Returns the training loss of the head, which its class defines.

        Args:
            emissions: (L, B, |Y|), or (B, L, |Y|) with `batch_first`. float16 and bfloat16 are converted to float32.
            tags: (L, B) or (B, L) integers; positions with −100 are masked out.
            mask: shape of `tags`, booleans or 0 and 1; None for no masked positions.
            reduction: "token_mean" divides the sum by the number of unmasked positions; "sum" and "mean" are over sequences;
                "none" returns (B,).

        Raises:
            ValueError, TypeError: if shapes, dtypes or options do not fit, or a tag is out of range (on a CPU, or with
                `validate`); with `validate` also if the first position is masked or tags violate the constraints.
        """
        check_reduction(reduction)
        if isinstance(emissions, Tensor) and fused_kernels_for(emissions):
            loss = self._fused_loss(emissions, tags, mask, reduction)
            if loss is not None:
                return loss
        batch = self._to_batch(emissions, tags, mask)
        return self._reduce(self._losses(*batch.loss_inputs), batch, reduction, emissions.dtype)

    def _fused_loss(self, emissions: Tensor, tags: Tensor, mask: Tensor | None, reduction: str) -> Tensor | None:
        """Returns `loss` if the head has kernels that need no more than the user's tensors, else None."""
        return None

    def forward(self, emissions: Tensor, tags: Tensor, mask: Tensor | None = None, reduction: str = "sum") -> Tensor:
        """Returns −`loss`, by default the sum over sequences, as torchcrf does. Arguments as in `loss`."""
        return -self.loss(emissions, tags, mask, reduction)

    def _reduce(self, losses: Tensor, batch: Batch, reduction: str, dtype: torch.dtype) -> Tensor:
        """Reduces losses (B,) and casts the result to the promoted type of `dtype` and the parameters."""
        total = reduce_losses(nan_where(losses, batch.has_invalid_tag), batch.sites, reduction)
        return total.to(torch.promote_types(dtype, self.start_transitions.dtype))

    @abstractmethod
    def _losses(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        """Returns the loss (B,) of each sequence, for emissions (L, B, |Y|) and tags (L, B)."""

    def viterbi(self, emissions: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Exact Viterbi decoding. Returns tags in the layout of `mask`, −100 where masked, and scores (B,). No gradient.

        If no sequence is allowed (because of constraints or emissions of −inf), the score is −inf and all tags are −100.

        Time O(L·B·|Y|²), faster on a CPU if few tags have high scores; memory L×B×|Y|. For torch.export, wrap the head in
        a module whose `forward` calls this method; the length is then fixed, the batch size can be dynamic.
        """
        batch = self._to_batch(emissions, None, mask)
        return self._finish_decoding(*viterbi(batch.emissions, self.chain(batch.emissions), batch.sites))

    def _finish_decoding(self, tags: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Returns tags in the user's layout, and scores; with `validate` raises if a score is NaN."""
        if self.validate and can_read(scores):
            holds(
                "emissions",
                ~scores.isnan(),
                "contain neither NaN nor both +inf and −inf",
                "find the layer that produces NaN; also check the parameters of the head",
                of="sequences",
            )
        return self._to_user_layout(tags), scores

    @number_by_name("width")
    def beam(self, emissions: Tensor, mask: Tensor | None = None, *, width: int) -> tuple[Tensor, Tensor]:
        """Beam search: like `viterbi`, but keeps only the `width` best partial sequences at each position.

        The scores are those of the returned tags, −inf if no allowed sequence is left in the beam. Time O(L·B·|Y|·width).
        """
        batch = self._to_batch(emissions, None, mask)
        width = check_positive_int("width", width, "for example 16")
        return self._finish_decoding(*beam(batch.emissions, self.chain(batch.emissions), batch.sites, width))

    @number_by_name("k")
    def kbest(self, emissions: Tensor, mask: Tensor | None = None, *, k: int) -> tuple[Tensor, Tensor]:
        """Returns the k best tag sequences, best first: tags (k, *mask.shape) and scores (k, B).

        If fewer than k sequences exist, the others have score −inf and tags −100. Time O(L·B·|Y|·(|Y| + k²)).
        """
        batch = self._to_batch(emissions, None, mask)
        k = check_positive_int("k", k, "for example 5")
        return self._finish_decoding(*kbest(batch.emissions, self.chain(batch.emissions), batch.sites, k))

    def minimum_risk(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        *,
        cost: str | Cost,
        candidates: int = CANDIDATES,
        num_samples: int = SAMPLES,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Returns the tags with the least expected cost, in the layout of `mask`, −100 where masked, and this cost (B,).

            argmin_{y'} Σ_y p(y) ℓ(y', y),   p(y) ∝ exp(h(x, y) / temperature)

        Use it if a tagger is judged by another metric than whole sequences; it needs no training. It is exact for "zero-one"
        (the tags of `viterbi`) and "hamming" (from the marginals). For other costs, y' is one of the k best sequences or the
        tags for "hamming", and the expectation is exact over the k best and estimated from samples over the others. The tags
        satisfy the constraints. If no sequence is allowed (see `viterbi`), all tags are −100 and the cost is 1.

        `ChainCRF` learns p at temperature 1. The scores of the other heads are no log-probabilities: choose the temperature
        on validation data.

        Args:
            cost: ℓ: a name such as "edit", or a `Cost`. "span-f1" and "token-f1" need tag names: `SpanF1(names)`.
            candidates: k.
            num_samples: S, number of samples from p; 0 restricts p to the k best.
            temperature: above 1 flattens p, below 1 sharpens it.
            generator: random number generator on the device of `emissions`; None draws the same samples in every call.

        Raises:
            ValueError: if an option is out of range, or the cost does not fit the tags.

        Time: `kbest`, plus O(L·B·|Y|·(|Y| + S)), plus the cost of k·(k + S) pairs of each sequence.
        """
        resolved = cost_for_tags(cost, self.num_tags)
        batch = self._to_batch(emissions, None, mask)
        options = check_risk_options(candidates, num_samples, temperature)
        chain = self.chain(batch.emissions)
        tags, risk = minimum_risk(
            batch.emissions, chain, batch.sites, resolved, allowed=self._allowed, generator=generator, **options
        )
        return self._finish_decoding(tags, risk)

    def decode(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        *,
        width: int | None = None,
        cost: str | Cost | None = None,
        **options: Any,
    ) -> list[list[int]]:
        """Returns the best tags as one list per sequence, as torchcrf does, without masked positions.

        The list is empty if no sequence is allowed (score −inf).

        Args:
            width: beam width; None for exact search.
            cost: returns the tags with the least expected cost, see `minimum_risk`; None for those with the best score.
            options: further arguments of `minimum_risk`.

        Example:
            >>> from linearcore import ChainCRF
            >>> [len(tags) for tags in ChainCRF(5).decode(torch.zeros(4, 2, 5), cost="edit")]
            [4, 4]
        """
        if cost is not None and width is not None:
            raise ValueError(complaint("width", "be None with `cost`", width, "candidates are searched exactly; omit it"))
        if cost is None and options:
            raise TypeError(complaint("cost", f"be passed with `{next(iter(options))}`", None, "for example cost='edit'"))
        if cost is not None:
            tags, _ = self.minimum_risk(emissions, mask, cost=cost, **options)
        else:
            tags, _ = self.viterbi(emissions, mask) if width is None else self.beam(emissions, mask, width=width)
        rows = tags if self.batch_first else tags.t()
        return [[tag for tag in row if tag != IGNORED_TAG] for row in rows.tolist()]

    def confidence(self, emissions: Tensor, mask: Tensor | None = None, tags: Tensor | None = None) -> Tensor:
        """Returns the confidence in [0, 1] of each decoded tag (or of `tags`), in the layout of `mask`; 0 where masked."""
        if tags is None:
            tags, _ = self.viterbi(emissions, mask)
        with torch.no_grad():
            batch = self._to_batch(emissions, tags, mask)
            return self._to_user_layout(self._confidence(*batch.loss_inputs).masked_fill(~batch.sites.mask, 0.0))

    @abstractmethod
    def _confidence(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        """Returns the confidence (L, B) of `tags` (L, B)."""

    def chain(self, like: Tensor | None = None) -> Chain:
        """Returns start, transition and end scores, −inf where forbidden; in the dtype of `like`, or of the parameters."""
        dtype = self.start_transitions.dtype if like is None else like.dtype
        if self.rank is None:
            matrix = self.transitions.to(dtype)
        else:
            with torch.autocast(self.transitions_to.device.type, enabled=False):
                matrix = self.transitions_from.to(dtype) @ self.transitions_to.to(dtype).t()
        chain = Chain(self.start_transitions.to(dtype), matrix, self.end_transitions.to(dtype))
        return chain if self._allowed is None else chain.within(self._allowed)

    @property
    def _allowed(self) -> Chain | None:
        """The constraints as booleans, on the device of the parameters."""
        if self._allowed_start is None or self._allowed_transitions is None or self._allowed_end is None:
            return None
        return Chain(self._allowed_start, self._allowed_transitions, self._allowed_end)

    def _to_batch(self, emissions: Tensor, tags: Tensor | None, mask: Tensor | None, *, is_hidden: bool = False) -> Batch:
        """Checks the inputs and converts them to time first. `is_hidden`: `emissions` are hidden states, of any width."""
        check_shapes(None if is_hidden else self.num_tags, emissions, tags, mask)
        if self.batch_first:
            emissions = emissions.transpose(0, 1)
            tags, mask = (None if tensor is None else tensor.t() for tensor in (tags, mask))
        check_values = self.validate and can_read(emissions)
        batch = to_batch(self.num_tags, emissions, tags, mask, check_values=check_values, strict=self.strict_mask)
        if check_values:
            self._check_constraints(batch)
        dtype = torch.promote_types(compute_dtype(emissions), compute_dtype(self.start_transitions))
        return batch._replace(emissions=batch.emissions.to(dtype))

    def _check_constraints(self, batch: Batch) -> None:
        if self.constraints is None:
            return
        for length in batch.sites.mask.sum(0).unique().tolist():
            if length and not self.constraints.has_path(length):
                advice = "remove a constraint, or drop sequences of that length"
                raise ValueError(
                    complaint("constraints", "allow sequences of every length", f"none of length {length}", advice)
                )
        if batch.tags is not None:
            sites = Sites.of(batch.sites.mask.cpu())
            violations = self.constraints.violations(batch.tags.cpu(), sites)
            if bool(violations.any()):
                time, row = violations.nonzero()[0].tolist()
                tag, before = int(batch.tags[time, row]), int(sites.before(batch.tags.cpu())[time, row])
                if sites.is_first[time, row]:
                    is_allowed, where = self.constraints.start[tag], "as the first tag"
                else:
                    is_allowed, where = self.constraints.transitions[before, tag], f"after tag {before}"
                if is_allowed:
                    where = "as the last tag"
                first = f"position {time} of sequence {row} (tag {tag} {where})"
                got, advice = (
                    f"{int(violations.sum())} violations, the first at {first}",
                    "correct the labels or constraints",
                )
                raise ValueError(complaint("tags", "satisfy `constraints`", got, advice))

    def _to_user_layout(self, tensor: Tensor) -> Tensor:
        """Converts from time first to the user's layout."""
        return tensor.transpose(-1, -2) if self.batch_first else tensor


def reduce_losses(losses: Tensor, sites: Sites, reduction: str) -> Tensor:
    """Reduces losses (B,) as torchcrf does: over sequences, or over tags with "token_mean"."""
    if reduction == "none":
        return losses
    total = losses.sum()
    if reduction == "mean":
        return total / losses.shape[0] if losses.shape[0] else total / total.new_zeros(())
    return total / sites.mask.sum() if reduction == "token_mean" else total


def _check_constraints_type(constraints: Constraints | None, num_tags: int) -> Constraints | None:
    if constraints is not None and not isinstance(constraints, Constraints):
        advice = "for example linearcore.structures.bio(names)"
        raise TypeError(complaint("constraints", "be `Constraints` or None", type(constraints).__name__, advice))
    if constraints is not None and constraints.num_tags != num_tags:
        raise ValueError(
            complaint("constraints", f"be for {num_tags} tags", constraints.num_tags, "list all tags, in order")
        )
    return constraints


def cost_for_tags(cost: str | Cost, num_tags: int) -> Cost:
    """Returns the cost with this name; raises if it is made for another number of tags."""
    resolved = resolve_cost(cost)
    resolved.check(num_tags)
    return resolved
