"""The loop over epochs and batches: steps, dev, the best epoch, saving, stopping."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from linearcore.runtime import Interrupt, Part, Progress, StoppedError
from linearcore.tagging._batches import Bucket, batches
from linearcore.tagging._checkpoint import State, load_checkpoint, save_checkpoint
from linearcore.tagging._corpus import Corpus
from linearcore.tagging._model import TaggingModel
from linearcore.tagging._settings import Training
from linearcore.tagging._steps import GraphStepper, Stepper, make_optimizer, rate_at
from linearcore.tagging._tagger import Tagger
from linearcore.tagging.encoders import BiLSTM

#: Words of a batch when the dev sentences are decoded.
_DECODED = 4096
#: Seconds between two looks at the loss, each of which waits for the device.
_LOOK = 0.5
#: Keeps the epochs of a seed apart.
_ORDER = 1_000_003


class Run:
    """The loop over epochs and batches."""

    def __init__(
        self,
        tagger: Tagger,
        settings: Training,
        train: Corpus,
        dev: Corpus,
        out: Path | None,
        key: dict[str, Any],
        every: float,
    ) -> None:
        self.model, self.settings, self.train, self.dev = tagger.model, settings, train, dev
        self.out, self.key, self.every = out, key, every
        self.device = tagger.device
        self.optimizer = make_optimizer(self.model, settings)
        self.state = State()
        dtype = _autocast(settings.precision, self.device)
        # Transformers have as many shapes as sub-words come together; an LSTM has few.
        self.is_recorded = self.device.type == "cuda" and settings.kind == BiLSTM.kind
        kind = GraphStepper if self.is_recorded else Stepper
        self.stepper = kind(self.model, self.optimizer, settings.clip, dtype, settings.compiled)
        self.saved_at = time.monotonic()

    def resume(self) -> tuple[int, int] | None:
        """Takes up a saved run, if there is one."""
        if self.out is None:
            return None
        state = load_checkpoint(self.out, self.key, self.model, self.optimizer)
        if state is None:
            return None
        self.state = state
        return state.epoch + 1, state.batch

    def go(self, progress: Progress, interrupt: Interrupt) -> None:
        """Trains until the last epoch, or until dev has not improved for long; leaves the best weights in the model."""
        epochs, state = self.settings.epochs or 1, self.state
        count = len(self._order(0))
        with progress.part("training", total=epochs * count) as part:
            part.advance(state.epoch * count + state.batch)
            while state.epoch < epochs and state.waited < self.settings.patience:
                last_rate = self._epoch(self._order(state.epoch), part, interrupt)
                progress.say(self._finish(last_rate))
                if interrupt:
                    self._stop()
            part.describe("training")
        if state.weights:
            self.model.load_state_dict(state.weights)

    def _order(self, epoch: int) -> list[Bucket]:
        """The batches of an epoch: the same whenever it is asked for, and as many in all epochs."""
        generator = torch.Generator().manual_seed(self.settings.seed * _ORDER + epoch)
        return batches(self.train.lengths, self.settings.tokens or 1, generator)

    def _epoch(self, buckets: Sequence[Bucket], part: Part, interrupt: Interrupt) -> float:
        """The rest of an epoch; gives the rate of its last step."""
        self.model.train()
        state, steps = self.state, len(buckets) * (self.settings.epochs or 1)
        total, words, started, looked, rate = None, 0, time.perf_counter(), time.perf_counter(), 0.0
        for bucket in buckets[state.batch :]:
            rate = rate_at(state.epoch * len(buckets) + state.batch, steps, self.settings)
            batch = self.train.batch(bucket, full=self.is_recorded).to(self.device)
            count = sum(len(self.train.tags[member]) for member in bucket.members)
            loss = self.stepper.step(batch, rate).double() * count
            total = loss if total is None else total + loss
            words, state.batch = words + count, state.batch + 1
            part.advance()
            due = self.out is not None and time.monotonic() - self.saved_at >= self.every
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
        if self.out is not None:
            save_checkpoint(self.out, self.key, self.state, self.model, self.optimizer)
        self.saved_at = time.monotonic()

    def _stop(self) -> None:
        if self.out is None:
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


def _autocast(precision: str, device: torch.device) -> torch.dtype | None:
    if precision == "auto":
        precision = "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"
    return torch.bfloat16 if precision == "bf16" else None


def _minutes(seconds: float) -> str:
    """Minutes and seconds.

    Example:
        >>> _minutes(125.4)
        '2:05'
    """
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
