"""Training loop: optimizer steps, validation, best weights, checkpoints and interruption."""

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
from linearcore.tagging._steps import Stepper, lr_at, make_optimizer
from linearcore.tagging._tagger import Tagger

#: Batch size in words when the validation sentences are decoded.
_DECODE_BATCH_TOKENS = 4096
#: Seconds between two readings of the loss; each synchronises with the GPU.
_LOSS_READ_INTERVAL_S = 0.5
#: Prime multiplier of the seed, so different seeds give different orders in every epoch.
_SEED_STRIDE = 1_000_003


@dataclass
class State:
    """Progress of a training run. The field names are also the keys in saved checkpoints.

    Attributes:
        epoch: the current epoch, from 0.
        batch: number of finished batches of the epoch.
        losses: sum of the losses of the words since the last validation.
        words: number of these words.
        seconds: time spent on training steps since the last validation.
        history: one row per validation.
        best: best validation accuracy in percent; −1 before the first validation.
        waited: epochs since the best validation accuracy.
        weights: weights with the best validation accuracy.
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


class TrainingLoop:
    """Trains a tagger over epochs and batches, with early stopping and checkpoints.

    Args:
        tagger: the tagger to train.
        settings: training settings with all defaults filled in.
        train: training sentences.
        dev: validation sentences.
        checkpoint: where to save the state; None saves nothing.
        save_interval_s: seconds between two checkpoints within an epoch.
    """

    def __init__(
        self,
        tagger: Tagger,
        settings: Training,
        train: Corpus,
        dev: Corpus,
        checkpoint: Checkpoint | None,
        save_interval_s: float,
    ) -> None:
        self.model, self.settings, self.train, self.dev = tagger.model, settings, train, dev
        self.checkpoint, self.save_interval_s = checkpoint, save_interval_s
        self.device = tagger.device
        self.optimizer = make_optimizer(self.model, settings)
        self.state = State()
        # The candidates of a cost are searched with operations that cannot be captured.
        can_capture = self.model.encoder.has_few_shapes and self.model.cost is None
        self.uses_cuda_graphs = self.device.type == "cuda" and can_capture
        #: Number of epochs from one validation to the next: with many validation and few training sentences, decoding them
        #: after every epoch would take most of the time.
        self.validation_interval = max(1, round(sum(dev.lengths) / max(1, sum(train.lengths))))
        self.stepper = Stepper(
            self.model,
            self.optimizer,
            settings.clip,
            autocast_dtype(settings.precision, self.device),
            compiled=settings.compiled,
            captured=self.uses_cuda_graphs,
        )
        self.saved_at = time.monotonic()

    def resume(self) -> tuple[int, int] | None:
        """Resumes from a checkpoint; returns its epoch, from 1, and number of batches, or None if there is no checkpoint."""
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

    def describe(self) -> str:
        """Returns a line that says how long training may take."""
        settings, num_batches = self.settings, len(self._epoch_batches(0))
        return (
            f"{sum(self.train.lengths):,} training words, batches of {settings.batch_tokens} words, "
            f"{num_batches:,} steps per epoch; epochs: at most {settings.epochs}, patience {settings.patience}"
        )

    def train_epochs(self, progress: Progress, interrupt: Interrupt) -> None:
        """Trains until the last epoch or early stopping, and loads the best weights into the model."""
        epochs, patience, state = self.settings.epochs or 1, self.settings.patience or 1, self.state
        num_batches = len(self._epoch_batches(0))
        with progress.part("training", total=epochs * num_batches) as bar:
            bar.advance(state.epoch * num_batches + state.batch)
            while state.epoch < epochs and state.waited < patience:
                last_lr = self._train_epoch(self._epoch_batches(state.epoch), bar, interrupt)
                self._end_epoch(last_lr, progress)
                if interrupt:
                    self._raise_stopped()
            bar.describe("training")
        if state.weights:
            self.model.load_state_dict(state.weights)
        self.model.eval()  # Also if a resumed run had no epoch left.

    def _epoch_batches(self, epoch: int) -> list[Bucket]:
        """Returns the batches of an epoch: deterministic, and the same number in every epoch."""
        generator = torch.Generator().manual_seed(self.settings.seed * _SEED_STRIDE + epoch)
        return batches(self.train.lengths, self.settings.batch_tokens or 1, generator)

    def _train_epoch(self, buckets: Sequence[Bucket], bar: ProgressBar, interrupt: Interrupt) -> float:
        """Trains on the remaining batches of an epoch; returns the last learning rate."""
        self.model.train()
        state, steps = self.state, len(buckets) * (self.settings.epochs or 1)
        total, words, started, last_read, lr = None, 0, time.perf_counter(), time.perf_counter(), 0.0
        for bucket in buckets[state.batch :]:
            lr = lr_at(state.epoch * len(buckets) + state.batch, steps, self.settings)
            batch = self.train.batch(bucket, full=self.uses_cuda_graphs).to(self.device)
            num_words = sum(len(self.train.tags[member]) for member in bucket.members)
            loss = self.stepper.step(batch, lr).double() * num_words
            total = loss if total is None else total + loss
            words, state.batch = words + num_words, state.batch + 1
            bar.advance()
            save_due = self.checkpoint is not None and time.monotonic() - self.saved_at >= self.save_interval_s
            read_due = time.perf_counter() - last_read > _LOSS_READ_INTERVAL_S
            if save_due or read_due or interrupt or state.batch == len(buckets):
                self._update_statistics(total, words, started)
                total, words, started = None, 0, time.perf_counter()
                last_read = started
                bar.describe(self._progress_text())
            if save_due or interrupt:
                self._save()
            if interrupt:
                self._raise_stopped()
        return lr

    def _update_statistics(self, total: Tensor | None, words: int, started: float) -> None:
        state = self.state
        value = 0.0 if total is None else float(total)
        # Measured after float(total), which synchronises with the GPU.
        seconds = time.perf_counter() - started
        if value != value:
            raise FloatingPointError(
                f"the loss is NaN in epoch {state.epoch + 1}, batch {state.batch}; use a smaller learning rate (--lr)"
            )
        state.losses, state.words = state.losses + value, state.words + words
        state.seconds += seconds

    def _progress_text(self) -> str:
        state = self.state
        words_per_second = state.words / max(state.seconds, 1e-9)
        loss = state.losses / max(1, state.words)
        best = "" if state.best < 0 else f"  dev {state.best:.2f} %"
        # Short, so the progress bar fits into 80 columns.
        return f"{state.epoch + 1}/{self.settings.epochs}  loss {loss:.3f}{best}  {words_per_second:,.0f} words/s"

    def _end_epoch(self, lr: float, progress: Progress) -> None:
        """Ends an epoch, with a validation if one is due, and saves a checkpoint."""
        state = self.state
        state.epoch, state.batch = state.epoch + 1, 0
        if state.epoch % self.validation_interval == 0 or state.epoch == self.settings.epochs:
            progress.print(self._validate(lr))
        self._save()

    def _validate(self, lr: float) -> str:
        """Evaluates on the validation sentences, updates the best weights, and returns a log line."""
        state, started = self.state, time.perf_counter()
        accuracy = dev_accuracy(self.model, self.dev)
        row = {
            "epoch": state.epoch,
            "steps": state.epoch * len(self._epoch_batches(0)),
            "loss": state.losses / max(1, state.words),
            "dev_accuracy": accuracy,
            "words_per_second": round(state.words / max(state.seconds, 1e-9), 1),
            "training_seconds": round(state.seconds, 2),
            "dev_seconds": round(time.perf_counter() - started, 2),
            "last_rate": lr,
        }
        is_better, is_best = accuracy > state.best, accuracy >= state.best
        epochs_since_last = state.epoch - (state.history[-1]["epoch"] if state.history else 0)
        # Of equally good weights the later ones are kept: they were trained longer, with smaller steps at the end.
        if is_best:
            state.best = accuracy
            state.weights = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        state.waited = 0 if is_better else state.waited + epochs_since_last
        state.history.append(row)
        state.losses, state.words, state.seconds = 0.0, 0, 0.0
        epochs_left = (self.settings.epochs or 1) - state.epoch
        seconds_left = epochs_left / epochs_since_last * (row["training_seconds"] + row["dev_seconds"])
        return (
            f"epoch {row['epoch']} of {self.settings.epochs}  loss {row['loss']:.4f}  dev {accuracy:.2f} %"
            f"{'' if is_best else f' (best {state.best:.2f})'}  {row['words_per_second']:,.0f} words/s  "
            f"{_format_minutes(seconds_left)} left"
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

    def _raise_stopped(self) -> None:
        if self.checkpoint is None:
            raise KeyboardInterrupt
        state = self.state
        raise StoppedError(
            f"stopped in epoch {state.epoch + 1} after {state.batch} batches; "
            "run the same command again to resume (without --fresh)"
        )


@torch.no_grad()
def dev_accuracy(model: TaggingModel, corpus: Corpus) -> float:
    """Returns the accuracy on a corpus, in percent."""
    model.eval()
    device = model.device
    num_correct = torch.zeros((), dtype=torch.long, device=device)
    for bucket in batches(corpus.lengths, _DECODE_BATCH_TOKENS):
        batch = corpus.batch(bucket).to(device)
        predicted = model.decode(batch.mask, batch.inputs)
        num_correct += ((predicted == batch.tags) & batch.mask).sum()
    return 100.0 * int(num_correct) / max(1, sum(corpus.lengths))


def _format_minutes(seconds: float) -> str:
    """Formats seconds as minutes and seconds.

    Example:
        >>> _format_minutes(125.4)
        '2:05'
    """
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
