"""One training run: network, optimiser, CUDA stream and history."""

import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from linearcore.runtime import Checkpoint, complaint, is_store
from linearcore_paper.vision._evaluation import count_correct, mean_loss, scores_of
from linearcore_paper.vision._images import Images, check_images
from linearcore_paper.vision._losses import Loss, SampleLoss
from linearcore_paper.vision._plan import epoch_plan, epoch_rates, steps_of
from linearcore_paper.vision._result import Trained, new_network
from linearcore_paper.vision._settings import Recipe
from linearcore_paper.vision._steps import Stepper
from linearcore_paper.vision._views import Normal

_ADVICE = "pass fresh=True to start again, another `out`, or the `loss_name` of that run if only the name differs"


@dataclass
class State:
    """Progress of a run.

    Attributes:
        epoch: number of finished epochs.
        step: finished steps of the current epoch.
        seconds: time spent on the current epoch before it was resumed.
        history: a row per finished epoch.
        kept: scores of the training images, by epoch.
        failed: reason why the run ended early.
    """

    epoch: int = 0
    step: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    kept: dict[int, Tensor] = field(default_factory=dict)
    failed: str | None = None


class Run:
    """A training run. `train_many` trains several at once; `epoch` trains one epoch of a single run.

    The network is built at the first epoch, and device memory is released after the last. On a GPU every run has its own
    stream, and the host synchronises once per epoch.

    Args:
        data: training images, usually with noisy labels.
        loss: called with scores (B, C) and labels (B,); returns (B,) losses or their mean. With an argument `index` or
            `needs_index = True` it also gets the indices (B,) of the samples in `data`, as `EarlyLearning` requires.
        recipe: training settings; None uses the defaults.
        validation: images with labels as noisy as those of `data`, for choosing hyper-parameters.
        test: images with true labels, for reporting.
        device: torch device.
        loss_name: name of the loss with its options in results and checkpoints, for example "gce(q=0.5)". Required with
            `out`, because a saved run is only resumed with the same loss name.
        name: name of the run in progress and records.
        out: folder for the result and the checkpoint; a run with the same arguments resumes there.
        fresh: ignore the contents of `out`.
        keep_scores_at: epochs, from 1, after which the scores of all training images are stored.
        evaluate_every: evaluate on `validation` and `test` every so many epochs, and after the last.
        watch_train: also evaluate mean loss and accuracy on the training images, without augmentation.
        keep_weights: save the last weights in `out`.

    Raises:
        ValueError: if arguments are invalid, `out` is a file or contains another run, or `loss_name` is missing. At the
            first epoch also if another run is active in `out`.

    Example:
        >>> pixels = torch.randint(0, 255, (8, 1, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
        >>> data = Images(pixels, torch.tensor([0, 1] * 4), ("even", "odd"))
        >>> run = Run(data, torch.nn.functional.cross_entropy, Recipe("small", width=2, epochs=2, batch=4), test=data)
        >>> run.epoch()["epoch"], run.epoch()["epoch"], run.is_done
        (1, 2, True)
    """

    def __init__(
        self,
        data: Images,
        loss: Loss,
        recipe: Recipe | None = None,
        *,
        validation: Images | None = None,
        test: Images | None = None,
        device: torch.device | str = "cpu",
        loss_name: str = "",
        name: str = "",
        out: str | PathLike[str] | None = None,
        fresh: bool = False,
        keep_scores_at: Sequence[int] = (),
        evaluate_every: int = 1,
        watch_train: bool = False,
        keep_weights: bool = True,
    ) -> None:
        self.recipe, self.device, self.name = recipe or Recipe(), torch.device(device), name
        self._data, self._eval_sets = data, {"test": test, "validation": validation}
        self._loss, self._loss_name = loss, loss_name
        self._every, self._keep_at, self._watch, self._keep = evaluate_every, set(keep_scores_at), watch_train, keep_weights
        self._check()
        self.steps = steps_of(len(data), self.recipe)
        self.state = State()
        self.resumed: tuple[int, int] | None = None
        self.out = None if out is None else _as_folder(Path(out))
        self.key = {} if self.out is None else self._make_key()
        self._checkpoint = None if self.out is None else Checkpoint(self.out, "training run on images", self.key, _ADVICE)
        self._stepper: Stepper | None = None
        self._stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None
        self._metrics: dict[str, Tensor] = {}
        self._scores: Tensor | None = None
        self._result: Trained | None = None
        self._lock = None if self._checkpoint is None else self._checkpoint.lock()
        self._fresh = fresh
        if self._checkpoint is not None and not fresh and is_store(self._checkpoint.out):
            result = self._checkpoint.load_finished(lambda folder: Trained.load(folder, self.device))
            self._result = replace(result, was_finished=True)
            self._checkpoint.require_same("a finished run", self._result.key)

    @property
    def is_done(self) -> bool:
        """Whether the last epoch is finished, or the run failed."""
        return self._result is not None

    @property
    def history(self) -> list[dict[str, Any]]:
        """A row per finished epoch; see `Trained`."""
        return self.state.history if self._result is None else self._result.history

    def epoch(self) -> dict[str, Any] | None:
        """Trains for an epoch, or the rest of one; returns its row of the history, or None if the run failed."""
        self.start()
        while self.state.step < self.steps:
            self.step()
        self.evaluate()
        return self.finish()

    def start(self) -> None:
        """Prepares an epoch, or the rest of one."""
        self.prepare()
        stepper, state = self._active_stepper, self.state
        with self._on_stream():
            if state.step == 0:
                stepper.begin()
            stepper.load(
                epoch_plan(len(self._data), self.recipe, state.epoch), epoch_rates(self.steps, self.recipe, state.epoch)
            )
        stepper.network.train()
        stepper.loss.train(True)
        self._epoch_start = time.perf_counter()

    def step(self) -> None:
        """Runs the next step; on a GPU it is only launched."""
        with self._on_stream():
            self._active_stepper.step()
        self.state.step += 1

    def evaluate(self) -> None:
        """Computes loss and accuracies at the end of an epoch, without synchronising with the GPU."""
        stepper, number = self._active_stepper, self.state.epoch + 1
        is_due = number % self._every == 0 or number == self.recipe.epochs
        with self._on_stream():
            self._metrics = {"loss": stepper.total[0] / self.steps}
            for split, data in self._eval_sets.items():
                if data is not None and is_due:
                    self._metrics[f"{split}_accuracy"] = count_correct(self._scores_of(data.images), data.labels)
            if number in self._keep_at or (self._watch and is_due):
                self._scores = self._scores_of(self._data.images)
            if self._scores is not None and self._watch and is_due:
                self._metrics["train_accuracy"] = count_correct(self._scores, self._data.labels)
                self._metrics["train_loss"] = mean_loss(stepper.loss, self._scores, self._data)

    def finish(self) -> dict[str, Any] | None:
        """Synchronises, appends the metrics of `evaluate` to the history, and after the last epoch saves the result."""
        state, number = self.state, self.state.epoch + 1
        with self._on_stream():
            values = dict(
                zip(self._metrics, torch.stack([value.float() for value in self._metrics.values()]).tolist(), strict=True)
            )
            if self._scores is not None and number in self._keep_at:
                state.kept[number] = self._scores.cpu()
        self._scores = None
        row: dict[str, Any] | None = None
        if math.isfinite(values["loss"]):
            row = self._row(values)
            state.history.append(row)
        else:
            state.failed = f"loss is not finite in epoch {number}"
        state.epoch, state.step, state.seconds = number, 0, 0.0
        if state.failed is not None or number == self.recipe.epochs:
            self._end()
        return row

    def save(self) -> None:
        """Writes a checkpoint if the run has a folder and is not finished; synchronises with the GPU."""
        if self._checkpoint is None or self._stepper is None:
            return
        now = time.perf_counter()
        with self._on_stream():
            # Within an epoch, the time so far is added to the row of the epoch.
            state = replace(self.state, seconds=self.state.seconds + (now - self._epoch_start if self.state.step else 0.0))
            self._checkpoint.save(
                {name: value for name, value in vars(state).items() if name != "kept"},
                run=self._stepper.state(),
                kept={str(epoch): scores for epoch, scores in state.kept.items()},
            )

    def result(self) -> Trained:
        """Returns the result.

        Raises:
            ValueError: if the run is not finished.
        """
        if self._result is None:
            got = f"{self.state.epoch} of {self.recipe.epochs} epochs"
            raise ValueError(complaint("run", "be done", got, "call `epoch` until `is_done`, or `train_many`"))
        return self._result

    def scores(self, images: Tensor) -> Tensor:
        """Computes scores (N, C) float32 of images (N, channels, height, width) uint8 in evaluation mode.

        Raises:
            TypeError, ValueError: if dtype or shape of the images is wrong.
        """
        if self._result is not None:
            return self._result.scores(images)
        check_images(images, self._data.channels)
        self.prepare()
        with self._on_stream():
            scores = self._scores_of(images.to(self.device))
        if self._stream is not None:
            torch.cuda.current_stream(self.device).wait_stream(self._stream)
        return scores

    def prepare(self) -> None:
        """Builds the network and restores a checkpoint, if any; a second call does nothing.

        Raises:
            ValueError: if another run is active in `out`.
        """
        if self._result is not None:
            return
        if self._lock is not None:
            self._lock.acquire()
        if self._stepper is not None:
            return
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Frees the folder for other runs. A run that ends does this itself; `prepare` takes the folder again."""
        if self._lock is not None:
            self._lock.release()

    def _build(self) -> None:
        if self._checkpoint is not None and self._fresh:
            self._checkpoint.remove()
        self._data = self._data.to(self.device)
        self._eval_sets = {split: None if data is None else data.to(self.device) for split, data in self._eval_sets.items()}
        loss = SampleLoss(self._loss, self.device)
        loss.check(self._data.num_classes, len(self._data), self.device)
        network = new_network(self.recipe, self._data.num_classes, self._data.channels).to(self.device)
        network.train()
        loss.train(True)
        normal = Normal.of(self._data.images)
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self.device))
        with self._on_stream():
            self._stepper = Stepper(network, loss, self._data, normal, self.recipe, self._stream)
            if self._checkpoint is not None:
                self.resumed = self._checkpoint.resume(self._restore)

    def _restore(self, state: dict[str, Any], tensors: dict[str, dict[str, Tensor]]) -> tuple[int, int]:
        kept = {int(epoch): scores for epoch, scores in tensors.get("kept", {}).items()}
        self.state = State(**state, kept=kept)
        self._active_stepper.restore(tensors["run"])
        return self.state.epoch + 1, self.state.step

    @property
    def _active_stepper(self) -> Stepper:
        if self._stepper is None:
            raise ValueError(complaint("run", "be started and not finished", "another state", "call `start` first"))
        return self._stepper

    def _scores_of(self, images: Tensor) -> Tensor:
        stepper = self._active_stepper
        return scores_of(stepper.network, images, stepper.normal, stepper.dtype)

    def _row(self, values: dict[str, float]) -> dict[str, Any]:
        sizes = {f"{split}_accuracy": data for split, data in (*self._eval_sets.items(), ("train", self._data))}
        for name, data in sizes.items():
            if name in values and data is not None:
                values[name] *= 100 / len(data)
        row = {"epoch": self.state.epoch + 1, "test_accuracy": None, "validation_accuracy": None, **values}
        row["rate"] = float(epoch_rates(self.steps, self.recipe, self.state.epoch)[-1])
        row["seconds"] = round(self.state.seconds + time.perf_counter() - self._epoch_start, 3)
        return row

    def _end(self) -> None:
        stepper, state = self._active_stepper, self.state
        self._result = Trained(
            self.recipe,
            self._loss_name,
            self._data.classes,
            state.history,
            stepper.network.eval(),
            stepper.normal,
            kept_scores=state.kept,
            failed=state.failed,
            name=self.name,
            key=self.key,
            resumed=self.resumed,
        )
        if self._checkpoint is not None:
            with self._on_stream():
                is_kept = self._keep and state.failed is None
                (self._result if is_kept else replace(self._result, network=None)).save(self._checkpoint.out)
            self._checkpoint.remove()
        # Release the graph and its memory for other runs.
        self._stepper, self._metrics = None, {}
        self.close()

    def _make_key(self) -> dict[str, Any]:
        splits = {split: None if data is None else data.digest for split, data in self._eval_sets.items()}
        evaluation = {"keep_scores_at": sorted(self._keep_at), "evaluate_every": self._every, "watch_train": self._watch}
        if not self._loss_name:
            advice = "name the loss with its options, for example 'gce(q=0.5)'; a saved run is identified by it"
            raise ValueError(complaint("loss_name", "be given with `out`", "none", advice))
        training = {"settings": self.recipe.to_json(), "loss": self._loss_name, "train": self._data.digest}
        return {**training, **splits, **evaluation}

    def _on_stream(self) -> AbstractContextManager[Any]:
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)

    def _check(self) -> None:
        data, epochs = self._data, self.recipe.epochs
        if self.device.type == "cuda" and not torch.cuda.is_available():
            raise ValueError(complaint("device", "be one that this machine has", repr(str(self.device)), "pass 'cpu'"))
        if self.recipe.batch > len(data):
            advice = "pass a smaller `batch` in the recipe"
            raise ValueError(complaint("data", f"have at least {self.recipe.batch} images", len(data), advice))
        for split, other in self._eval_sets.items():
            if other is not None and (other.classes != data.classes or other.images.shape[1:] != data.images.shape[1:]):
                got = f"{other.num_classes} of {tuple(other.images.shape[1:])}"
                must = f"have the {data.num_classes} classes of `data` and images of {tuple(data.images.shape[1:])}"
                raise ValueError(complaint(split, must, got, "use images of the same dataset"))
        if not isinstance(self._every, int) or self._every < 1:
            raise ValueError(complaint("evaluate_every", "be a positive integer", repr(self._every), "1 is every epoch"))
        if not all(isinstance(epoch, int) and 1 <= epoch <= epochs for epoch in self._keep_at):
            must = f"be epochs from 1 to {epochs}"
            raise ValueError(complaint("keep_scores_at", must, sorted(self._keep_at), "epochs count from 1"))


def _as_folder(out: Path) -> Path:
    """Returns `out`; raises if it or a parent is a file."""
    for path in (out, *out.parents):
        if path.exists() and not path.is_dir():
            raise ValueError(complaint("out", "be a folder", f"the file {str(path)!r}", "pass another folder"))
    return out
