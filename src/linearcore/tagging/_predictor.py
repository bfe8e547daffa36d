"""Predicts the tags of a stream of sentences, in batches of similar length."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.tagging._batches import batches_by_length
from linearcore.tagging._heads import check_count
from linearcore.tagging._model import TaggingModel
from linearcore.tagging._prediction import Decoding, Prediction

#: Number of sentences read at a time and sorted into batches of similar length; it bounds the memory.
_CHUNK_SENTENCES = 512
#: Default batch size in words.
BATCH_TOKENS = 4096

Item = TypeVar("Item")


class Predictor:
    """Predicts the tags of sentences with the options of `Tagger.predict`.

    Args:
        model: encoder, projection and head.
        tags: names of the tags.
        batch_tokens: batch size in words, padding included.
        buffered: read some hundred sentences and tag them in batches of similar length. False tags each sentence as soon as
            it is read, which is slower.
        options: confidences, margin, kbest, beam, decode_for, candidates, temperature.

    Raises:
        ValueError: if an option is out of range.
    """

    def __init__(
        self,
        model: TaggingModel,
        tags: Sequence[str],
        *,
        batch_tokens: int = BATCH_TOKENS,
        buffered: bool = True,
        **options: Any,
    ) -> None:
        check_count("batch_tokens", batch_tokens)
        self._model, self._batch_tokens = model, batch_tokens
        self._chunk_size = _CHUNK_SENTENCES if buffered else 1
        self._decoding = Decoding.of(model.head, tags, model.beam, **options)

    def stream(self, items: Iterable[Item], words: Callable[[Item], list[str]]) -> Iterator[tuple[Item, Prediction]]:
        """Yields each item with the prediction of its words.

        If reading an item fails, the items before it are still yielded.

        Raises:
            ValueError: if no allowed sequence of tags exists for a sentence; the message has its index.
        """
        first = 0
        for chunk in _chunks(items, self._chunk_size):
            yield from zip(chunk, self.predict([words(item) for item in chunk], first), strict=True)
            first += len(chunk)

    @torch.no_grad()
    def predict(self, sentences: Sequence[list[str]], first: int = 0) -> list[Prediction]:
        """Returns the predictions of sentences whose indices in error messages start at `first`."""
        if self._model.training:
            self._model.eval()
        lengths = [len(words) for words in sentences]
        predictions = [self._decoding.empty() for _ in sentences]
        for members in batches_by_length(lengths, self._batch_tokens):
            members = [member for member in members if lengths[member]]
            if not members:
                continue
            emissions, mask = self._emissions([sentences[member] for member in members])
            found = self._decoding.predictions(emissions, mask, [lengths[member] for member in members])
            for member, prediction in zip(members, found, strict=True):
                if prediction is None:
                    raise ValueError(self._no_sequence(first + member, lengths[member]))
                predictions[member] = prediction
        return predictions

    def _emissions(self, sentences: Sequence[list[str]]) -> tuple[Tensor, Tensor | None]:
        """Returns emissions (B, L, |Y|) and the mask (B, L), None if all sentences have the same length."""
        encoder, device = self._model.encoder, self._model.device
        lengths = [len(words) for words in sentences]
        longest = max(lengths)
        inputs = encoder.collate([encoder.featurize(words) for words in sentences], longest)
        if device.type != "cpu":
            inputs = {name: tensor.to(device) for name, tensor in inputs.items()}
        mask = (torch.arange(longest) < torch.tensor(lengths).unsqueeze(-1)).to(device)
        emissions = self._model.emissions(mask, inputs).float()
        return emissions, None if min(lengths) == longest else mask

    def _no_sequence(self, index: int, length: int) -> str:
        head = self._model.head
        if head is not None and head.constraints is not None and not head.constraints.has_path(length):
            got, advice = f"{length} words in sentence {index}", "split the sentence, or train with other constraints"
            return complaint("sentences", "have lengths that the constraints allow", got, advice)
        advice = "the weights contain NaN or infinite numbers; train the tagger again"
        return complaint("sentences", "have a sequence of tags with a finite score", f"none for sentence {index}", advice)


def _chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yields lists of `size` items. If reading fails, the items before the error are still yielded."""
    chunk: list[Item] = []
    try:
        for item in items:
            chunk.append(item)
            if len(chunk) == size:
                yield chunk
                chunk = []
    except Exception:
        yield chunk
        raise
    yield chunk
