"""The tagger at the start of training: a new one, or a trained one with more words and tags."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from linearcore._checks import complaint
from linearcore.runtime import store_digest
from linearcore.tagging._composition import Composition, unseen_tags
from linearcore.tagging._constraints import AUTO
from linearcore.tagging._corpus import TaggedSentence
from linearcore.tagging._heads import HEADS
from linearcore.tagging._model import TaggingModel
from linearcore.tagging._settings import Training
from linearcore.tagging._tagger import Tagger
from linearcore.tagging._vocabulary import Vocabulary
from linearcore.tagging.encoders import copy_leading_rows
from linearcore.tagging.readers import TagColumns


def start_vocabulary(
    sentences: Sequence[TaggedSentence], settings: Training, columns: str, trained: Tagger | None = None
) -> Vocabulary:
    """Returns the words and tags of the sentences, after those of the tagger to continue from, if any."""
    vocabulary = Vocabulary.of(sentences)
    if trained is not None:
        vocabulary = trained.vocabulary.extend(vocabulary)
    if settings.inflate is not None:
        vocabulary = vocabulary.inflate(settings.inflate, len(TagColumns.parse(columns).indices))
    return _add_unseen_tags(vocabulary, sentences, settings.unseen_tags) if settings.compose else vocabulary


def start_tagger(vocabulary: Vocabulary, settings: Training, columns: str, trained: Tagger | None = None) -> Tagger:
    """Returns the tagger with which training starts.

    Args:
        vocabulary: the result of `start_vocabulary`.
        settings: training settings with all defaults filled in.
        columns: the tag columns, in the syntax of `--tag`.
        trained: a tagger to continue from. Its words and tags keep their numbers and weights; those of new words and tags
            are initialised as in a new tagger.
    """
    encoder, options = None, settings.head_options()
    if trained is not None:
        encoder = trained.model.encoder.extend(vocabulary)
        options = trained.model.settings() | {name: options[name] for name in ("constraints", "cost")}
    model = TaggingModel(
        encoder or settings.make_encoder(vocabulary),
        vocabulary.tags,
        composition=Composition.of(vocabulary) if settings.compose else None,
        **options,
    )
    if trained is not None:
        copy_leading_rows(model.projection, trained.model.projection)
        if model.head is not None and trained.model.head is not None:
            copy_leading_rows(model.head, trained.model.head)
    return Tagger(model, vocabulary, columns, layout=None if trained is None else trained.layout)


def _add_unseen_tags(vocabulary: Vocabulary, sentences: Sequence[TaggedSentence], limit: int | None) -> Vocabulary:
    """Returns the vocabulary with the most probable tags that do not occur; `limit` is the number of all such tags."""
    # The counts of a trained tagger's tags are not known; 1 is less than that of any tag in the sentences.
    counts = Counter(vocabulary.seen_tags) + Counter(tag for _, tags in sentences for tag in tags)
    number = max(0, (len(counts) if limit is None else limit) - len(vocabulary.unseen))
    existing = set(vocabulary.unseen)
    candidates = unseen_tags(counts, number + len(existing))
    return vocabulary.with_unseen([tag for tag in candidates if tag not in existing][:number])


def load_trained(settings: Training, columns: str, out: Path | None) -> tuple[Training, Tagger | None]:
    """Loads the tagger of `settings.continue_from`, and returns the settings with the options of its encoder and head.

    Raises:
        StoreError: if the folder is not a saved tagger.
        ValueError: if an option, the tag column or `out` does not fit the tagger.
    """
    if settings.continue_from is None:
        return settings, None
    folder = Path(settings.continue_from)
    if out is not None and out.resolve() == folder.resolve():
        raise ValueError(complaint("out", "differ from `continue_from`", str(out), "pass another folder to --out"))
    tagger = Tagger.load(folder)
    known: dict[str, Any] = tagger.metadata.get("training", {})
    if TagColumns.parse(columns) != TagColumns.parse(tagger.columns):
        raise _conflict("columns", folder, tagger.columns, columns, f"pass --tag {tagger.columns}, or train a new tagger")
    is_composed = tagger.model.composition is not None
    if settings.compose != is_composed:
        raise _conflict("compose", folder, is_composed, settings.compose, "pass or omit --compose as for that tagger")
    head = tagger.model.settings()
    del head["cost"]  # A tagger that was trained without it can be trained further with it, and vice versa.
    # None in a saved tagger is the option's value for few tags; in new settings it follows the number of tags.
    head |= {name: value for name, value in HEADS[head["loss"]].few_tags.items() if head[name] is None}
    if settings.loss != head["loss"]:
        raise _conflict("loss", folder, head["loss"], settings.loss, f"pass --loss {head['loss']}, or train a new tagger")
    encoder = type(tagger.model.encoder)
    # The vectors are those that the tagger was saved with; no file is read.
    saved = {name: known.get(name) for name in encoder.settings} | {"vectors": None, "max_vectors": None} | head
    constraints = saved.pop("constraints")
    if constraints is not None and settings.constraints == AUTO:
        settings = replace(settings, constraints=constraints)
    for name, value in saved.items():
        given = getattr(settings, name)
        if given not in (value, getattr(Training, name)):
            raise _conflict(name, folder, value, given, "omit it, or train a new tagger")
    if settings.encoder not in (None, encoder.kind, known.get("encoder")):
        raise _conflict("encoder", folder, known.get("encoder", encoder.kind), settings.encoder, "omit it")
    saved_values = {name: value for name, value in saved.items() if value is not None}
    return replace(settings, encoder=known.get("encoder", encoder.kind), **saved_values), tagger


def _conflict(name: str, folder: Path, must: object, got: object, advice: str) -> ValueError:
    return ValueError(complaint(name, f"be {must!r} to continue from {folder}", repr(got), advice))


def source_hashes(settings: Training) -> dict[str, str]:
    """Returns the hashes of the files that training starts from, for the key of a checkpoint.

    Raises:
        ValueError: if a file cannot be read.
    """
    hashes = {}
    if settings.vectors is not None:
        try:
            with open(settings.vectors, "rb") as stream:
                hashes["vectors_sha256"] = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            got = f"{settings.vectors} ({(error.strerror or str(error)).lower()})"
            raise ValueError(complaint("vectors", "be a file that can be read", got, "check the path")) from None
    if settings.continue_from is not None:
        hashes["continue_from_sha256"] = store_digest(Path(settings.continue_from))
    return hashes
