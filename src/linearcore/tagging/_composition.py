"""Composed tags: scores of `upos+feats` tags as sums over their parts, so tags that never occurred can be predicted."""

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from math import log

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized, register_parametrization, type_before_parametrizations

from linearcore._checks import complaint
from linearcore.heads import ChainHead
from linearcore.tagging._vocabulary import Vocabulary

#: Subtracted from the emission scores of tags that do not occur, in training.
UNSEEN_DISCOUNT = 2.0
#: The features of a tag without features.
_NO_FEATURES = "_"


def tag_parts(tag: str) -> list[str]:
    """Returns the parts of a tag: its part of speech, and each feature with its value.

    Raises:
        ValueError: if the tag is not a part of speech, a space, and features as in CoNLL-U.

    Example:
        >>> tag_parts("NOUN Case=Nom|Number=Sing"), tag_parts("ADP _")
        (['NOUN', 'Case=Nom', 'Number=Sing'], ['ADP'])
    """
    pos, _, features = tag.rpartition(" ")
    parts = [] if features == _NO_FEATURES else features.split("|")
    if not pos or not all(name and value for name, _, value in (part.partition("=") for part in parts)):
        must, advice = (
            "have tags such as 'NOUN Case=Nom|Number=Sing' with `compose`",
            "use --tag upos+feats, or omit --compose",
        )
        raise ValueError(complaint("sentences", must, repr(tag), advice))
    return [pos, *parts]


def unseen_tags(counts: Mapping[str, int], limit: int) -> list[str]:
    """Returns tags that do not occur, composed of parts that do, the most probable first.

    A tag has a part of speech and a set of features that occurred together, and values that occurred with this part of
    speech. Its probability is that of independent values: P(pos, features) · Π P(value | pos, feature).

    Args:
        counts: the tags that occur and their counts.
        limit: maximum number of new tags.

    Example:
        >>> seen = {"NOUN Case=Nom|Number=Sing": 5, "NOUN Case=Acc|Number=Plur": 2, "ADP _": 9}
        >>> unseen_tags(seen, limit=10)
        ['NOUN Case=Acc|Number=Sing', 'NOUN Case=Nom|Number=Plur']

    Time O(limit · features · log), however many tags could be composed.
    """
    shapes: Counter[tuple[str, ...]] = Counter()
    values: dict[tuple[str, str], Counter[str]] = {}
    for tag, count in counts.items():
        pos, *features = tag_parts(tag)
        names = [feature.partition("=")[0] for feature in features]
        shapes[pos, *names] += count
        for name, feature in zip(names, features, strict=True):
            values.setdefault((pos, name), Counter())[feature] += count
    streams = [_most_probable(shape, log(count), values) for shape, count in shapes.items()]
    # Ties are broken by the name of the tag, so the result does not depend on the order of the sentences.
    tags = (tag for _, tag in heapq.merge(*streams) if tag not in counts)
    return list(islice(tags, limit))


def _most_probable(
    shape: tuple[str, ...], log_count: float, values: Mapping[tuple[str, str], Counter[str]]
) -> Iterator[tuple[float, str]]:
    """Yields (−log probability, tag) of all tags with this part of speech and these features, the most probable first."""
    pos, *names = shape
    choices: list[list[tuple[float, str]]] = []
    for name in names:
        counts = values[pos, name]
        total = log(counts.total())
        choices.append(sorted((total - log(count), feature) for feature, count in counts.items()))

    def entry(places: tuple[int, ...]) -> tuple[float, str, tuple[int, ...]]:
        chosen = [choice[place] for choice, place in zip(choices, places, strict=True)]
        features = "|".join(feature for _, feature in chosen) or _NO_FEATURES
        return sum(cost for cost, _ in chosen) - log_count, f"{pos} {features}", places

    start = (0,) * len(names)
    heap, visited = [entry(start)], {start}
    while heap:
        cost, tag, places = heapq.heappop(heap)
        yield cost, tag
        for column, place in enumerate(places):
            following = (*places[:column], place + 1, *places[column + 1 :])
            if place + 1 < len(choices[column]) and following not in visited:
                visited.add(following)
                heapq.heappush(heap, entry(following))


