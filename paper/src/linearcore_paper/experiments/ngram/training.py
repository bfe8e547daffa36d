"""One run of `ngram`: trains a small tagger with one loss, and decodes by Viterbi and for the metric."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from linearcore import ChainCRF, LinearCoreChain
from linearcore.heads import ChainHead
from linearcore.kernels import kbest
from linearcore.structures import AlignedNgram, Cost, Sites, SpanF1, sequence_scores
from linearcore_paper.experiments._numbers import round_values
from linearcore_paper.experiments.ngram.chunks import Sentences, Task, generated_task, noun_phrase_task
from linearcore_paper.experiments.ngram.network import make_network
from linearcore_paper.experiments.ngram.strings import StringEdit, generated_strings, treebank_task

#: Increase it when the code changes the results.
VERSION = 1
ROWS, CANDIDATES = {"chunks": 32, "generated": 32, "strings": 128}, 8
#: Chosen on dev for each run.
TEMPERATURES = (0.25, 0.5, 1.0)
#: Longer training sentences are left out.
MAX_WORDS = 60


@dataclass(frozen=True)
class Metric:
    """A metric: its cost for the names of the tags, and its score in percent from predicted and true tags."""

    label: str
    cost: Callable[[Sequence[str]], Cost]
    score: Callable[[Cost, list[list[int]], list[list[int]]], float]


def _mean_similarity(cost: Cost, predicted: list[list[int]], true: list[list[int]]) -> float:
    """Returns the mean over outputs, which have one length, of 1 − cost, in percent."""
    return 100 * (1 - float(cost.between(torch.tensor(predicted), torch.tensor(true)).double().mean()))


def span_f1(cost: Cost, predicted: list[list[int]], true: list[list[int]]) -> float:
    """Returns the F1 of all spans of the sentences together, in percent: that of one sequence of all of them."""
    outside = cost.names.index("O")  # type: ignore[attr-defined]
    # A tag outside keeps spans of neighbouring sentences apart.
    ours, gold = (torch.tensor([tag for row in rows for tag in (*row, outside)]) for rows in (predicted, true))
    return 100 * (1 - float(cost.between(ours, gold, dtype=torch.float64)))


METRICS = {
    "span-f1": Metric("span F1", SpanF1, span_f1),
    "ngram": Metric("aligned pairs", lambda names: AlignedNgram(2), _mean_similarity),
    "edit": Metric("edit similarity", lambda names: StringEdit(), _mean_similarity),
}
#: Tasks with real data, and tasks with generated data.
REAL_TASKS = {"chunks": noun_phrase_task, "strings": treebank_task}
GENERATED_TASKS = {"generated": generated_task, "strings": generated_strings}

Loss = Callable[[Any, Tensor, Tensor, Cost, float], Tensor]


@dataclass(frozen=True)
class Method:
    """A way to train.

    Attributes:
        label: name in tables and figures.
        head: makes the head.
        loss: the loss of a batch, from head, emissions, tags, cost of the metric and weight.
        uses_metric: whether the loss depends on the metric.
        has_weight: whether the loss has a weight to tune.
    """

    label: str
    head: Callable[..., ChainHead]
    loss: Loss
    uses_metric: bool = False
    has_weight: bool = False


def _own_loss(head: ChainHead, emissions: Tensor, tags: Tensor, *_: object) -> Tensor:
    return head.loss(emissions, tags)


def _candidates(head: LinearCoreChain, emissions: Tensor, tags: Tensor, cost: Cost | str, weight: float) -> Tensor:
    return head.candidate_loss(emissions, tags, cost=cost, weight=weight, candidates=CANDIDATES)


def _hamming_candidates(head: LinearCoreChain, emissions: Tensor, tags: Tensor, cost: Cost, weight: float) -> Tensor:
    return _candidates(head, emissions, tags, "hamming", weight)


def _minimum_risk(head: ChainHead, emissions: Tensor, tags: Tensor, cost: Cost, weight: float) -> Tensor:
    """Returns the negative log-likelihood plus the expected cost over the same candidates and the truth, p ∝ exp h."""
    scores, mask = emissions.transpose(0, 1), tags >= 0
    chain, sites = head.chain(scores), Sites.of(mask.t().contiguous())
    sequences = torch.cat([tags.t().unsqueeze(0), kbest(scores, chain, sites, CANDIDATES)[0]]).clamp(min=0)
    # The truth is a candidate once.
    is_repeated = (sequences == sequences[0]).all(1) & (torch.arange(len(sequences)) > 0).unsqueeze(1)
    probabilities = sequence_scores(scores, chain, sequences, sites).masked_fill(is_repeated, -math.inf).softmax(0)
    costs = cost.between(sequences.transpose(1, 2), tags.clamp(min=0), mask)
    return head.loss(emissions, tags) + weight * (probabilities * costs).sum() / mask.sum()


def _no_transitions(num_tags: int, **options: Any) -> ChainHead:
    """Returns a CRF whose transitions stay 0: its loss is token cross-entropy."""
    head = ChainCRF(num_tags, **options)
    for parameter in head.parameters():
        nn.init.zeros_(parameter.requires_grad_(False))
    return head


METHODS = {
    "ce": Method("token cross-entropy", _no_transitions, _own_loss),
    "crf": Method("ChainCRF", ChainCRF, _own_loss),
    "lc": Method("LinearCoreChain", LinearCoreChain, _own_loss),
    "lc-hamming": Method("LC, candidates, Hamming", LinearCoreChain, _hamming_candidates, has_weight=True),
    "lc-metric": Method("LC, candidates, metric", LinearCoreChain, _candidates, uses_metric=True, has_weight=True),
    "risk": Method("minimum-risk training", ChainCRF, _minimum_risk, uses_metric=True, has_weight=True),
}


@dataclass(frozen=True)
class Plan:
    """Everything that determines a run.

    Attributes:
        task: "chunks", "strings" or "generated".
        method: key of `METHODS`.
        metrics: keys of `METRICS` to measure; a method that uses the metric trains for the first one.
        seed: seed of the network, the batches and generated data.
        steps: number of steps of Adam.
        weight: weight of the second term of the loss.
        sentences: training sentences of generated tasks.
    """

    task: str
    method: str
    metrics: tuple[str, ...]
    seed: int
    steps: int
    weight: float = 0.0
    sentences: int = 400

    def to_json(self) -> dict[str, Any]:
        """Returns the settings of the record, without the seed."""
        settings = asdict(self) | {"version": VERSION, "temperatures": TEMPERATURES}
        del settings["seed"]
        return settings


def read_task(plan: Plan, folder: Path | None) -> Task:
    """Returns the data of a run."""
    if folder is not None and plan.task in REAL_TASKS:
        return REAL_TASKS[plan.task](folder)
    return _generated(plan.task, plan.seed, plan.sentences)


@lru_cache(maxsize=1)
def _generated(task: str, seed: int, sentences: int) -> Task:
    return GENERATED_TASKS[task](seed, sentences)


def train_run(plan: Plan, folder: Path | None, part: str) -> dict[str, Any]:
    """Trains, chooses the temperature on dev, and returns scores on `part` and milliseconds per sentence, by metric."""
    task, method = read_task(plan, folder), METHODS[plan.method]
    generator = torch.Generator().manual_seed(plan.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        network, head = make_network(task), method.head(len(task.names), batch_first=True)
        start = time.perf_counter()
        _train(plan, task, network, head, method, generator)
        seconds = time.perf_counter() - start
    network.eval()
    results = {name: _evaluate(task, network, head, METRICS[name], part) for name in plan.metrics}
    return {"metrics": results, "ms_per_step": round_values(1000 * seconds / plan.steps, 4)}


def _train(plan: Plan, task: Task, network: nn.Module, head: ChainHead, method: Method, generator: torch.Generator) -> None:
    train, rows = task.parts["train"], ROWS[plan.task]
    usable = ((train.tags >= 0).sum(1) <= MAX_WORDS).nonzero().squeeze(1)
    cost = METRICS[plan.metrics[0]].cost(task.names)
    rate = 0.01 if task.sizes else 0.05
    parameters = [p for p in (*network.parameters(), *head.parameters()) if p.requires_grad]
    optimizer = torch.optim.Adam(parameters, lr=rate)
    order = usable[:0]
    for step in range(plan.steps):
        if len(order) < rows:
            order = usable[torch.randperm(len(usable), generator=generator)]
        batch, order = train.rows(order[:rows]), order[rows:]
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - step / plan.steps)
        optimizer.zero_grad()
        method.loss(head, network(batch.inputs), batch.tags, cost, plan.weight).backward()
        optimizer.step()


@torch.no_grad()
def _evaluate(task: Task, network: nn.Module, head: ChainHead, metric: Metric, part: str) -> dict[str, float]:
    cost = metric.cost(task.names)

    def score(sentences: Sentences, **options: Any) -> tuple[float, float]:
        emissions, mask = network(sentences.inputs), sentences.tags >= 0
        start = time.perf_counter()
        predicted = head.decode(emissions, mask, **options)
        seconds = time.perf_counter() - start
        true = [[tag for tag in row if tag >= 0] for row in sentences.tags.tolist()]
        return metric.score(cost, predicted, true), 1000 * seconds / len(sentences)

    dev = {each: score(task.parts["dev"], cost=cost, temperature=each)[0] for each in TEMPERATURES}
    temperature = max(dev, key=lambda each: dev[each])
    viterbi, viterbi_ms = score(task.parts[part])
    risk, risk_ms = score(task.parts[part], cost=cost, temperature=temperature)
    found = {"viterbi": viterbi, "viterbi_ms": viterbi_ms, "risk": risk, "risk_ms": risk_ms, "temperature": temperature}
    return {key: round_values(value, 6) for key, value in found.items()}
