"""Generated chains whose transitions matter: a hidden Markov model with strong random transitions and noisy embeddings.

    y_1 uniform,   P(y_j | y_{j−1}) = softmax of a row of N(0, s²) logits,   x_j = e[y_j] + σ ε,   e, ε ~ N(0, I_d)

The best answer is a linear chain of the kind that is trained: W = e/σ², b = −‖e‖²/(2σ²), transitions = log P, so that the
error of exact decoding with the true parameters, the oracle's, can be reached in principle.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore.heads import ChainCRF

#: Spread s of the logits, and noise σ for the paper's 20 inputs: the oracle errs at 1 to 3 % of the positions, decoding
#: without transitions at some 30 %.
LOGITS, NOISE = 4.0, 1.2


@dataclass(frozen=True)
class Chains:
    """Chains of one length, time first.

    Attributes:
        inputs: (L, n, d).
        tags: (L, n).
    """

    inputs: Tensor
    tags: Tensor

    def __len__(self) -> int:
        return self.tags.shape[1]

    def to(self, device: str) -> "Chains":
        """The same chains on a device."""
        return Chains(self.inputs.to(device), self.tags.to(device))


@dataclass(frozen=True)
class Law:
    """What chains are drawn from.

    Attributes:
        embeddings: e (|Y|, d).
        log_transitions: log P (|Y|, |Y|), from row to column.
        noise: σ.
    """

    embeddings: Tensor
    log_transitions: Tensor
    noise: float

    @classmethod
    def draw(cls, num_tags: int, inputs: int, noise: float, stream: torch.Generator) -> "Law":
        """Random embeddings and transitions."""
        embeddings = torch.randn(num_tags, inputs, generator=stream)
        logits = LOGITS * torch.randn(num_tags, num_tags, generator=stream)
        return cls(embeddings, logits.log_softmax(-1), noise)

    def chains(self, count: int, length: int, stream: torch.Generator) -> Chains:
        """`count` chains of `length` positions."""
        num_tags, inputs = self.embeddings.shape
        probability = self.log_transitions.exp()
        tags = [torch.randint(num_tags, (count,), generator=stream)]
        for _ in range(length - 1):
            tags.append(torch.multinomial(probability[tags[-1]], 1, generator=stream).squeeze(-1))
        truth = torch.stack(tags)
        return Chains(self.embeddings[truth] + self.noise * torch.randn(length, count, inputs, generator=stream), truth)

    def emissions(self, inputs: Tensor) -> Tensor:
        """(L, n, |Y|): log p(x_j | v), up to a number that is the same for all v."""
        half_norms = self.embeddings.square().sum(-1) / 2
        return (inputs @ self.embeddings.t() - half_norms) / self.noise**2

    def oracle_error(self, chains: Chains) -> float:
        """Share of wrong tags when decoding exactly with the true parameters."""
        head = ChainCRF(len(self.embeddings))
        with torch.no_grad():
            head.start_transitions.zero_()
            head.end_transitions.zero_()
            head.transitions.copy_(self.log_transitions)
        return wrong_share(head.viterbi(self.emissions(chains.inputs))[0], chains.tags)

    def unary_error(self, chains: Chains, seen: Chains) -> float:
        """Share of wrong tags without transitions: the likeliest tag given x_j and the tags' frequencies in `seen`."""
        counts = torch.bincount(seen.tags.reshape(-1), minlength=len(self.embeddings)) + 1
        return wrong_share((self.emissions(chains.inputs) + counts.log()).argmax(-1), chains.tags)


@dataclass(frozen=True)
class Task:
    """Chains to train on, to choose by, and to report on, and the law of all three."""

    law: Law
    train: Chains
    validation: Chains
    test: Chains

    @classmethod
    def draw(cls, num_tags: int, length: int, inputs: int, noise: float, sizes: tuple[int, int, int], seed: int) -> "Task":
        """Independent chains of one law; `sizes` of the three sets in order."""
        stream = torch.Generator().manual_seed(seed)
        law = Law.draw(num_tags, inputs, noise, stream)
        train, validation, test = (law.chains(size, length, stream) for size in sizes)
        return cls(law, train, validation, test)


def wrong_share(answer: Tensor, truth: Tensor) -> float:
    """The Hamming error: the share of tags that differ."""
    return float((answer != truth).double().mean())
