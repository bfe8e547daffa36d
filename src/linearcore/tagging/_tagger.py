"""A trained tagger: prediction, evaluation, saving and loading."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from linearcore.runtime import StoreError, read_store, write_store
from linearcore.structures import Cost
from linearcore.tagging._composition import Composition
from linearcore.tagging._evaluation import Evaluation
from linearcore.tagging._model import TaggingModel
from linearcore.tagging._prediction import Prediction
from linearcore.tagging._predictor import BATCH_TOKENS, Predictor
from linearcore.tagging._sentences import to_sentences, to_tagged_sentences, to_words
from linearcore.tagging._vocabulary import Vocabulary
from linearcore.tagging.encoders import encoder_class
from linearcore.tagging.readers import Layout, Sentence

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from linearcore.tagging.export import ExportedFiles
    from linearcore.tagging.hugging_face import ChainForTokenClassification

KIND = "tagger"


class Tagger:
    """A trained sequence tagger, made by `linearcore tag train` or `linearcore.tagging.train` and loaded by `Tagger.load`.

    Args:
        model: encoder, projection and head.
        vocabulary: words and tags of the training sentences.
        columns: the tag columns of a file, in the syntax of `--tag`.
        metadata: training settings and results, as JSON values.
        layout: the file format of the training files. None: CoNLL-U if `columns` are CoNLL-U column names, otherwise column
            files with one token per line.

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
        return self.model.device

    def to(self, device: str | torch.device) -> "Tagger":
        """Moves the model to a device, in place, and returns the tagger."""
        self.model.to(device)
        return self

    def tag(self, words: Iterable[str]) -> list[str]:
        """Returns the tags of one sentence, one per word.

        Raises:
            TypeError: if `words` is a string, or a word is not.
        """
        return self._predictor().predict([to_words("words", words)])[0].tags

    def tag_all(self, sentences: Iterable[Iterable[str]], batch_tokens: int = BATCH_TOKENS) -> Iterator[list[str]]:
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
        decode_for: str | Cost | None = None,
        candidates: int | None = None,
        temperature: float | None = None,
        batch_tokens: int = BATCH_TOKENS,
    ) -> Iterator[Prediction]:
        """Yields the prediction of each sentence, in order. The input is streamed, as in `tag_all`.

        Args:
            sentences: as in `tag_all`.
            confidences: also compute the confidence of each tag; `Prediction` says what it is for each loss.
            margin: also compute the difference in score to the second-best sequence.
            kbest: k > 1 also returns the k best sequences, in `Prediction.kbest`.
            beam: beam width; 0 is exact search; None is the model's own setting. `margin` and `kbest` always search exactly.
            decode_for: return the tags with the least expected cost, such as "span-f1" or "edit", instead of those with the
                best score; see `ChainHead.minimum_risk`. Not with `margin`, `kbest` or `beam`.
            candidates, temperature: options of `minimum_risk`, for `decode_for`; None for its defaults.
            batch_tokens: batch size in words, padding included.

        Raises:
            TypeError: if a sentence is a string, or a word is not; the message has their indices.
            ValueError: if an option is out of range or does not fit the others or the tags, or no allowed sequence of tags
                exists for a sentence.

        Example:
            >>> from linearcore.tagging.encoders import BiLSTM
            >>> vocabulary = Vocabulary.of([(["a", "cat"], ["DET", "NOUN"])])
            >>> tagger = Tagger(TaggingModel(BiLSTM(vocabulary.words), 2), vocabulary, "upos")
            >>> prediction = next(tagger.predict([["a", "dog"]], confidences=True, kbest=3))
            >>> len(prediction.tags), len(prediction.confidences), len(prediction.kbest), prediction.margin
            (2, 2, 3, None)
        """
        predictor = self._predictor(
            confidences=confidences,
            margin=margin,
            kbest=kbest,
            beam=beam,
            decode_for=decode_for,
            candidates=candidates,
            temperature=temperature,
            batch_tokens=batch_tokens,
        )
        pairs = predictor.stream(to_sentences("sentences", sentences), lambda words: words)
        return (prediction for _, prediction in pairs)

    def predict_sentences(self, sentences: Iterable[Sentence], **options: Any) -> Iterator[tuple[Sentence, Prediction]]:
        """Yields each sentence with its prediction, for sentences from `linearcore.tagging.readers`.

        Args:
            sentences: the sentences.
            options: those of `predict`, and `buffered`, as in `tag_sentences`.
        """
        return self._predictor(**options).stream(sentences, lambda sentence: sentence.words)

    def tag_sentences(
        self, sentences: Iterable[Sentence], batch_tokens: int = BATCH_TOKENS, *, buffered: bool = True
    ) -> Iterator[tuple[Sentence, list[str]]]:
        """Yields each sentence with its predicted tags, for sentences from `linearcore.tagging.readers`.

        Args:
            sentences: the sentences.
            batch_tokens: batch size in words, padding included.
            buffered: read some hundred sentences and tag them in batches of similar length. False tags each sentence as soon
                as it is read, which is slower.
        """
        pairs = self.predict_sentences(sentences, batch_tokens=batch_tokens, buffered=buffered)
        return ((sentence, prediction.tags) for sentence, prediction in pairs)

    def evaluation(self, columns: str | None = None, *, cost: str | None = None) -> Evaluation:
        """Returns an empty `Evaluation` with the training vocabulary.

        Args:
            columns: columns of the gold tags, in the syntax of `--tag`: some or all of those that the tagger predicts. None
                for all of them.
            cost: name of a cost whose mean over sentences is computed as well.

        Raises:
            ValueError: if the tagger does not predict a column, or the cost is not defined for the tags.
        """
        return Evaluation(
            self.vocabulary.word_numbers,
            self.vocabulary.seen_tags,
            columns=self.columns if columns is None else columns,
            predicted_columns=self.columns,
            cost=cost,
        )

    def evaluate(
        self, sentences: Iterable[Any], columns: str | None = None, *, decode_for: str | None = None, **options: Any
    ) -> Evaluation:
        """Compares predicted tags with the tags of the sentences.

        Args:
            sentences: pairs (words, tags), dicts with "tokens" and "tags", or sentences from `linearcore.tagging.readers`.
                Empty sentences are skipped.
            columns: as in `evaluation`.
            decode_for: name of a cost: predict the tags with the least expected cost, and report the mean cost.
            options: further options of `predict`.

        Raises:
            TypeError: if a sentence is something else, or a word or a tag is not a string; the message has their indices.
            ValueError: if the numbers of words and tags of a sentence differ, or the tagger does not predict a column.
        """
        evaluation = self.evaluation(columns, cost=decode_for)
        tagged = to_tagged_sentences("sentences", sentences)
        predictor = self._predictor(decode_for=decode_for, **options)
        for (words, tags), prediction in predictor.stream(tagged, lambda pair: pair[0]):
            if words:
                evaluation.add(words, tags, prediction.tags)
        return evaluation

    def _predictor(self, **options: Any) -> Predictor:
        return Predictor(self.model, self.vocabulary.tags, **options)

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
        model = self.model.settings()
        if model.get("cost") is None:  # Earlier versions do not know it.
            model.pop("cost", None)
        write_store(
            folder,
            KIND,
            settings={
                "columns": self.columns,
                "layout": self.layout.to_json(),
                "encoder": encoder.kind,
                "model": model,
                "told": self.metadata,
                # Only where it is True, so other taggers can be loaded by earlier versions.
                **({} if self.model.composition is None else {"composed": True}),
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
            composition = Composition.of(vocabulary) if settings.get("composed") else None
            model = TaggingModel(encoder, vocabulary.tags, composition=composition, **settings["model"])
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
