"""Item (p) of `corrections.py`: Algorithm 1, corrected, trains a small linear tagger, and so do three other methods."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from linearcore import ChainSSVM, LinearCoreChain
from linearcore.proposals import Uniform
from linearcore.proposals.sequences import Neighbours, SequenceProposal, UniformSequences
from linearcore_paper.experiments.convergence.data import Task, hamming_error
from linearcore_paper.experiments.convergence.training import batches

Table = dict[str, Any]
Head = ChainSSVM | LinearCoreChain
#: Maps head, linear layer, inputs, tags and random numbers to a loss.
Loss = Callable[[Any, nn.Linear, Tensor, Tensor, torch.Generator], Tensor]

SETTINGS: Table = {
    "tags": 40,
    "length": 8,
    "inputs": 10,
    "noise": 1.0,
    "chains": [400, 100, 200],
    "batch": 8,
    "steps": 1000,
    "samples": 20,
    "many_samples": 400,
    "rates": [0.03, 0.1, 0.3],
    "seeds": [0, 1, 2],
}


def pairs(inner: SequenceProposal, samples: int) -> Loss:
    """Algorithm 1 with sign and support corrected; y'' is drawn from `inner`."""
    return lambda head, layer, inputs, tags, stream: head.structured(
        layer(inputs), tags, form="sum", inner=inner, num_samples=samples, generator=stream, reduction="mean"
    )


METHODS: dict[str, tuple[type[Head], Loss]] = {
    "ssvm": (ChainSSVM, lambda head, layer, inputs, tags, stream: -head(layer(inputs), tags, reduction="mean")),
    "tags_at_single_positions": (
        LinearCoreChain,
        lambda head, layer, inputs, tags, stream: head.sampled_loss(
            inputs, layer, tags, proposal=Uniform(), num_samples=SETTINGS["samples"], generator=stream, reduction="mean"
        ),
    ),
    "algorithm_1_uniform": (LinearCoreChain, pairs(UniformSequences(), SETTINGS["samples"])),
    "algorithm_1_uniform_many": (LinearCoreChain, pairs(UniformSequences(), SETTINGS["many_samples"])),
    "algorithm_1_neighbours": (LinearCoreChain, pairs(Neighbours(), SETTINGS["samples"])),
    "algorithm_1_neighbours_many": (LinearCoreChain, pairs(Neighbours(), SETTINGS["many_samples"])),
}


def errors(method: str, task: Task, rate: float, seed: int) -> tuple[float, float]:
    """Trains from zero with SGD; returns the errors on validation and test sequences."""
    make, loss = METHODS[method]
    layer, head = nn.Linear(SETTINGS["inputs"], SETTINGS["tags"]), make(SETTINGS["tags"])
    parameters = [*layer.parameters(), *head.parameters()]
    for parameter in parameters:
        nn.init.zeros_(parameter)
    optimizer, stream = torch.optim.SGD(parameters, lr=rate), torch.Generator().manual_seed(seed)
    supply = batches(task.train, SETTINGS["batch"], seed)
    for _ in range(SETTINGS["steps"]):
        loss(head, layer, *next(supply), stream).backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        validation, test = (
            hamming_error(head.viterbi(layer(chains.inputs))[0], chains.tags) for chains in (task.validation, task.test)
        )
    return validation, test


def item_p(seed: int) -> Table:
    """Test errors over seeds, each method with its best learning rate on validation data (of the first seed)."""
    task = Task.draw(
        SETTINGS["tags"], SETTINGS["length"], SETTINGS["inputs"], SETTINGS["noise"], tuple(SETTINGS["chains"]), seed
    )
    rows = {}
    for method in METHODS:
        first = {rate: errors(method, task, rate, SETTINGS["seeds"][0]) for rate in SETTINGS["rates"]}
        rate = min(first, key=lambda rate: first[rate][0])
        tests = [first[rate][1], *(errors(method, task, rate, other)[1] for other in SETTINGS["seeds"][1:])]
        rows[method] = {"rate": rate, "test_errors": tests}
    decoding = {"true_parameters": task.model.oracle_error(task.test)}
    return {"rows": rows, "decoding": decoding | {"without_transitions": task.model.unary_error(task.test, task.train)}}
