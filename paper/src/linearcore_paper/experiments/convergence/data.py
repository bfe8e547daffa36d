"""Synthetic sequences from a hidden Markov model with strong random transitions and noisy embeddings.

    y_1 uniform,   P(y_j | y_{j−1}) = softmax of a row of N(0, s²) logits,   x_j = e[y_j] + σ ε,   e, ε ~ N(0, I_d)

The optimal tagger is a linear chain like the trained ones: W = e/σ², b = −‖e‖²/(2σ²), transitions = log P. Training can
therefore reach the error of the oracle, which is exact decoding with the true parameters.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore.heads import ChainCRF

#: Standard deviation s of the logits, and noise σ for the paper's 20 inputs. The oracle's error is 1 to 3 %, that of
#: decoding without transitions about 30 %.
LOGITS, NOISE = 4.0, 1.2


@dataclass(frozen=True)
class Chains:
    """Sequences of equal length, time first.

    Attributes:
        inputs: (L, n, d).
        tags: (L, n).
    """

    inputs: Tensor
    tags: Tensor

    def __len__(self) -> int:
        return self.tags.shape[1]

    def to(self, device: str) -> "Chains":
        """Copies the sequences to a device."""
        return Chains(self.inputs.to(device), self.tags.to(device))


@dataclass(frozen=True)
class MarkovModel:
    """Distribution of the sequences.

    Attributes:
        embeddings: e (|Y|, d).
        log_transitions: log P (|Y|, |Y|), from row to column.
        noise: σ.
    """

    embeddings: Tensor
    log_transitions: Tensor
    noise: float

    @classmethod
    def draw(cls, num_tags: int, inputs: int, noise: float, stream: torch.Generator) -> "MarkovModel":
        """Draws random embeddings and transitions."""
        embeddings = torch.randn(num_tags, inputs, generator=stream)
        logits = LOGITS * torch.randn(num_tags, num_tags, generator=stream)
        return cls(embeddings, logits.log_softmax(-1), noise)

    def chains(self, count: int, length: int, stream: torch.Generator) -> Chains:
        """Draws `count` sequences of `length` positions."""
        num_tags, inputs = self.embeddings.shape
        probability = self.log_transitions.exp()
        tags = [torch.randint(num_tags, (count,), generator=stream)]
        for _ in range(length - 1):
            tags.append(torch.multinomial(probability[tags[-1]], 1, generator=stream).squeeze(-1))
        true_tags = torch.stack(tags)
        noise = self.noise * torch.randn(length, count, inputs, generator=stream)
        return Chains(self.embeddings[true_tags] + noise, true_tags)

    def emissions(self, inputs: Tensor) -> Tensor:
        """Returns log p(x_j | v) as (L, n, |Y|), up to a constant that is equal for all v."""
        half_norms = self.embeddings.square().sum(-1) / 2
        return (inputs @ self.embeddings.t() - half_norms) / self.noise**2

    def oracle_error(self, chains: Chains) -> float:
        """Returns the fraction of wrong tags of exact decoding with the true parameters."""
        head = ChainCRF(len(self.embeddings))
        with torch.no_grad():
            head.start_transitions.zero_()
            head.end_transitions.zero_()
            head.transitions.copy_(self.log_transitions)
        return hamming_error(head.viterbi(self.emissions(chains.inputs))[0], chains.tags)

    def unary_error(self, chains: Chains, seen: Chains) -> float:
        """Returns the fraction of wrong tags if each is predicted from x_j and the tag frequencies in `seen` alone."""
        counts = torch.bincount(seen.tags.reshape(-1), minlength=len(self.embeddings)) + 1
        return hamming_error((self.emissions(chains.inputs) + counts.log()).argmax(-1), chains.tags)


@dataclass(frozen=True)
class Task:
    """Training, validation and test sequences and their common distribution."""

    model: MarkovModel
    train: Chains
    validation: Chains
    test: Chains

    @classmethod
    def draw(cls, num_tags: int, length: int, inputs: int, noise: float, sizes: tuple[int, int, int], seed: int) -> "Task":
        """Draws independent sequences of one distribution; `sizes` are those of the three sets in order."""
        stream = torch.Generator().manual_seed(seed)
        model = MarkovModel.draw(num_tags, inputs, noise, stream)
        train, validation, test = (model.chains(size, length, stream) for size in sizes)
        return cls(model, train, validation, test)


def hamming_error(prediction: Tensor, true_tags: Tensor) -> float:
    """Returns the fraction of tags that differ."""
    return float((prediction != true_tags).double().mean())
