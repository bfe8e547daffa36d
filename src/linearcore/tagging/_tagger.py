"""A trained tagger: prediction, evaluation, saving and loading."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from linearcore._checks import complaint
from linearcore.runtime import StoreError, read_store, write_store
from linearcore.tagging._batches import batches
from linearcore.tagging._corpus import Corpus
from linearcore.tagging._evaluation import Evaluation
from linearcore.tagging._model import TaggingModel
from linearcore.tagging._vocabulary import Vocabulary
from linearcore.tagging.encoders import encoder_class
from linearcore.tagging.readers import Layout, Sentence

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from linearcore.tagging.export import ExportedFiles
    from linearcore.tagging.hugging_face import ChainForTokenClassification

KIND = "tagger"
#: Number of sentences read at a time and sorted into batches of similar length; it bounds the memory.
_CHUNK_SENTENCES = 512

Item = TypeVar("Item")


class Tagger:
    """A trained sequence tagger, made by `linearcore tag train` or `linearcore.tagging.train` and loaded by `Tagger.load`.

    Args:
        model: encoder, projection and head.
        vocabulary: words and tags of the training sentences.
        columns: the tag columns of a file, in the syntax of `--tag`.
        metadata: training settings and results, as JSON values.
        layout: the format of the training files; None infers it from `columns`: CoNLL-U for its column names, else columns.

    Example:
        >>> from linearcore.tagging.encoders import BiLSTM
        >>> vocabulary = Vocabulary.of([(["a", "cat"], ["DET", "NOUN"])])
        >>> tagger = Tagger(TaggingModel(BiLSTM(vocabulary.words), 2), vocabulary, "upos")
        >>> len(tagger.tag(["a", "dog"]))
        2
    """

    def __init__(
        self,
        model: TaggingModel,
        vocabulary: Vocabulary,
        columns: str,
        metadata: Mapping[str, Any] | None = None,
        layout: Layout | None = None,
    ) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.columns = columns
        self.metadata = dict(metadata or {})
        self.layout = layout or Layout.of_columns(columns)

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return self.model.projection.weight.device

    def to(self, device: str | torch.device) -> "Tagger":
        """Moves the model to a device, in place, and returns the tagger."""
        self.model.to(device)
        return self

    def tag(self, words: Sequence[str]) -> list[str]:
        """Returns the tags of one sentence, one per word.

        Raises:
            TypeError: if `words` is a string.
        """
        if isinstance(words, str):
            raise TypeError(complaint("words", "be a list of words", "a string", "split it, for example words.split()"))
        return next(self.tag_all([words]))

    def tag_all(self, sentences: Iterable[Sequence[str]], batch_tokens: int = 4096) -> Iterator[list[str]]:
        """Yields the tags of each sentence, in order. The input is streamed, so memory does not grow with it.

        Args:
            sentences: lists of words.
            batch_tokens: batch size in words, padding included.
        """
        for chunk in _chunks(sentences):
            yield from self._predict(chunk, batch_tokens)

    def tag_sentences(
        self, sentences: Iterable[Sentence], batch_tokens: int = 4096, *, buffered: bool = True
    ) -> Iterator[tuple[Sentence, list[str]]]:
        """Yields each sentence with its predicted tags, for sentences from `linearcore.tagging.readers`.

        Args:
            sentences: the sentences.
            batch_tokens: batch size in words, padding included.
            buffered: read some hundred sentences and tag them in batches of similar length. False tags each sentence as soon
                as it is read, which is slower.
        """
        for chunk in _chunks(sentences, _CHUNK_SENTENCES if buffered else 1):
            yield from zip(chunk, self._predict([sentence.words for sentence in chunk], batch_tokens), strict=True)

    def evaluation(self, columns: str | None = None) -> Evaluation:
        """Returns an empty `Evaluation` with the training vocabulary.

        Args:
            columns: columns of the gold tags, in the syntax of `--tag`: some or all of those that the tagger predicts. None
                for all of them.

        Raises:
            ValueError: if the tagger does not predict a column.
        """
        return Evaluation(
            self.vocabulary.word_numbers,
            self.vocabulary.tag_numbers,
            columns=self.columns if columns is None else columns,
            predicted_columns=self.columns,
        )

    def evaluate(self, sentences: Iterable[Sentence], columns: str | None = None) -> Evaluation:
        """Compares predicted tags with the tags of the sentences; `columns` as in `evaluation`."""
        evaluation = self.evaluation(columns)
        for sentence, tags in self.tag_sentences(sentences):
            evaluation.add(sentence.words, sentence.tags or [], tags)
        return evaluation

    def _predict(self, sentences: Sequence[Sequence[str]], batch_tokens: int) -> list[list[str]]:
        self.model.eval()
        predictions: list[list[str]] = [[] for _ in sentences]
        corpus = Corpus.of(((words, [""] * len(words)) for words in sentences), self.vocabulary, self.model.encoder)
        for bucket in batches(corpus.lengths, batch_tokens):
            batch = corpus.batch(bucket).to(self.device)
            rows = self.model.decode(batch.mask, batch.inputs).tolist()
            for member, row in zip(bucket.members, rows, strict=True):
                predictions[member] = [self.vocabulary.tags[tag] for tag in row[: len(sentences[member])]]
        return predictions

    def export(self, path: str | Path) -> "ExportedFiles":
        """Writes the whole tagger, decoding included, as one graph for use without this class.

        Batch size and sentence length are dynamic. Words are turned into integers outside the graph; what this needs is
        written to a JSON file beside it, and a script that runs the graph to a Python file. `ExportedTagger` runs it, too.

        Args:
            path: MODEL.onnx for ONNX, which needs onnx and onnxscript, or MODEL.pt2 for torch.export. The other two files
                are MODEL.json and MODEL.py.

        Raises:
            ValueError: if `path` has another ending.
            MissingExtraError: if a package is missing.
            OSError: if a file cannot be written.
        """
        from linearcore.tagging.export import export_tagger

        return export_tagger(self, path)

    def to_hugging_face(self) -> "tuple[ChainForTokenClassification, PreTrainedTokenizerFast]":
        """Returns a copy of a tagger with a transformer as Hugging Face model, and its tokenizer; both can be saved.

        Raises:
            ValueError: if the encoder is not a transformer, or its tokenizer does not show where words start.
            MissingExtraError: if transformers is not installed.
        """
        from linearcore.tagging.hugging_face import from_tagger

        return from_tagger(self)

    def save(self, folder: str | Path) -> None:
        """Writes the tagger as safetensors and JSON into `folder`; the folder can be copied to another machine.

        Raises:
            OSError: if the folder cannot be written.
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
            settings={
                "columns": self.columns,
                "layout": self.layout.to_json(),
                "encoder": encoder.kind,
                "model": self.model.settings(),
                "told": self.metadata,
            },
            documents={"encoder": encoder_settings, "vocabulary": self.vocabulary.to_json()},
            tensors=self.model.state_dict(),
            files=files,
        )

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device = "cpu") -> "Tagger":
        """Returns the tagger that `save` wrote.

        Raises:
            StoreError: if the folder is not a saved tagger, or is damaged.
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
            # Earlier versions did not save the layout.
            layout = Layout.from_json(settings["layout"]) if "layout" in settings else None
            tagger = cls(model, vocabulary, settings["columns"], settings["told"], layout)
        except (KeyError, TypeError, ValueError, RuntimeError, OSError) as error:
            reason = " ".join(str(error).split())[:200]
            advice = f"train it again, or load it with linearcore {stored.written_by.get('linearcore', 'of that time')}"
            raise StoreError(f"{folder} does not fit this version of linearcore: {reason}; {advice}") from None
        model.eval()
        return tagger.to(device)


def _chunks(items: Iterable[Item], size: int = _CHUNK_SENTENCES) -> Iterator[list[Item]]:
    """Yields lists of `size` items. If reading fails, the items before the error are still yielded."""
    chunk: list[Item] = []
    try:
        for item in items:
            chunk.append(item)
            if len(chunk) == size:
                yield chunk
                chunk = []
    except GeneratorExit:
        raise
    except Exception:
        yield chunk
        raise
    yield chunk
