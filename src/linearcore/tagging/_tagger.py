"""A trained tagger: prediction, evaluation, saving and loading."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.runtime import StoreError, read_store, write_store
from linearcore.tagging._batches import batches_by_length
from linearcore.tagging._evaluation import Evaluation
from linearcore.tagging._heads import check_count
from linearcore.tagging._model import TaggingModel
from linearcore.tagging._prediction import Decoding, Prediction
from linearcore.tagging._sentences import to_sentences, to_tagged_sentences, to_words
from linearcore.tagging._vocabulary import Vocabulary
from linearcore.tagging.encoders import encoder_class
from linearcore.tagging.readers import Sentence

KIND = "tagger"
#: Number of sentences read at a time and sorted into batches of similar length; it bounds the memory.
_CHUNK_SENTENCES = 512
#: Default batch size in words.
_BATCH_TOKENS = 4096

Item = TypeVar("Item")


class Tagger:
    """A trained sequence tagger, made by `linearcore tag train` or `linearcore.tagging.train` and loaded by `Tagger.load`.

    Args:
        model: encoder, projection and head.
        vocabulary: words and tags of the training sentences.
        columns: the tag columns of a file, in the syntax of `--tag`.
        metadata: training settings and results, as JSON values.

    Example:
        >>> from linearcore.tagging.encoders import BiLSTM
        >>> vocabulary = Vocabulary.of([(["a", "cat"], ["DET", "NOUN"])])
        >>> tagger = Tagger(TaggingModel(BiLSTM(vocabulary.words), 2), vocabulary, "upos")
        >>> len(tagger.tag(["a", "dog"]))
        2
    """

    def __init__(
        self, model: TaggingModel, vocabulary: Vocabulary, columns: str, metadata: Mapping[str, Any] | None = None
    ) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.columns = columns
        self.metadata = dict(metadata or {})

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return self.model.projection.weight.device

    def to(self, device: str | torch.device) -> "Tagger":
        """Moves the model to a device, in place, and returns the tagger."""
        self.model.to(device)
        return self

    def tag(self, words: Iterable[str]) -> list[str]:
        """Returns the tags of one sentence, one per word.

        Raises:
            TypeError: if `words` is a string, or a word is not.
        """
        return self._predict_batches([to_words("words", words)], self._decoding(), 1)[0].tags

    def tag_all(self, sentences: Iterable[Iterable[str]], batch_tokens: int = _BATCH_TOKENS) -> Iterator[list[str]]:
        """Yields the tags of each sentence, in order. The input is streamed, so memory does not grow with it.

        Args:
            sentences: lists or other iterables of words, or dicts with "tokens"; a sentence may be empty.
            batch_tokens: batch size in words, padding included.

        Raises:
            TypeError: if a sentence is a string, or a word is not; the message has their indices.
        """
        return (prediction.tags for prediction in self.predict(sentences, batch_tokens=batch_tokens))

    def predict(
        self,
        sentences: Iterable[Iterable[str]],
        *,
        confidences: bool = False,
        margin: bool = False,
        kbest: int = 1,
        beam: int | None = None,
        batch_tokens: int = _BATCH_TOKENS,
    ) -> Iterator[Prediction]:
        """Yields the prediction of each sentence, in order. The input is streamed, as in `tag_all`.

        Args:
            sentences: as in `tag_all`.
            confidences: also compute the confidence of each tag; `Prediction` says what it is for each loss.
            margin: also compute the difference in score to the second-best sequence.
            kbest: number of sequences to return; 1 returns no list of sequences.
            beam: beam width; 0 is exact search; None is the model's own setting. `margin` and `kbest` always search exactly.
            batch_tokens: batch size in words, padding included.

        Raises:
            TypeError: if a sentence is a string, or a word is not; the message has their indices.
            ValueError: if an option is out of range, or no allowed sequence of tags exists for a sentence.
        """
        decoding = self._decoding(confidences=confidences, margin=margin, kbest=kbest, beam=beam)
        check_count("batch_tokens", batch_tokens)
        return (
            prediction
            for first, chunk in _chunks(to_sentences("sentences", sentences))
            for prediction in self._predict_batches(chunk, decoding, batch_tokens, first)
        )

    def predict_sentences(
        self, sentences: Iterable[Sentence], *, batch_tokens: int = _BATCH_TOKENS, **options: Any
    ) -> Iterator[tuple[Sentence, Prediction]]:
        """Yields each sentence with its prediction, for sentences from `linearcore.tagging.readers`.

        Options and errors as in `predict`.
        """
        decoding = self._decoding(**options)
        check_count("batch_tokens", batch_tokens)
        return (
            pair
            for first, chunk in _chunks(sentences)
            for pair in zip(
                chunk,
                self._predict_batches([sentence.words for sentence in chunk], decoding, batch_tokens, first),
                strict=True,
            )
        )

    def tag_sentences(
        self, sentences: Iterable[Sentence], batch_tokens: int = _BATCH_TOKENS
    ) -> Iterator[tuple[Sentence, list[str]]]:
        """Yields each sentence with its predicted tags, for sentences from `linearcore.tagging.readers`."""
        for sentence, prediction in self.predict_sentences(sentences, batch_tokens=batch_tokens):
            yield sentence, prediction.tags

    def evaluation(self) -> Evaluation:
        """Returns an empty `Evaluation` with the training vocabulary."""
        return Evaluation(self.vocabulary.word_numbers, self.vocabulary.tag_numbers)

    def evaluate(self, sentences: Iterable[Any]) -> Evaluation:
        """Compares predicted tags with the tags of the sentences.

        Args:
            sentences: pairs (words, tags), dicts with "tokens" and "tags", or sentences from `linearcore.tagging.readers`.
                Empty sentences are skipped.

        Raises:
            TypeError: if a sentence is something else, or a word or a tag is not a string; the message has their indices.
            ValueError: if the numbers of words and tags of a sentence differ.
        """
        evaluation, decoding = self.evaluation(), self._decoding()
        for first, chunk in _chunks(to_tagged_sentences("sentences", sentences)):
            predictions = self._predict_batches([words for words, _ in chunk], decoding, _BATCH_TOKENS, first)
            for (words, tags), prediction in zip(chunk, predictions, strict=True):
                if words:
                    evaluation.add(words, tags, prediction.tags)
        return evaluation

    def _decoding(self, **options: Any) -> Decoding:
        return Decoding.of(self.model.head, self.vocabulary.tags, self.model.beam, **options)

    @torch.no_grad()
    def _predict_batches(
        self, sentences: Sequence[list[str]], decoding: Decoding, batch_tokens: int, first: int = 0
    ) -> list[Prediction]:
        """Returns the predictions of sentences whose indices for error messages start at `first`."""
        if self.model.training:
            self.model.eval()
        lengths = [len(words) for words in sentences]
        predictions = [decoding.empty()] * len(sentences)
        for members in batches_by_length(lengths, batch_tokens):
            members = [member for member in members if lengths[member]]
            if not members:
                continue
            emissions, mask = self._emissions([sentences[member] for member in members])
            found = decoding.predictions(emissions, mask, [lengths[member] for member in members])
            for member, prediction in zip(members, found, strict=True):
                if prediction is None:
                    raise ValueError(self._no_sequence(first + member, lengths[member]))
                predictions[member] = prediction
        return predictions

    def _emissions(self, sentences: Sequence[list[str]]) -> tuple[Tensor, Tensor | None]:
        """Returns emissions (B, L, |Y|) and the mask (B, L), None if all sentences have the same length."""
        encoder, device = self.model.encoder, self.device
        lengths = [len(words) for words in sentences]
        longest = max(lengths)
        inputs = encoder.collate([encoder.featurize(words) for words in sentences], longest)
        if device.type != "cpu":
            inputs = {name: tensor.to(device) for name, tensor in inputs.items()}
        mask = (torch.arange(longest) < torch.tensor(lengths).unsqueeze(-1)).to(device)
        emissions = self.model.emissions(mask, inputs).float()
        return emissions, None if min(lengths) == longest else mask

    def _no_sequence(self, index: int, length: int) -> str:
        head = self.model.head
        if head is not None and head.constraints is not None and not head.constraints.has_path(length):
            advice = "split or merge sentences, or train with other constraints"
            return complaint(
                "sentences", "have lengths that the constraints allow", f"{length} words in sentence {index}", advice
            )
        advice = "the weights contain NaN or infinite numbers; train the tagger again"
        return complaint("sentences", "have a sequence of tags with a finite score", f"none for sentence {index}", advice)

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
            model = TaggingModel(encoder, vocabulary.tags, **settings["model"])
            model.load_state_dict(stored.tensors)
            tagger = cls(model, vocabulary, settings["columns"], settings["told"])
        except (KeyError, TypeError, ValueError, RuntimeError, OSError) as error:
            reason = " ".join(str(error).split())[:200]
            advice = f"train it again, or load it with linearcore {stored.written_by.get('linearcore', 'of that time')}"
            raise StoreError(f"{folder} does not fit this version of linearcore: {reason}; {advice}") from None
        model.eval()
        return tagger.to(device)


def _chunks(items: Iterable[Item]) -> Iterator[tuple[int, list[Item]]]:
    """Yields lists of `_CHUNK_SENTENCES` items, each with the index of its first item.

    If reading fails, the items before the error are still yielded.
    """
    first, chunk = 0, list[Item]()
    try:
        for item in items:
            chunk.append(item)
            if len(chunk) == _CHUNK_SENTENCES:
                yield first, chunk
                first, chunk = first + len(chunk), []
    except GeneratorExit:
        raise
    except Exception:
        yield first, chunk
        raise
    yield first, chunk
