"""The loop over epochs and batches: steps, dev, the best epoch, saving, stopping."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from linearcore.runtime import Checkpoint, Interrupt, Progress, ProgressBar, StoppedError, autocast_dtype
from linearcore.tagging._batches import Bucket, batches
from linearcore.tagging._corpus import Corpus
from linearcore.tagging._model import TaggingModel
from linearcore.tagging._settings import Training
from linearcore.tagging._steps import Stepper, make_optimizer, rate_at
from linearcore.tagging._tagger import Tagger
from linearcore.tagging.encoders import BiLSTM

#: Words of a batch when the dev sentences are decoded.
_DECODED = 4096
#: Seconds between two looks at the loss, each of which waits for the device.
_LOOK = 0.5
#: Keeps the epochs of a seed apart.
_ORDER = 1_000_003


@dataclass
class State:
    """How far a run is.

    Attributes:
        epoch: the current epoch, from 0.
        batch: batches of it that are done.
        losses: sum over the words of this epoch of their loss.
        words: words of this epoch so far.
        seconds: spent on training steps in this epoch, for the pace.
        history: a row for each finished epoch.
        best: the accuracy on dev of the best epoch so far, in percent; −1 before the first.
        waited: epochs since.
        weights: those of the best epoch.
    """

    epoch: int = 0
    batch: int = 0
    losses: float = 0.0
    words: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    best: float = -1.0
    waited: int = 0
    weights: dict[str, Tensor] = field(default_factory=dict)


class Run:
    """The loop over epochs and batches."""

    def __init__(
        self,
        tagger: Tagger,
        settings: Training,
        train: Corpus,
        dev: Corpus,
        checkpoint: Checkpoint | None,
        every: float,
    ) -> None:
        self.model, self.settings, self.train, self.dev = tagger.model, settings, train, dev
        self.checkpoint, self.every = checkpoint, every
        self.device = tagger.device
        self.optimizer = make_optimizer(self.model, settings)
        self.state = State()
        # Transformers have as many shapes as sub-words come together; an LSTM has few.
        self.has_few_shapes = self.device.type == "cuda" and settings.kind == BiLSTM.kind
        self.stepper = Stepper(
            self.model,
            self.optimizer,
            settings.clip,
            autocast_dtype(settings.precision, self.device),
            compiled=settings.compiled,
            captured=self.has_few_shapes,
        )
        self.saved_at = time.monotonic()

    def resume(self) -> tuple[int, int] | None:
        """Takes up a saved run, if there is one."""
        return None if self.checkpoint is None else self.checkpoint.resume(self._restore)

    def _restore(self, state: dict[str, Any], tensors: dict[str, dict[str, Tensor]]) -> tuple[int, int]:
        self.state = State(**state, weights=tensors.get("best", {}))
        self.model.load_state_dict(tensors["model"])
        slots: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.get("optimizer", {}).items():
            number, _, slot = name.partition(".")
            slots.setdefault(int(number), {})[slot] = value
        self.optimizer.load_state_dict({"state": slots, "param_groups": self.optimizer.state_dict()["param_groups"]})
        torch.set_rng_state(tensors["random"]["cpu"])
        if self.device.type == "cuda" and "cuda" in tensors["random"]:
            torch.cuda.set_rng_state(tensors["random"]["cuda"], self.device)
        return self.state.epoch + 1, self.state.batch

    def go(self, progress: Progress, interrupt: Interrupt) -> None:
        """Trains until the last epoch, or until dev has not improved for long; leaves the best weights in the model."""
        epochs, state = self.settings.epochs or 1, self.state
        count = len(self._order(0))
        with progress.part("training", total=epochs * count) as part:
            part.advance(state.epoch * count + state.batch)
            while state.epoch < epochs and state.waited < self.settings.patience:
                last_rate = self._epoch(self._order(state.epoch), part, interrupt)
                progress.print(self._finish(last_rate))
                if interrupt:
                    self._stop()
            part.describe("training")
        if state.weights:
            self.model.load_state_dict(state.weights)

    def _order(self, epoch: int) -> list[Bucket]:
        """The batches of an epoch: the same whenever it is asked for, and as many in all epochs."""
        generator = torch.Generator().manual_seed(self.settings.seed * _ORDER + epoch)
        return batches(self.train.lengths, self.settings.tokens or 1, generator)

    def _epoch(self, buckets: Sequence[Bucket], part: ProgressBar, interrupt: Interrupt) -> float:
        """The rest of an epoch; gives the rate of its last step."""
        self.model.train()
        state, steps = self.state, len(buckets) * (self.settings.epochs or 1)
        total, words, started, looked, rate = None, 0, time.perf_counter(), time.perf_counter(), 0.0
        for bucket in buckets[state.batch :]:
            rate = rate_at(state.epoch * len(buckets) + state.batch, steps, self.settings)
            batch = self.train.batch(bucket, full=self.has_few_shapes).to(self.device)
            count = sum(len(self.train.tags[member]) for member in bucket.members)
            loss = self.stepper.step(batch, rate).double() * count
            total = loss if total is None else total + loss
            words, state.batch = words + count, state.batch + 1
            part.advance()
            due = self.checkpoint is not None and time.monotonic() - self.saved_at >= self.every
            if due or interrupt or time.perf_counter() - looked > _LOOK or state.batch == len(buckets):
                self._count(total, words, started)
                total, words, started = None, 0, time.perf_counter()
                looked = started
                part.describe(self._line())
            if due or interrupt:
                self._save()
            if interrupt:
                self._stop()
        return rate

    def _count(self, total: Tensor | None, words: int, started: float) -> None:
        state = self.state
        value = 0.0 if total is None else float(total)
        # Only now, since reading the loss waits for what the device has yet to do.
        seconds = time.perf_counter() - started
        if value != value:
            raise FloatingPointError(
                f"the loss is not a number in epoch {state.epoch + 1}, batch {state.batch}; try a smaller rate"
            )
        state.losses, state.words = state.losses + value, state.words + words
        state.seconds += seconds

    def _line(self) -> str:
        state = self.state
        pace = state.words / max(state.seconds, 1e-9)
        loss = state.losses / max(1, state.words)
        best = "" if state.best < 0 else f"  dev {state.best:.2f} %"
        # Short, so that the bar and its times find room on 80 columns.
        return f"{state.epoch + 1}/{self.settings.epochs}  loss {loss:.3f}{best}  {pace:,.0f} words/s"

    def _finish(self, rate: float) -> str:
        """Looks at dev, keeps the best, and saves; gives a line about it."""
        state, started = self.state, time.perf_counter()
        accuracy = dev_accuracy(self.model, self.dev)
        row = {
            "epoch": state.epoch + 1,
            "loss": state.losses / max(1, state.words),
            "dev_accuracy": accuracy,
            "words_per_second": round(state.words / max(state.seconds, 1e-9), 1),
            "training_seconds": round(state.seconds, 2),
            "dev_seconds": round(time.perf_counter() - started, 2),
            "last_rate": rate,
        }
        is_better = accuracy > state.best
        if is_better:
            state.best, state.waited = accuracy, 0
            state.weights = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        else:
            state.waited += 1
        state.history.append(row)
        state.epoch, state.batch, state.losses, state.words, state.seconds = state.epoch + 1, 0, 0.0, 0, 0.0
        self._save()
        left = (self.settings.epochs or 1) - state.epoch
        return (
            f"epoch {row['epoch']} of {self.settings.epochs}  loss {row['loss']:.4f}  dev {accuracy:.2f} %"
            f"{'' if is_better else f' (best {state.best:.2f})'}  {row['words_per_second']:,.0f} words/s  "
            f"{_minutes(left * (row['training_seconds'] + row['dev_seconds']))} left"
        )

    def _save(self) -> None:
        if self.checkpoint is not None:
            slots = self.optimizer.state_dict()["state"].items()
            random = {"cpu": torch.get_rng_state()}
            if self.device.type == "cuda":
                random["cuda"] = torch.cuda.get_rng_state(self.device)
            self.checkpoint.save(
                {name: value for name, value in vars(self.state).items() if name != "weights"},
                model=self.model.state_dict(),
                best=self.state.weights,
                optimizer={
                    f"{number}.{slot}": value
                    for number, values in slots
                    for slot, value in values.items()
                    if isinstance(value, Tensor)
                },
                random=random,
            )
        self.saved_at = time.monotonic()

    def _stop(self) -> None:
        if self.checkpoint is None:
            raise KeyboardInterrupt
        state = self.state
        raise StoppedError(
            f"stopped in epoch {state.epoch + 1} after {state.batch} batches; the same command goes on from there"
        )


@torch.no_grad()
def dev_accuracy(model: TaggingModel, corpus: Corpus) -> float:
    """Per cent of words with the right tag."""
    model.eval()
    device = model.projection.weight.device
    right = torch.zeros((), dtype=torch.long, device=device)
    for bucket in batches(corpus.lengths, _DECODED):
        batch = corpus.batch(bucket).to(device)
        found = model.decode(batch.mask, batch.inputs)
        right += ((found == batch.tags) & batch.mask).sum()
    return 100.0 * int(right) / max(1, sum(corpus.lengths))


def _minutes(seconds: float) -> str:
    """Minutes and seconds.

    Example:
        >>> _minutes(125.4)
        '2:05'
    """
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
