"""The sampled losses that `estimators.py` measures, and the exact gradients that they estimate."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

import linearcore as lc
from _proposal_methods import FLATTENED, HARD_UNIFORM, HARD_UNIGRAM, IN_BATCH, MIXTURE, PROPOSALS, UNIFORM
from linearcore.proposals.sequences import Neighbours, UniformSequences
from linearcore.structured import RunningSlope, controlled_estimate, log_similarity_mass, mean_score, sequence_scores
from linearcore.structures import Hamming, Sites

LOCAL = (UNIFORM, FLATTENED, MIXTURE, HARD_UNIFORM, HARD_UNIGRAM, IN_BATCH)
#: Objectives over whole sequences; each has its own exact gradient.
PAIRS, NEAR_PAIRS, CENTERED, TRUTH = "pairs", "pairs of neighbours", "centered", "truth against all"


class Model(NamedTuple):
    """A linear tagger, and a batch of sequences.

    Attributes:
        layer: linear layer from inputs to emissions.
        heads: one head per form, all with the same parameters.
        inputs, tags: (L, B, d) and (L, B).
        counts: counts of the tags in the training sequences.
    """

    layer: nn.Linear
    heads: dict[str, lc.LinearCoreChain]
    inputs: Tensor
    tags: Tensor
    counts: Tensor

    def double(self) -> "Model":
        """Returns a copy in float64."""
        layer, heads = copy.deepcopy(self.layer).double(), copy.deepcopy(self.heads)
        return Model(layer, {form: head.double() for form, head in heads.items()}, self.inputs.double(), *self[3:])

    def parameters(self, form: str) -> list[nn.Parameter]:
        """Returns the parameters, in the same order for every form."""
        return [*self.layer.parameters(), *self.heads[form].parameters()]

    def gradient(self, loss: Tensor, form: str) -> Tensor:
        """Computes the gradient as one vector."""
        return torch.cat([part.reshape(-1) for part in torch.autograd.grad(loss, self.parameters(form))])

    def exact(self, form: str) -> Tensor:
        """Computes the loss over all candidates."""
        return -self.heads[form](self.layer(self.inputs), self.tags, reduction="token_mean")


#: Function from (model, generator, sparse gradients) to an estimate of a loss.
Loss = Callable[[Model, torch.Generator, bool], Tensor]


@dataclass(frozen=True)
class Estimator:
    """A sampled loss.

    Attributes:
        name: name in the tables.
        form: form of the head; for whole sequences only the scores of the head are used.
        objective: the estimated objective: a form over all candidates, or an objective over whole sequences.
        samples: number of samples K.
        loss: function that computes it.
        log_factor: log of the ratio of the expected gradient to the gradient of the objective.
    """

    name: str
    form: str
    objective: str
    samples: int
    loss: Loss
    log_factor: float = 0.0

    @property
    def is_local(self) -> bool:
        """Whether candidates are single-position changes."""
        return self.objective == self.form


def local(draws: str, form: str, samples: int, shared: bool, model: Model) -> Estimator:
    """Makes estimators with `LinearCoreChain.sampled_loss`; hard competitors are listed for the current model."""
    proposal = PROPOSALS[draws](model.counts, model.layer.weight.float(), shared)

    def loss(model: Model, stream: torch.Generator, sparse: bool) -> Tensor:
        options = {"proposal": proposal, "num_samples": samples, "reduction": "token_mean", "generator": stream}
        return model.heads[form].sampled_loss(model.inputs, model.layer, model.tags, sparse=sparse, **options)

    return Estimator(draws + ("" if shared else ", own draws"), form, form, samples, loss)


def structured(name: str, objective: str, samples: int, log_factor: float = 0.0, /, **options: object) -> Estimator:
    """Makes estimators with `LinearCoreChain.structured`."""

    def loss(model: Model, stream: torch.Generator, sparse: bool) -> Tensor:
        head, emissions = model.heads["logodds"], model.layer(model.inputs)
        return head.structured(emissions, model.tags, num_samples=samples, reduction="mean", generator=stream, **options)

    return Estimator(name, "logodds", objective, samples, loss, log_factor)


def around_truth(name: str, samples: int, slope: float | RunningSlope) -> Estimator:
    """The mean of φ(h(y) − h(y')) over all y' with the control variate −α m; α = 0 is the simple average."""

    def loss(model: Model, stream: torch.Generator, sparse: bool) -> Tensor:
        head, emissions, tags = model.heads["logodds"], model.layer(model.inputs), model.tags
        sites, chain = Sites.of(torch.ones_like(tags, dtype=torch.bool), is_full=True), head.chain(emissions)
        drawn = UniformSequences().sample(tags, sites, head.num_tags, samples, stream)
        truth = sequence_scores(emissions, chain, tags.unsqueeze(0), sites).squeeze(0)
        scores = sequence_scores(emissions, chain, drawn, sites)
        alpha = slope.value if isinstance(slope, RunningSlope) else slope
        found = controlled_estimate(head.surrogate, truth, scores, mean_score(emissions, chain, sites), alpha)
        if isinstance(slope, RunningSlope):
            slope.update(head.surrogate, (truth - scores).detach())
        return found.mean()

    return Estimator(name, "logodds", TRUTH, samples, loss)


def settled(model: Model, stream: torch.Generator) -> RunningSlope:
    """Computes a running estimate of α after its warm-up."""
    slope = RunningSlope()
    with torch.no_grad():
        for _ in range(100):
            around_truth("", 16, slope).loss(model, stream, False)
    return slope


def over_sequences(samples: int, model: Model, stream: torch.Generator) -> list[Estimator]:
    """Makes all estimators that sample whole sequences."""
    sites = Sites.of(torch.ones_like(model.tags, dtype=torch.bool), is_full=True)
    num_tags = model.heads["logodds"].num_tags
    mass = float(log_similarity_mass(model.tags, sites, num_tags, cost=Hamming())[0])
    # log(M − 1) equals log M in float64.
    log_num_competitors = len(model.tags) * torch.log(torch.tensor(float(num_tags), dtype=torch.float64)).item()
    return [
        structured("pairs, raw", PAIRS, samples, mass + log_num_competitors, objective="raw"),
        structured("pairs, normalised", PAIRS, samples, objective="normalised"),
        structured("pairs, self-normalised", PAIRS, samples, objective="self-normalised"),
        structured("pairs of neighbours, normalised", NEAR_PAIRS, samples, inner=Neighbours()),
        structured("centered, normalised", CENTERED, samples, form="centered", objective="normalised"),
        structured("centered, self-normalised", CENTERED, samples, form="centered", objective="self-normalised"),
        around_truth("truth against uniform", samples, 0.0),
        around_truth("the same, control variate, α = 1", samples, 1.0),
        around_truth("the same, control variate, running α", samples, settled(model, stream)),
    ]


def long_averages(samples: int) -> dict[str, Estimator]:
    """Makes long averages in place of exact gradients over whole sequences, which have no closed form for chains."""
    return {
        PAIRS: structured("", PAIRS, samples),
        NEAR_PAIRS: structured("", NEAR_PAIRS, samples, inner=Neighbours()),
        CENTERED: structured("", CENTERED, samples, form="centered"),
        TRUTH: around_truth("", samples, 0.0),
    }


def estimators(sizes: tuple[int, ...], model: Model, stream: torch.Generator) -> list[Estimator]:
    """Makes all estimators."""
    found = [
        local(draws, form, samples, shared, model)
        for form in ("logodds", "pairwise")
        for draws in LOCAL
        for shared in (True, False)
        for samples in sizes
        if shared or draws != IN_BATCH  # The tags of the batch are always shared.
    ]
    return found + [each for samples in sizes for each in over_sequences(samples, model, stream)]
