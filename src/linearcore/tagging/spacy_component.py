"""A tagger as component of a spaCy pipeline. Importing this module imports spaCy and registers "linearcore_tagger".

    nlp = spacy.blank("en")
    nlp.add_pipe("linearcore_tagger", config={"model": "FOLDER"})
    [token.pos_ for token in nlp("The cat sleeps.")]

If linearcore is installed by pip, spaCy finds the component without the import.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from linearcore._checks import complaint, one_of
from linearcore._extras import require
from linearcore.tagging._entities import entities_of, is_entity_tag
from linearcore.tagging._tagger import Tagger
from linearcore.tagging.readers import TagColumns

require("spacy", extra=None)

from spacy.language import Language  # noqa: E402
from spacy.parts_of_speech import IDS  # noqa: E402
from spacy.tokens import Doc, Span, Token  # noqa: E402
from spacy.util import minibatch  # noqa: E402

#: The attribute of a token that a CoNLL-U column is written to.
_COLUMN_TARGETS = {"upos": "pos", "xpos": "tag", "feats": "morph"}
#: The folder of the tagger in a saved pipeline.
_FOLDER = "tagger"
_EMPTY = "_"


class SpacyTagger:
    """Writes the tags of a `Tagger` into spaCy documents.

    Sentences are those of the document, if a component before has set them, otherwise the whole document is one sentence.
    Tokens of whitespace are not given to the tagger and keep their attributes.

    Args:
        tagger: the tagger.
        targets: for each tag column, what is set: "tag" (`token.tag_`), "pos" (`token.pos_`), "morph" (`token.morph`) or
            "ents" (`doc.ents`); empty chooses by the columns and the tags.

    Raises:
        ValueError: if the targets do not fit the tagger.
    """

    def __init__(self, tagger: Tagger, targets: Sequence[str] = ()) -> None:
        self.tagger = tagger
        self._columns = TagColumns.parse(tagger.columns)
        values = [self._columns.split(tag) for tag in tagger.vocabulary.tags]
        by_column = [sorted(set(column)) for column in zip(*values, strict=True)]
        self.targets = tuple(targets) or tuple(
            _default_target(name, tags) for name, tags in zip(self._columns.names, by_column, strict=True)
        )
        if len(self.targets) != len(by_column) or len(set(self.targets)) < len(self.targets):
            must = f"be one different name for each of the columns {tagger.columns}"
            raise ValueError(complaint("targets", must, list(self.targets), f"choose from {', '.join(_SETTERS)}"))
        for target, tags in zip(self.targets, by_column, strict=True):
            one_of("targets", target, _SETTERS)
            _check_tags(target, tags)

    def __call__(self, doc: Doc) -> Doc:
        """Tags one document, in place, and returns it."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Tags documents in batches, in place, and yields them."""
        for docs in minibatch(stream, batch_size):
            sentences = [_sentences(doc) for doc in docs]
            tags = self.tagger.tag_all([token.text for token in tokens] for rows in sentences for tokens in rows)
            for doc, rows in zip(docs, sentences, strict=True):
                self._annotate(doc, [(tokens, next(tags)) for tokens in rows])
                yield doc

    def _annotate(self, doc: Doc, tagged: list[tuple[list[Token], list[str]]]) -> None:
        values = [(tokens, [self._columns.split(tag) for tag in tags]) for tokens, tags in tagged]
        for number, target in enumerate(self.targets):
            _SETTERS[target](doc, [(tokens, [parts[number] for parts in rows]) for tokens, rows in values])


Rows = list[tuple[list[Token], list[str]]]


def _sentences(doc: Doc) -> list[list[Token]]:
    """Returns the tokens of each sentence without whitespace."""
    spans: Iterable[Any] = doc.sents if doc.has_annotation("SENT_START") else [doc]
    return [[token for token in span if not token.is_space] for span in spans]


def _default_target(column: str, tags: list[str]) -> str:
    if column in _COLUMN_TARGETS:
        return _COLUMN_TARGETS[column]
    if column in ("last", "tag") or column.isdigit():
        has_entities = any(tag != "O" for tag in tags) and all(map(is_entity_tag, tags))
        return "ents" if has_entities else "tag"
    advice = 'name a target, for example config={"targets": ["tag"]}'
    raise ValueError(complaint("targets", "be given for this tagger", f"none for column {column}", advice))


