"""One run of `proposals.py`: trains a tagger for a number of seconds with one method, learning rate and seed, and decodes.

The time includes making batches, sampling, lists of hard competitors, gradients and updates. The learning rate decreases
linearly to zero over the *time*, so that methods with slow steps also complete the schedule.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import linearcore as lc
from _proposal_methods import ALL, CRF, STRUCTURED, TOKEN, Draws, Method
from _tagger import Corpus, Recipe, Tagger, encode, padded, training_batches, turkish
from linearcore.optim import SparseAdamW
from linearcore_paper.experiments.convergence.data import Chains, Task
from linearcore_paper.experiments.convergence.training import batches as chain_batches

#: Inputs or word forms, tags, and the mask, if there is padding.
Batch = tuple[Tensor, Tensor, Tensor | None]
DECODED = 25  # sequences per decoding batch
RECIPE = Recipe()


@dataclass(frozen=True)
class Size:
    """A dataset and its training time.

    Attributes:
        tags: |Y| of generated sequences; 0 for Turkish, which has its own tags.
        seconds: training time.
        rates: the grid of learning rates.
        batch: sequences per step; not used for Turkish, see `recipe.tokens`.
        noise, inputs, chains: of generated data: σ, d, and the numbers of training, dev and test sequences.
        recipe: network of the Turkish tagger.
    """

    tags: int
    seconds: float
    rates: tuple[float, ...]
    batch: int = 32
    noise: float = 1.2
    inputs: int = 20
    chains: tuple[int, int, int] = (1000, 300, 300)
    recipe: Recipe = RECIPE


@dataclass(frozen=True)
class Run:
    """All settings of a run, which also identify its saved result."""

    size: Size
    method: Method
    rate: float
    seed: int
    is_final: bool  # also decodes the test set


class Network(NamedTuple):
    """A tagger.

    Attributes:
        encode: function from inputs (or word forms) and mask to hidden states.
        encoder: modules of the encoder, none for generated sequences.
        out: projection to the tags.
        head: chain head.
    """

    encode: Callable[[Tensor, Tensor | None], Tensor]
    encoder: list[nn.Module]
    out: nn.Linear
    head: nn.Module

    def emissions(self, inputs: Tensor, mask: Tensor | None) -> Tensor:
        """Computes the scores of all tags."""
        return self.out(self.encode(inputs, mask))


# ---- the sets ------------------------------------------------------------------------------------------------------------


class GeneratedChains:
    """Generated sequences, and a linear tagger with dense transitions and zero initial weights."""

    def __init__(self, size: Size) -> None:
        self.size, self.num_tags = size, size.tags
        self.task = Task.draw(size.tags, 20, size.inputs, size.noise, size.chains, seed=0)
        self.counts = torch.bincount(self.task.train.tags.flatten(), minlength=size.tags)

    def network(self, method: Method) -> Network:
        """Makes an untrained tagger."""
        out = nn.Linear(self.size.inputs, self.num_tags)
        head = (
            lc.ChainCRF(self.num_tags)
            if method.loss == CRF
            else lc.LinearCoreChain(self.num_tags, form=method.form, normalize=False)
        )
        for parameter in (*out.parameters(), *head.parameters()):
            nn.init.zeros_(parameter)
        return Network(lambda inputs, mask: inputs, [], out, head)

    def batches(self, seed: int) -> Iterator[Batch]:
        """Yields training batches without end."""
        for inputs, tags in chain_batches(self.task.train, self.size.batch, seed):
            yield inputs, tags, None

    def part(self, name: str) -> Iterator[Batch]:
        """Returns the batches of "dev" or "test"."""
        chains: Chains = self.task.validation if name == "dev" else self.task.test
        parts = (part.split(DECODED, 1) for part in (chains.inputs, chains.tags))
        for inputs, tags in zip(*parts, strict=True):
            yield inputs, tags, None

    def describe(self) -> dict[str, Any]:
        """Returns the description of the dataset for the result file."""
        errors = {"oracle_error": self.task.model.oracle_error(self.task.test)}
        errors["unary_error"] = self.task.model.unary_error(self.task.test, self.task.train)
        return {"num_tags": self.num_tags} | {key: round(100 * value, 3) for key, value in errors.items()}


class Turkish:
    """The Turkish Web Treebank and the window tagger with low-rank transitions."""

    def __init__(self, size: Size, folder: Path | None) -> None:
        self.size = size
        words = turkish(folder)
        self.corpus: Corpus = encode(words, size.recipe.buckets)
        self.num_tags = self.corpus.num_tags
        self.all_tags = len({tag for part in words.values() for sentence in part for _, tag in sentence})
        gold = torch.cat([tags for _, tags in self.corpus.parts["train"]])
        self.counts = torch.bincount(gold, minlength=self.num_tags)

    def network(self, method: Method) -> Network:
        """Makes an untrained tagger. Its embedding has sparse gradients for every method."""
        tagger = Tagger(self.corpus, self.size.recipe, sparse=True, form=method.form)
        if method.loss == TOKEN:  # Without transitions, exact decoding is the argmax of the emissions.
            for parameter in tagger.chain.parameters():
                nn.init.zeros_(parameter)
        return Network(tagger.states, [tagger.embedding, tagger.hidden], tagger.out, tagger.chain)

    def batches(self, seed: int) -> Iterator[Batch]:
        """Yields training batches without end."""
        for sentences in training_batches(self.corpus, self.size.recipe, torch.Generator().manual_seed(seed)):
            yield padded(sentences)

    def part(self, name: str) -> Iterator[Batch]:
        """Returns the batches of "dev" or "test", sorted by length."""
        ordered = sorted(self.corpus.parts[name], key=lambda sentence: len(sentence[0]))
        for begin in range(0, len(ordered), DECODED):
            yield padded(ordered[begin : begin + DECODED])

    def describe(self) -> dict[str, Any]:
        """Returns the description of the dataset for the result file."""
        sizes = {f"{name}_tokens": sum(len(tags) for _, tags in part) for name, part in self.corpus.parts.items()}
        unknown = sum(int((tags < 0).sum()) for _, tags in self.corpus.parts["test"])
        return {
            "num_tags": self.num_tags,
            "tags_of_all_parts": self.all_tags,
            "test_tokens_of_unknown_tags": unknown,
        } | sizes


@cache
def load(size: Size, folder: Path | None) -> GeneratedChains | Turkish:
    """Loads the dataset, once per process."""
    return GeneratedChains(size) if size.tags else Turkish(size, folder)


# ---- training ------------------------------------------------------------------------------------------------------------


def optimizers(network: Network, method: Method, rate: float) -> list[torch.optim.Optimizer]:
    """Makes Adam for dense gradients and SparseAdamW without weight decay for sparse ones, with the same learning rate."""
    layers = [*network.encoder, network.out, network.head]
    is_sparse = {layer: isinstance(layer, nn.EmbeddingBag) for layer in layers}
    is_sparse |= {network.out: method.is_sparse, network.head: method.is_sparse}
    dense, sparse = (
        [parameter for layer in layers if is_sparse[layer] is wanted for parameter in layer.parameters()]
        for wanted in (False, True)
    )
    found: list[torch.optim.Optimizer] = []
    if dense:
        found.append(torch.optim.Adam(dense, rate, fused=True))
    if sparse:
        found.append(SparseAdamW(sparse, rate, weight_decay=0.0))
    return found


def objective(network: Network, method: Method, draws: Draws | None, batch: Batch, stream: torch.Generator) -> Tensor:
    """Computes the loss of a batch, a mean over tokens."""
    inputs, tags, mask = batch
    head, hidden = network.head, network.encode(inputs, mask)
    if draws is not None:
        options = {"proposal": draws.proposal(), "num_samples": method.samples, "generator": stream}
        return head.sampled_loss(hidden, network.out, tags, mask, sparse=True, **options)
    emissions = network.out(hidden)
    if method.loss == TOKEN:
        return F.cross_entropy(emissions.flatten(0, 1), tags.flatten())
    if method.loss == STRUCTURED:
        return head.structured(emissions, tags, mask, num_samples=method.samples, reduction="mean", generator=stream)
    assert method.loss in (ALL, CRF)
    return -head(emissions, tags, mask, reduction="token_mean")


def train(network: Network, task: GeneratedChains | Turkish, run: Run) -> tuple[int, float]:
    """Trains until the time is over; returns the number of steps and the seconds."""
    stream = torch.Generator().manual_seed(run.seed)
    supply, steppers = task.batches(run.seed), optimizers(network, run.method, run.rate)
    steps, budget, start = 0, run.size.seconds, time.perf_counter()
    draws = Draws(run.method, task.counts, network.out.weight) if run.method.is_sparse else None
    while (passed := time.perf_counter() - start) < budget:
        for stepper in steppers:
            for group in stepper.param_groups:
                group["lr"] = run.rate * (1 - passed / budget)
        loss = objective(network, run.method, draws, next(supply), stream)
        loss.backward()
        for stepper in steppers:
            stepper.step()
            stepper.zero_grad()
        steps += 1
    return steps, time.perf_counter() - start


@torch.no_grad()
def error(network: Network, batches: Iterator[Batch]) -> float:
    """Returns the error in per cent of exact decoding; 100 for a tagger with non-finite parameters."""
    parameters = (parameter for layer in (network.out, network.head) for parameter in layer.parameters())
    if not all(bool(parameter.isfinite().all()) for parameter in parameters):
        return 100.0
    wrong = total = 0
    for inputs, tags, mask in batches:
        counts = torch.ones_like(tags, dtype=torch.bool) if mask is None else mask
        found, _ = network.head.viterbi(network.emissions(inputs, mask), mask)
        wrong, total = wrong + int(((found != tags) & counts).sum()), total + int(counts.sum())
    return 100 * wrong / total


def perform(run: Run, folder: Path | None) -> dict[str, Any]:
    """Trains and decodes; returns the results as JSON values."""
    task = load(run.size, folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        network = task.network(run.method)
    steps, seconds = train(network, task, run)
    found = {"steps": steps, "seconds": round(seconds, 3), "dev": round(error(network, task.part("dev")), 4)}
    return found | ({"test": round(error(network, task.part("test")), 4)} if run.is_final else {})
