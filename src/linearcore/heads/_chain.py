"""What the three chain heads share: parameters, masks, reductions, constraints and decoding."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from linearcore._checks import complaint, holds, nan_where
from linearcore._torch import can_read
from linearcore._typing import compute_dtype
from linearcore.heads._batch import IGNORED_TAG, Batch, check_shapes, to_batch
from linearcore.kernels import beam, kbest, viterbi
from linearcore.structures import Chain, Constraints, Cost, Sites, resolve_cost

REDUCTIONS = ("none", "sum", "mean", "token_mean")


class ChainHead(nn.Module, ABC):
    """A linear chain over |Y| tags on top of a network's emissions, with torchcrf's interface.

        h(x, y) = start[y_1] + Σ_j emissions[j, y_j] + Σ_{j>1} transitions[y_{j−1}, y_j] + end[y_L]

    A subclass says what its loss is; everything else is here, so that changing the loss is changing one word.

    Masks are torchcrf's: the first position of every chain must be on. Beyond torchcrf, positions that are off in between
    are skipped (the last position before them that is on is the neighbour), a tag of −100 counts as off, also in front, and
    with `strict_mask=False` any position may be off.

    Args:
        num_tags: |Y|.
        batch_first: emissions are (B, L, |Y|) and not (L, B, |Y|); tags and masks alike.
        rank: r, for transitions = F Tᵀ with two factors (|Y|, r) instead of one matrix with |Y|² entries.
        constraints: transitions, first and last tags that are forbidden, in training and in decoding. They are no part of
            the state that is saved, which is torchcrf's.
        strict_mask: a mask whose first position is off is an error, as torchcrf has it. False skips such positions, which
            is what tokens like [CLS] want.
        validate: check the numbers too (masks, tags in range, constraints obeyed, no NaN in what is decoded), as torchcrf
            does. On an accelerator each check waits for the device; False never waits. Then a tag out of range makes the
            loss of its chain NaN (a CPU still raises), and NaN emissions decode to a score of NaN and tags of −100. Under
            torch.compile and in CUDA graphs nothing is checked.
    """

    #: Whether a CUDA graph of the loss may give NaN where an eager step goes over to the log domain.
    may_underflow: ClassVar[bool] = False
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
            raise ValueError(f"invalid number of tags: {num_tags}; count them, from 1 up")
        if rank is not None and (not isinstance(rank, int) or rank <= 0):
            advice = "for example 32, or None for a full matrix"
            raise ValueError(complaint("rank", "be a positive integer or None", repr(rank), advice))
        super().__init__()
        self.num_tags = num_tags
        self.batch_first = batch_first
        self.rank = rank
        self.constraints = _checked(constraints, num_tags)
        self.strict_mask = strict_mask
        self.validate = validate
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        if rank is None:
            self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        else:
            self.transitions_from = nn.Parameter(torch.empty(num_tags, rank))
            self.transitions_to = nn.Parameter(torch.empty(num_tags, rank))
        # Buffers follow the module to its device. They are no part of its state, which is torchcrf's.
        for name in ("start", "transitions", "end"):
            allowed = None if constraints is None else getattr(constraints, name)
            self.register_buffer(f"_allowed_{name}", allowed, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all scores from U(−0.1, 0.1) as torchcrf does, in the same order; factors so that their product is alike."""
        nn.init.uniform_(self.start_transitions, -0.1, 0.1)
        nn.init.uniform_(self.end_transitions, -0.1, 0.1)
        if self.rank is None:
            nn.init.uniform_(self.transitions, -0.1, 0.1)
        else:
            # The variance of an entry of F Tᵀ is r·σ⁴, that of U(−0.1, 0.1) is 0.01/3.
            spread = (0.01 / 3 / self.rank) ** 0.25
            nn.init.normal_(self.transitions_from, 0.0, spread)
            nn.init.normal_(self.transitions_to, 0.0, spread)

    def extra_repr(self) -> str:
        extra = "" if self.rank is None else f", rank={self.rank}"
        extra += ", batch_first=True" if self.batch_first else ""
        return f"num_tags={self.num_tags}{extra}{', constrained' if self.constraints is not None else ''}"

    def loss(self, emissions: Tensor, tags: Tensor, mask: Tensor | None = None, reduction: str = "token_mean") -> Tensor:
        """The loss to train with; for `ChainCRF` it is the negative log-likelihood.

        Args:
            emissions: (L, B, |Y|), or (B, L, |Y|) with `batch_first`; any floating dtype, computed in float32 or float64.
            tags: (L, B) or (B, L) integers; −100 counts as masked.
            mask: like `tags`, booleans or 0 and 1; None means all on.
            reduction: "token_mean" divides by the number of tags; "sum" and "mean" are over chains; "none" gives (B,).

        Raises:
            ValueError, TypeError: if shapes, dtypes or options do not fit, a tag is out of range (on a CPU, or with
                `validate`), and with `validate` if the first position is off, or tags disobey the constraints.
        """
        check_reduction(reduction)
        batch = self._batch(emissions, tags, mask)
        return self._reduced(self._losses(*batch.tagged), batch, reduction, emissions.dtype)

    def forward(self, emissions: Tensor, tags: Tensor, mask: Tensor | None = None, reduction: str = "sum") -> Tensor:
        """−`loss`, summed over chains, so that `-head(...)` trains as with torchcrf. Arguments as in `loss`."""
        return -self.loss(emissions, tags, mask, reduction)

    def _reduced(self, losses: Tensor, batch: Batch, reduction: str, dtype: torch.dtype) -> Tensor:
        """Losses (B,) as torchcrf reduces them, in the dtype that `dtype` and the parameters promote to."""
        total = reduce_chains(nan_where(losses, batch.wrong), batch.sites, reduction)
        return total.to(torch.promote_types(dtype, self.start_transitions.dtype))

    @abstractmethod
    def _losses(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        """(B,): what each chain loses, for emissions (L, B, |Y|) and tags (L, B)."""

    def viterbi(self, emissions: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The best tags, in the layout of `mask` and −100 where it is off, and their scores (B,). Exact.

        A chain without a path (constraints, or emissions of −inf) has score −inf and tags of −100 everywhere.

        Time O(L·B·|Y|²), on CPUs less for sharp scores; memory L×B×|Y|. No gradient. For torch.export wrap the head in a
        module whose `forward` calls this; the length is then fixed, the batch size need not be.
        """
        batch = self._batch(emissions, None, mask)
        return self._decoded(*viterbi(batch.emissions, self.chain(batch.emissions), batch.sites))

    def _decoded(self, tags: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Tags in the user's layout, and scores; with `validate` NaN scores raise, since their tags mean nothing."""
        if self.validate and can_read(scores):
            holds(
                "emissions",
                ~scores.isnan(),
                "not be NaN, nor +inf beside −inf",
                "look for the first NaN in the network and in the head",
                of="chains",
            )
        return self._layout(tags), scores

    def beam(self, emissions: Tensor, width: int, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Like `viterbi`, but only the `width` best partial sequences go on at each position: time O(L·B·|Y|·width).

        The scores are those of the tags found. Under hard constraints a narrow beam may lose all paths; −inf then.
        """
        batch = self._batch(emissions, None, mask)
        width = _count("width", width, "for example 16")
        return self._decoded(*beam(batch.emissions, self.chain(batch.emissions), batch.sites, width))

    def kbest(self, emissions: Tensor, k: int, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The k best tag sequences, best first: tags (k, …) with the layout of `mask` behind, and scores (k, B).

        Where there are fewer than k, the rest has score −inf and tags of −100. Time O(L·B·|Y|·(|Y| + k²)).
        """
        batch = self._batch(emissions, None, mask)
        k = _count("k", k, "for example 5")
        return self._decoded(*kbest(batch.emissions, self.chain(batch.emissions), batch.sites, k))

    def decode(self, emissions: Tensor, mask: Tensor | None = None, *, width: int | None = None) -> list[list[int]]:
        """The best tags as torchcrf's lists, one a chain, without the positions that are off.

        A chain without a path, whose score is −inf, gives an empty list.

        Args:
            width: a beam of that width instead of the exact search.
        """
        tags, _ = self.viterbi(emissions, mask) if width is None else self.beam(emissions, width, mask)
        rows = tags if self.batch_first else tags.t()
        return [[tag for tag in row if tag != IGNORED_TAG] for row in rows.tolist()]

    def confidence(self, emissions: Tensor, mask: Tensor | None = None, tags: Tensor | None = None) -> Tensor:
        """How sure the head is of each of its tags (or of yours), in [0, 1] and in the layout of `mask`; 0 where off."""
        if tags is None:
            tags, _ = self.viterbi(emissions, mask)
        with torch.no_grad():
            batch = self._batch(emissions, tags, mask)
            return self._layout(self._confidence(*batch.tagged).masked_fill(~batch.sites.mask, 0.0))

    @abstractmethod
    def _confidence(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        """(L, B): how sure the head is of these tags."""

    def chain(self, like: Tensor | None = None) -> Chain:
        """The chain's scores, constraints put in as −inf, in the dtype of `like` or else their own."""
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
        """The constraints as booleans, where the parameters are."""
        if self._allowed_start is None or self._allowed_transitions is None or self._allowed_end is None:
            return None
        return Chain(self._allowed_start, self._allowed_transitions, self._allowed_end)

    def _batch(self, emissions: Tensor, tags: Tensor | None, mask: Tensor | None, *, is_hidden: bool = False) -> Batch:
        """What users hand in, checked and time first. `is_hidden`: hidden states in the place of emissions, of any width."""
        check_shapes(None if is_hidden else self.num_tags, emissions, tags, mask)
        if self.batch_first:
            emissions = emissions.transpose(0, 1)
            tags, mask = (None if given is None else given.t() for given in (tags, mask))
        look = self.validate and can_read(emissions)
        batch = to_batch(self.num_tags, emissions, tags, mask, look=look, strict=self.strict_mask)
        if look:
            self._check_constraints(batch)
        dtype = torch.promote_types(compute_dtype(emissions), compute_dtype(self.start_transitions))
        return batch._replace(emissions=batch.emissions.to(dtype))

    def _check_constraints(self, batch: Batch) -> None:
        if self.constraints is None:
            return
        for length in batch.sites.mask.sum(0).unique().tolist():
            if length and not self.constraints.has_path(length):
                advice = "allow more, or leave such chains out"
                raise ValueError(
                    complaint("constraints", "leave a path for every chain", f"none of length {length}", advice)
                )
        if batch.tags is not None:
            sites = Sites.of(batch.sites.mask.cpu())
            wrong = self.constraints.violations(batch.tags.cpu(), sites)
            if bool(wrong.any()):
                time, chain = wrong.nonzero()[0].tolist()
                tag, before = int(batch.tags[time, chain]), int(sites.before(batch.tags.cpu())[time, chain])
                where = "first" if sites.is_first[time, chain] else f"after {before}"
                where += " and last" if sites.is_last[time, chain] else ""
                got = f"{int(wrong.sum())} that do not, the first at position {time} of chain {chain} (tag {tag} {where})"
                raise ValueError(complaint("tags", "obey `constraints`", got, "mend the labels, or forbid less"))

    def _layout(self, tensor: Tensor) -> Tensor:
        """From time first to what the user has."""
        return tensor.transpose(-1, -2) if self.batch_first else tensor


def check_reduction(reduction: str) -> None:
    """Raises unless it is one of torchcrf's."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"invalid reduction: {reduction}; choose one of {', '.join(REDUCTIONS)}")


def reduce_chains(losses: Tensor, sites: Sites, reduction: str) -> Tensor:
    """Losses (B,) as torchcrf reduces them: over chains, or with "token_mean" over tags."""
    if reduction == "none":
        return losses
    total = losses.sum()
    if reduction == "mean":
        return total / losses.shape[0] if losses.shape[0] else total / total.new_zeros(())
    return total / sites.mask.sum() if reduction == "token_mean" else total


def _checked(constraints: Constraints | None, num_tags: int) -> Constraints | None:
    if constraints is not None and not isinstance(constraints, Constraints):
        advice = "for example linearcore.structures.bio(names)"
        raise TypeError(complaint("constraints", "be `Constraints` or None", type(constraints).__name__, advice))
    if constraints is not None and constraints.num_tags != num_tags:
        raise ValueError(
            complaint("constraints", f"be for {num_tags} tags", constraints.num_tags, "list all tags, in order")
        )
    return constraints


def checked_cost(cost: str | Cost, num_tags: int) -> Cost:
    """The cost that a name stands for; raises if it is for another number of tags."""
    found = resolve_cost(cost)
    found.check(num_tags)
    return found


def _count(name: str, number: int, advice: str) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        got = repr(number) if isinstance(number, int | float) else type(number).__name__
        raise ValueError(complaint(name, "be a positive integer", got, advice))
    return number