def _check_tags(target: str, tags: list[str]) -> None:
    """Raises if spaCy does not accept one of the tags."""
    checks: dict[str, tuple[Callable[[str], bool], str]] = {
        "pos": (lambda tag: tag == _EMPTY or tag in IDS, "universal part-of-speech tags"),
        "morph": (lambda tag: tag == _EMPTY or all("=" in part for part in tag.split("|")), "features such as Case=Nom"),
        "ents": (is_entity_tag, "O, or B-, I-, E- or S- followed by a type"),
    }
    accepts, what = checks.get(target, (lambda tag: True, ""))
    wrong = [tag for tag in tags if not accepts(tag)]
    if wrong:
        raise ValueError(
            complaint("targets", f"not include {target!r} unless all tags are {what}", repr(wrong[0]), "use 'tag'")
        )


def _set_tag(doc: Doc, rows: Rows) -> None:
    for token, tag in _pairs(rows):
        token.tag_ = tag


def _set_pos(doc: Doc, rows: Rows) -> None:
    for token, tag in _pairs(rows):
        token.pos_ = "" if tag == _EMPTY else tag


def _set_morph(doc: Doc, rows: Rows) -> None:
    for token, tag in _pairs(rows):
        token.set_morph("" if tag == _EMPTY else tag)


def _set_ents(doc: Doc, rows: Rows) -> None:
    spans = [
        Span(doc, tokens[first].i, tokens[last].i + 1, label=kind)
        for tokens, tags in rows
        for kind, first, last in sorted(entities_of(tags), key=lambda entity: entity[1])
    ]
    doc.set_ents(spans)


def _pairs(rows: Rows) -> Iterator[tuple[Token, str]]:
    for tokens, tags in rows:
        yield from zip(tokens, tags, strict=True)


_SETTERS: dict[str, Callable[[Doc, Rows], None]] = {
    "tag": _set_tag,
    "pos": _set_pos,
    "morph": _set_morph,
    "ents": _set_ents,
}


class SpacyComponent:
    """The component of a pipeline: a `SpacyTagger` from a folder, or from a saved pipeline.

    Args:
        model: folder of the tagger. If it is missing, the tagger must come from `from_disk`, as in `spacy.load`.
        targets: as in `SpacyTagger`.
        device: torch device.
    """

    def __init__(self, model: str, targets: Sequence[str], device: str) -> None:
        self._model, self._targets, self._device = model, targets, device
        self._tagger = self._load(Path(model)) if model and Path(model).exists() else None

    def _load(self, folder: Path) -> SpacyTagger:
        return SpacyTagger(Tagger.load(folder, self._device), self._targets)

    @property
    def tagger(self) -> SpacyTagger:
        """The tagger.

        Raises:
            ValueError: if there is no folder.
        """
        if self._tagger is None:
            advice = 'pass config={"model": "FOLDER"} with a folder written by `linearcore tag train`'
            raise ValueError(complaint("model", "be the folder of a tagger", repr(self._model), advice))
        return self._tagger

    def __call__(self, doc: Doc) -> Doc:
        """Tags one document, in place, and returns it."""
        return self.tagger(doc)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Tags documents in batches, in place, and yields them."""
        return self.tagger.pipe(stream, batch_size=batch_size)

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Saves the tagger with the pipeline."""
        self.tagger.tagger.save(Path(path) / _FOLDER)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "SpacyComponent":
        """Loads the tagger from a saved pipeline."""
        self._tagger = self._load(Path(path) / _FOLDER)
        return self


@Language.factory("linearcore_tagger", default_config={"model": "", "targets": [], "device": "cpu"})  # type: ignore[untyped-decorator]
def make_tagger(nlp: Language, name: str, model: str, targets: list[str], device: str) -> SpacyComponent:
    """Returns the component; spaCy calls this function for `nlp.add_pipe("linearcore_tagger", config={...})`."""
    return SpacyComponent(model, targets, device)
