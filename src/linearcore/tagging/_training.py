"""Trains a tagger from tagged sentences and saves it."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from linearcore._checks import complaint
from linearcore.runtime import Checkpoint, Interrupt, Progress
from linearcore.tagging._corpus import Corpus, TaggedSentence, digest
from linearcore.tagging._loop import TrainingLoop
from linearcore.tagging._sentences import training_sentences
from linearcore.tagging._settings import Training
from linearcore.tagging._start import load_trained, source_hashes, start_tagger, start_vocabulary
from linearcore.tagging._tagger import Tagger
from linearcore.tagging._vocabulary import Vocabulary
from linearcore.tagging.readers import Layout

_ADVICE = "pass --fresh (fresh=True) to start again, or use another --out"


@dataclass(frozen=True)
class TrainingResult:
    """Result of `train`.

    Attributes:
        tagger: the tagger with the weights of the best validation accuracy.
        history: one row per validation: epoch, steps so far, loss, validation accuracy, words per second, seconds. There is
            one after every epoch, or, with more validation than training words, after as many epochs as have the same
            number of words.
        resumed: epoch and batch at which training was resumed; None if it started from the beginning.
        was_finished: whether `out` already contained this tagger, so nothing was trained.
    """

    tagger: Tagger
    history: list[dict[str, Any]]
    resumed: tuple[int, int] | None
    was_finished: bool = False

    @property
    def best_epoch(self) -> int:
        """The last epoch with the best validation accuracy, from 1; the tagger has its weights."""
        return int(max(self.history, key=lambda row: (float(row["dev_accuracy"]), int(row["epoch"])))["epoch"])

    @property
    def was_improving(self) -> bool:
        """Whether all epochs were used and the last validation was the best, so that longer training may help."""
        used_all_epochs = self.last_epoch == self.tagger.metadata["training"]["epochs"]
        return used_all_epochs and self.best_epoch == self.last_epoch and self.history[-1]["dev_accuracy"] < 100

    @property
    def last_epoch(self) -> int:
        """The last epoch, from 1."""
        return int(self.history[-1]["epoch"])


def train(
    sentences: Sequence[TaggedSentence],
    dev: Sequence[TaggedSentence],
    settings: Training | None = None,
    *,
    columns: str = "tag",
    layout: Layout | None = None,
    out: str | Path | None = None,
    device: str = "cpu",
    fresh: bool = False,
    save_every: float = 300.0,
    progress: Progress | None = None,
) -> TrainingResult:
    """Trains a tagger; with `out`, saves it, and resumes an interrupted run with the same arguments.

    Args:
        sentences: training sentences: pairs (words, tags), or dicts with "tokens" and "tags".
        dev: validation sentences, for early stopping and the choice of the best epoch.
        settings: training settings; None uses the defaults of `Training`.
        columns: the tag columns, in the syntax of `--tag`; saved with the tagger.
        layout: the format of the training files, saved with the tagger, so `tag predict` refuses other formats. None infers
            it from `columns`, or is that of the tagger to continue from.
        out: folder for the tagger and, during training, for the checkpoint.
        device: torch device.
        fresh: ignore what `out` contains and start again.
        save_every: seconds between two checkpoints within an epoch; one is also saved after every epoch.
        progress: an open progress display; None opens a new one.

    Raises:
        TypeError: if a sentence is neither, or a word or a tag is not a string.
        ValueError: if there are no words, a sentence has different numbers of words and tags, `out` contains a tagger or
            a checkpoint with other settings or data, or another run is active in `out`.
        OSError: if `out` cannot be written, for example because the disk is full; the last checkpoint stays valid.
        StoppedError: after SIGINT or SIGTERM, when the checkpoint is saved.
    """
    folder = None if out is None else Path(out)
    sentences, dev = training_sentences("sentences", sentences), training_sentences("dev", dev)
    settings, trained = load_trained(settings or Training(), columns, folder)
    vocabulary = start_vocabulary(sentences, settings, columns, trained)
    # Tags that never occur do not make a tag set large, so they are not counted.
    num_tags = len({tag for _, tags in sentences for tag in tags})
    settings = settings.with_defaults(sum(len(words) for words, _ in sentences), num_tags)
    settings, note = settings.with_constraints(vocabulary.tags, sentences, dev)
    notes = [line for line in (note, _unseen_tags(dev, vocabulary)) if line is not None]
    saved_settings = settings.to_json()
    # Compilation does not change the result, so a run may be resumed with or without it.
    key_settings = {name: value for name, value in saved_settings.items() if name != "compiled"}
    key = {"settings": key_settings, "train": digest(sentences), "dev": digest(dev), "tag": columns}
    key |= source_hashes(settings)
    checkpoint = None if folder is None else Checkpoint(folder, "training run of a tagger", key, _ADVICE)
    # A finished tagger is only read, so its folder may be read-only.
    lock = nullcontext() if checkpoint is None or (checkpoint.is_finished and not fresh) else checkpoint.lock()
    cuda = [torch.device(device)] if torch.device(device).type == "cuda" else []
    with lock, torch.random.fork_rng(devices=cuda):
        if checkpoint is not None and fresh:
            checkpoint.remove()
        elif checkpoint is not None and checkpoint.is_finished:
            return _load_finished(checkpoint, device)
        torch.manual_seed(settings.seed)
        tagger = start_tagger(vocabulary, settings, columns, trained).to(device)
        tagger.metadata = {"training": saved_settings, "key": key}
        tagger.layout = layout or tagger.layout
        corpora = [Corpus.of(part, vocabulary, tagger.model.encoder) for part in (sentences, dev)]
        loop = TrainingLoop(tagger, settings, corpora[0], corpora[1], checkpoint, save_every)
        resumed = loop.resume()
        with Progress() if progress is None else nullcontext(progress) as display, Interrupt() as interrupt:
            for line in notes:
                display.print(line)
            if resumed is not None:
                best = "" if loop.state.best < 0 else f"; best validation accuracy so far {loop.state.best:.2f} %"
                display.print(f"resuming in epoch {resumed[0]} after {resumed[1]} batches{best}")
            display.print(loop.describe())
            loop.train_epochs(display, interrupt)
        tagger.metadata |= {"history": loop.state.history, "dev_accuracy": loop.state.best}
        if checkpoint is not None:
            tagger.save(checkpoint.out)
            checkpoint.remove()
        return TrainingResult(tagger, loop.state.history, resumed)


def _unseen_tags(dev: Sequence[TaggedSentence], vocabulary: Vocabulary) -> str | None:
    """Returns a line about validation words whose tag does not occur in training, or None if there are none.

    Raises:
        ValueError: if no validation word has a tag that occurs in training.
    """
    tags = [tag for _, tags in dev for tag in tags]
    unseen = [tag for tag in tags if tag not in vocabulary.seen_tags]
    if len(unseen) == len(tags):
        must, advice = "have tags that occur in the training sentences", "check that both files have their tags in --tag"
        raise ValueError(complaint("dev", must, f"none; the first is {tags[0]!r}", advice))
    counts = f"{len(unseen):,} of {len(tags):,} validation words have one of {len(set(unseen)):,} tags"
    return f"{counts} that do not occur in the training sentences; they count as wrong" if unseen else None


def _load_finished(checkpoint: Checkpoint, device: str) -> TrainingResult:
    """Loads the tagger in the folder; raises if it was trained with other settings or data."""
    tagger = checkpoint.load_finished(lambda folder: Tagger.load(folder, device))
    checkpoint.require_same("a finished tagger", tagger.metadata.get("key", {}))
    return TrainingResult(tagger, tagger.metadata["history"], resumed=None, was_finished=True)
