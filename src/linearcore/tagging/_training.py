"""From tagged sentences to a saved tagger."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from linearcore._checks import complaint
from linearcore.runtime import Checkpoint, Interrupt, Progress, is_store
from linearcore.tagging._corpus import Corpus, Tagged, digest
from linearcore.tagging._model import TaggingModel
from linearcore.tagging._run import Run
from linearcore.tagging._settings import Training
from linearcore.tagging._tagger import Tagger
from linearcore.tagging._vocabulary import Vocabulary
from linearcore.tagging.encoders import BiLSTM, Encoder
from linearcore.tagging.readers import TagColumns

_ADVICE = "pass --fresh (fresh=True) to start again, or another --out"


@dataclass(frozen=True)
class Trained:
    """What came of it.

    Attributes:
        tagger: with the weights of the best epoch.
        history: a row for each epoch: loss, dev accuracy, words per second, seconds.
        resumed: the epoch and batch at which a saved run was taken up; None if it began at the beginning.
        was_finished: nothing was done, since `out` held this very tagger.
    """

    tagger: Tagger
    history: list[dict[str, Any]]
    resumed: tuple[int, int] | None
    was_finished: bool = False


def train(
    sentences: Sequence[Tagged],
    dev: Sequence[Tagged],
    settings: Training | None = None,
    *,
    columns: str = "tag",
    out: str | Path | None = None,
    device: str = "cpu",
    fresh: bool = False,
    save_every: float = 300.0,
    progress: Progress | None = None,
) -> Trained:
    """Trains a tagger; with `out`, saves it there, and goes on where an interrupted run with the same arguments stopped.

    Args:
        sentences: (words, tags) to train on.
        dev: sentences that decide which epoch is best and when to stop.
        settings: see `Training`.
        columns: what the tags are, kept with the tagger.
        out: folder for the tagger and, until it is finished, for the state of the run.
        device: where to train, in torch's words.
        fresh: forget what `out` holds.
        save_every: seconds between two savings within an epoch; one is made after every epoch as well.
        progress: an open one that shows how far it is; None opens its own.

    Raises:
        ValueError: if there is nothing to train on, a sentence has not as many tags as words, or `out` holds a tagger or a
            run with other settings or data.
        StoppedError: after SIGINT or SIGTERM, when everything is saved.
    """
    settings = (settings or Training()).filled()
    folder = None if out is None else Path(out)
    _check(sentences, dev)
    told = settings.to_json()
    # Compiled steps are the same steps: a run may go on with them, or without.
    asked = {name: value for name, value in told.items() if name != "compiled"}
    key = {"settings": asked, "train": digest(sentences), "dev": digest(dev), "tag": columns}
    checkpoint = None if folder is None else Checkpoint(folder, "training run of a tagger", key, _ADVICE)
    if checkpoint is not None and fresh:
        checkpoint.remove()
    elif checkpoint is not None and is_store(checkpoint.out):
        return _finished(checkpoint, device)
    with torch.random.fork_rng(devices=[torch.device(device)] if torch.device(device).type == "cuda" else []):
        torch.manual_seed(settings.seed)
        vocabulary = Vocabulary.of(sentences)
        if settings.inflate is not None:
            vocabulary = vocabulary.inflated(settings.inflate, len(TagColumns.parse(columns).indices))
        encoder = make_encoder(vocabulary, settings)
        model = TaggingModel(encoder, len(vocabulary.tags), **settings.head_options())
        tagger = Tagger(model.to(device), vocabulary, columns, {"training": told, "key": key})
        corpora = [Corpus.of(part, vocabulary, encoder) for part in (sentences, dev)]
        run = Run(tagger, settings, corpora[0], corpora[1], checkpoint, save_every)
        resumed = run.resume()
        with Progress() if progress is None else nullcontext(progress) as shown, Interrupt() as interrupt:
            if resumed is not None:
                best = "" if run.state.best < 0 else f"; best on dev so far {run.state.best:.2f} %"
                shown.print(f"going on in epoch {resumed[0]} after {resumed[1]} batches{best}")
            run.go(shown, interrupt)
    tagger.told |= {"history": run.state.history, "dev_accuracy": run.state.best}
    if checkpoint is not None:
        tagger.save(checkpoint.out)
        checkpoint.remove()
    return Trained(tagger, run.state.history, resumed)


def make_encoder(vocabulary: Vocabulary, settings: Training) -> Encoder:
    """The encoder that the settings name, before training."""
    if settings.kind == BiLSTM.kind:
        return BiLSTM(
            vocabulary.words,
            vocabulary.counts,
            characters=settings.characters,
            embedding=settings.embedding,
            hidden=settings.hidden,
            layers=settings.layers,
            dropout=settings.dropout,
            buckets=_buckets(len(vocabulary.words)),
        )
    from linearcore.tagging.encoders import TransformerEncoder

    return TransformerEncoder.from_pretrained(settings.path)


def _check(sentences: Sequence[Tagged], dev: Sequence[Tagged]) -> None:
    for name, part in (("sentences", sentences), ("dev", dev)):
        if not any(len(words) for words, _ in part):
            raise ValueError(complaint(name, "have words", "none", "pass tagged sentences"))
        for place, (words, tags) in enumerate(part):
            if len(words) != len(tags):
                got = f"{len(words)} words and {len(tags)} tags in sentence {place}"
                raise ValueError(complaint(name, "have a tag for each word", got, "mend it"))


def _finished(checkpoint: Checkpoint, device: str) -> Trained:
    """What a folder holds, if it came of the same settings and data."""
    tagger = Tagger.load(checkpoint.out, device)
    checkpoint.require_same("a finished tagger", tagger.told.get("key", {}))
    return Trained(tagger, tagger.told["history"], resumed=None, was_finished=True)


def _buckets(words: int) -> int:
    """Rows for hashed spelling: about as many as there are different endings and beginnings, within limits."""
    return min(2**16, max(2**10, 1 << (8 * words - 1).bit_length()))
