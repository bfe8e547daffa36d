"""A trained tagger: saved, loaded, and asked for tags."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch

from linearcore._checks import complaint
from linearcore.runtime import StoreError, read_store, write_store
from linearcore.tagging._batches import batches
from linearcore.tagging._corpus import Corpus
from linearcore.tagging._evaluation import Evaluation
from linearcore.tagging._model import TaggingModel
from linearcore.tagging._vocabulary import Vocabulary
from linearcore.tagging.encoders import encoder_class
from linearcore.tagging.readers import Sentence

KIND = "tagger"
#: How many sentences are read ahead, to be put into batches of like length; memory does not grow beyond them.
_AHEAD = 512

Item = TypeVar("Item")


class Tagger:
    """Tags for words. Made by `linearcore tag train`, or by `linearcore.tagging.train`; loaded with `Tagger.load`.

    Args:
        model: encoder, projection and head.
        vocabulary: of the training sentences.
        columns: which columns of a file the tags are, in the words of `--tag`.
        told: how it was trained, as JSON values.

    Example:
        >>> from linearcore.tagging.encoders import BiLSTM
        >>> vocabulary = Vocabulary.of([(["a", "cat"], ["DET", "NOUN"])])
        >>> tagger = Tagger(TaggingModel(BiLSTM(vocabulary.words), 2), vocabulary, "upos")
        >>> len(tagger.tag(["a", "dog"]))
        2
    """

    def __init__(
        self, model: TaggingModel, vocabulary: Vocabulary, columns: str, told: Mapping[str, Any] | None = None
    ) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.columns = columns
        self.told = dict(told or {})

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.model.projection.weight.device

    def to(self, device: str | torch.device) -> "Tagger":
        """Moves it, in place."""
        self.model.to(device)
        return self

    def tag(self, words: Sequence[str]) -> list[str]:
        """The tags of one sentence, a tag a word.

        Raises:
            TypeError: if `words` is one string.
        """
        if isinstance(words, str):
            raise TypeError(complaint("words", "be a list of words", "one string", "split it, for example words.split()"))
        return next(self.tag_all([words]))

    def tag_all(self, sentences: Iterable[Sequence[str]], tokens: int = 4096) -> Iterator[list[str]]:
        """The tags of each sentence, in order; any number of sentences, in memory for a few hundred of them.

        Args:
            sentences: of words.
            tokens: words of a batch, padding included.
        """
        for ahead in _chunks(sentences):
            yield from self._tags(ahead, tokens)

    def tagged(self, sentences: Iterable[Sentence], tokens: int = 4096) -> Iterator[tuple[Sentence, list[str]]]:
        """Sentences as `linearcore.tagging.readers` reads them, each with its tags."""
        for ahead in _chunks(sentences):
            yield from zip(ahead, self._tags([sentence.words for sentence in ahead], tokens), strict=True)

    def evaluation(self) -> Evaluation:
        """An empty one, which knows the words and tags of training."""
        return Evaluation(self.vocabulary.word_numbers, self.vocabulary.tag_numbers)

    def evaluate(self, sentences: Iterable[Sentence]) -> Evaluation:
        """Compares with the tags that the sentences have."""
        found = self.evaluation()
        for sentence, tags in self.tagged(sentences):
            found.add(sentence.words, sentence.tags or [], tags)
        return found

    def _tags(self, sentences: Sequence[Sequence[str]], tokens: int) -> list[list[str]]:
        self.model.eval()
        found: list[list[str]] = [[] for _ in sentences]
        corpus = Corpus.of(((words, [""] * len(words)) for words in sentences), self.vocabulary, self.model.encoder)
        for bucket in batches(corpus.lengths, tokens):
            batch = corpus.batch(bucket).to(self.device)
            rows = self.model.decode(batch.mask, batch.inputs).tolist()
            for member, row in zip(bucket.members, rows, strict=True):
                found[member] = [self.vocabulary.tags[tag] for tag in row[: len(sentences[member])]]
        return found

    def save(self, folder: str | Path) -> None:
        """Writes safetensors and JSON into `folder`, to be loaded anywhere.

        Raises:
            OSError: if it cannot be written.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        encoder = self.model.encoder
        (folder / "encoder").mkdir(exist_ok=True)
        encoder_settings = encoder.save(folder / "encoder")
        files = sorted(path.relative_to(folder).as_posix() for path in (folder / "encoder").rglob("*") if path.is_file())
        if not files:
            (folder / "encoder").rmdir()
        write_store(
            folder,
            KIND,
            settings={"columns": self.columns, "encoder": encoder.kind, "model": self.model.settings(), "told": self.told},
            documents={"encoder": encoder_settings, "vocabulary": self.vocabulary.to_json()},
            tensors=self.model.state_dict(),
            files=files,
        )

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device = "cpu") -> "Tagger":
        """What `save` wrote.

        Raises:
            StoreError: in one line, if the folder is no saved tagger, or damaged.
            MissingExtraError: if its encoder needs a package that is not installed.
        """
        folder = Path(folder)
        stored = read_store(folder, KIND)
        try:
            settings = stored.settings
            encoder = encoder_class(settings["encoder"]).load(folder / "encoder", stored.documents["encoder"])
            vocabulary = Vocabulary.from_json(stored.documents["vocabulary"])
            model = TaggingModel(encoder, len(vocabulary.tags), **settings["model"])
            model.load_state_dict(stored.tensors)
            tagger = cls(model, vocabulary, settings["columns"], settings["told"])
        except (KeyError, TypeError, ValueError, RuntimeError, OSError) as error:
            reason = " ".join(str(error).split())[:200]
            raise StoreError(f"{folder} does not fit this version of linearcore: {reason}; {stored.written_by}") from None
        model.eval()
        return tagger.to(device)


def _chunks(items: Iterable[Item]) -> Iterator[list[Item]]:
    """So many at a time. If reading fails, what was read before still comes, and then the error."""
    ahead: list[Item] = []
    try:
        for item in items:
            ahead.append(item)
            if len(ahead) == _AHEAD:
                yield ahead
                ahead = []
    except GeneratorExit:
        raise
    except Exception:
        yield ahead
        raise
    yield ahead