@dataclass(frozen=True)
class Composition:
    """The parts of each tag, and which tags occur in the training data.

    Attributes:
        incidence: (|Y|, parts), 1 where a tag has a part.
        is_seen: (|Y|,), 1 for tags that occur in the training data.
    """

    incidence: Tensor
    is_seen: Tensor

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> "Composition":
        """Returns the composition of the tags of a vocabulary.

        Raises:
            ValueError: if a tag is not a part of speech, a space, and features as in CoNLL-U.
        """
        parts = [tag_parts(tag) for tag in vocabulary.tags]
        # In the order of their first occurrence, so tags that are added later do not change the numbers of earlier parts.
        numbers = {part: number for number, part in enumerate(dict.fromkeys(part for row in parts for part in row))}
        incidence = torch.zeros(len(parts), len(numbers))
        for row, names in zip(incidence, parts, strict=True):
            row[[numbers[name] for name in names]] = 1.0
        return cls(incidence, torch.tensor([float(tag in vocabulary.seen_tags) for tag in vocabulary.tags]))

    def apply(self, projection: nn.Linear, head: ChainHead | None) -> None:
        """Composes all parameters with a row per tag: weight and bias; start, end and transition scores of the head."""
        modules: list[nn.Module] = [projection] if head is None else [projection, head]
        for module in modules:
            for name, value in list(module.named_parameters()):
                discount = UNSEEN_DISCOUNT if name == "bias" else 0.0
                is_matrix_of_tags = name == "transitions"
                parts = SumOfParts(self, value, discount=discount, is_matrix_of_tags=is_matrix_of_tags)
                register_parametrization(module, name, parts)


def plain_copy(module: nn.Module) -> nn.Module:
    """Returns a copy in eval mode whose composed parameters are plain parameters with the same values."""
    copy = deepcopy(module).eval()
    if is_parametrized(copy):
        assert isinstance(copy.parametrizations, nn.ModuleDict)
        values = {name: getattr(copy, name).detach() for name in copy.parametrizations}
        # Not `remove_parametrizations`: it changes the class, which `module` shares.
        copy.__class__ = type_before_parametrizations(copy)
        del copy.parametrizations
        for name, value in values.items():
            copy.register_parameter(name, nn.Parameter(value))
    return copy


class SumOfParts(nn.Module):
    """Parametrization of a tensor with a row per tag: the sum of the rows of the tag's parts, and a row of its own.

        value[tag] = Σ_parts rows[part] + own[tag]                    own[tag] only if the tag occurs in the training data
        value[tag, tag'] = Σ_parts Σ_parts' rows[part, part'] + own[tag, tag']      for a full matrix of transitions

    In the training data tags without an own row are always wrong, and the model would learn never to predict them. So in
    training each tag's own row is dropped with probability ½ (and doubled otherwise), and `discount` is subtracted from the
    scores of tags that do not occur, so the loss lowers them less.

    Args:
        composition: the parts of the tags.
        value: the tensor to compose. Its entries are the scale of the initial rows; it becomes `own`, which starts at 0.
        discount: subtracted in training for tags that do not occur.
        is_matrix_of_tags: compose both dimensions of `value`.

    Cost: a product of (|Y|, parts) with (parts, size of a row) whenever the tensor is read.
    """

    incidence: Tensor
    is_seen: Tensor

    def __init__(self, composition: Composition, value: nn.Parameter, *, discount: float, is_matrix_of_tags: bool) -> None:
        super().__init__()
        self.discount, self.is_matrix_of_tags = discount, is_matrix_of_tags
        # They follow from the tags, so they are not saved.
        self.register_buffer("incidence", composition.incidence.to(value), persistent=False)
        self.register_buffer("is_seen", composition.is_seen.to(value), persistent=False)
        num_parts = composition.incidence.shape[1]
        self.parts = nn.Parameter(torch.empty(num_parts, *([num_parts] if is_matrix_of_tags else value.shape[1:])))
        with torch.no_grad():
            # A tag has four parts or so: the sum has about the scale of `value`.
            self.parts.normal_(0.0, 0.5 * float(value.square().mean().sqrt()))
            value.zero_()

    def forward(self, own: Tensor) -> Tensor:
        value = self.incidence @ self.parts
        weight = self.is_seen
        if self.training:
            weight = weight * 2.0 * torch.randint_like(weight, 2)
        if self.is_matrix_of_tags:
            return value @ self.incidence.t() + own * weight.unsqueeze(1) * self.is_seen
        if self.training and self.discount:
            value = value - self.discount * (1.0 - self.is_seen)
        return value + own * weight.view(-1, *[1] * (own.dim() - 1))
