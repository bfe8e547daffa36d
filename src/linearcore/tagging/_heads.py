"""The heads that a tagger may have, and their options; the command line, `Training` and Hugging Face's classes read them.

A new head is one line in `HEADS`. A new option is one field of `HeadSettings`, or of `ChainSettings` if only Hugging Face's
classes offer it, and its name in `HEADS`; `keywords` says what the head is made with, if that is not the option itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import torch

from linearcore._checks import complaint, one_of, positive
from linearcore.forms import FORMS
from linearcore.heads import ChainCRF, ChainHead, ChainSSVM, LinearCoreChain
from linearcore.structures import bio, bioes, bmes
from linearcore.surrogates import LinearCore

#: With more tags than this, a beam of `BEAM` decodes by default: on real text it finds what an exact search finds
#: (docs/replace-a-crf.md), and does not slow down where scores are flat.
MOST_EXACT, BEAM = 600, 16
#: Schemes of segments whose rules can be read off the names of the labels.
SCHEMES = {"bio": bio, "bioes": bioes, "bmes": bmes}


@dataclass(frozen=True)
class Head:
    """A head as the tagger knows it.

    Attributes:
        label: what it is, for `--help`.
        make: makes it from the number of tags; None tags each word on its own, by token cross-entropy.
        options: the fields of `HeadSettings` and `ChainSettings` that it takes.
        can_compile: whether a compiler finds something to fuse in the loss.
    """

    label: str
    make: Callable[..., ChainHead] | None
    options: tuple[str, ...] = ()
    can_compile: bool = False


_CHAIN = ("rank", "beam", "constraints")
_LINEAR_CORE = (*_CHAIN, "unary", "sharpness", "surrogate", "form", "normalize")
#: What `loss` may be.
HEADS: dict[str, Head] = {
    "lc": Head("linear core", LinearCoreChain, _LINEAR_CORE, can_compile=True),
    "crf": Head("conditional random field", ChainCRF, _CHAIN),
    "ssvm": Head("structured SVM", ChainSSVM, _CHAIN),
    "ce": Head("token cross-entropy", None, can_compile=True),
}

Keywords = dict[str, Any]


def _option(help: str, check: Callable[[str, Any], object], keywords: Callable[[Any], Keywords] | None = None) -> Any:
    """An option that is None unless given: its line for `--help`, its check, and what a head is made with for a value."""
    return field(default=None, metadata={"help": help, "check": check, "keywords": keywords})


def check_count(name: str, value: Any) -> None:
    """Raises unless it is a positive integer."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(complaint(name, "be a positive integer", repr(value), "leave it out for the default"))


def check_share(name: str, value: Any) -> None:
    """Raises unless it is a number in [0, 1)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise ValueError(complaint(name, "be a share in [0, 1)", repr(value), "for example 0.1"))


def _check_width(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(complaint(name, "be a width, or 0 for exact search", repr(value), "for example 16"))


def _check_truth(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(complaint(name, "be True or False", repr(value), "leave it out for the default"))


def _check_surrogate(name: str, value: Any) -> None:
    for argument in value:
        one_of(name, argument, ("base", "tau", "sides", "sharpness"), "pass arguments of linearcore.LinearCore")


@dataclass(frozen=True)
class HeadSettings:
    """Which head a tagger has, and its options. An option is None unless it is given.

    Attributes:
        loss: "lc" (`LinearCoreChain`), "crf" (`ChainCRF`), "ssvm" (`ChainSSVM`), or "ce", token cross-entropy, no chain.
        rank: of the transitions; by default a full matrix.
        unary: of "lc": the share of the loss that is put on the emissions alone, as in `LinearCoreChain`; by default 0.
        sharpness: of "lc": how fast its surrogate bends behind the core, as in `LinearCore`; by default 1.
        beam: width of the beam that decodes; 0 is exact search, by default exact for up to `MOST_EXACT` tags.

    Raises:
        ValueError: if there is no such loss, an option is out of range, or the loss does not take it.
    """

    loss: str = field(
        default="lc", metadata={"help": f"One of {', '.join(f'{name} ({head.label})' for name, head in HEADS.items())}."}
    )
    rank: int | None = _option("Transitions of this rank; by default a full matrix.", check_count)
    unary: float | None = _option(
        "With lc: the share of the loss, from 0 (the default) to below 1, that is put on each word alone, without its "
        "neighbours' tags. In training these are the true ones, in tagging they are guesses: with 0.5 a tagger relies on "
        "them less. Try it with hundreds of tags and more.",
        check_share,
    )
    sharpness: float | None = _option(
        "With lc: how fast the loss fades for words that are right by a margin; by default 1.",
        lambda name, value: positive(name, value, "for example 4"),
        lambda value: {"surrogate": LinearCore(sharpness=value)},
    )
    beam: int | None = _option(
        "Decode with a beam of this width, 0: exactly; by default exactly up to 600 tags.", _check_width, lambda value: {}
    )

    def __post_init__(self) -> None:
        one_of("loss", self.loss, HEADS)
        for option in fields(self):
            value = getattr(self, option.name)
            if value is None or "check" not in option.metadata:
                continue
            if option.name not in HEADS[self.loss].options:
                takers = " or ".join(repr(name) for name, head in HEADS.items() if option.name in head.options)
                advice = f"it is an option of loss {takers}: leave it out, or take that"
                raise ValueError(complaint(option.name, f"be None with loss {self.loss!r}", repr(value), advice))
            option.metadata["check"](option.name, value)

    def head_options(self) -> dict[str, Any]:
        """The loss and its options alone, as JSON values."""
        return {option.name: getattr(self, option.name) for option in fields(HeadSettings)}

    def width(self, num_tags: int) -> int:
        """Of the beam that decodes so many tags; 0 is exact search."""
        return (0 if num_tags <= MOST_EXACT else BEAM) if self.beam is None else self.beam

    def make_head(self, num_tags: int, **others: Any) -> ChainHead | None:
        """The head with fresh scores, batch first; None for token cross-entropy. `others` go to the head as they are."""
        make, chosen = HEADS[self.loss].make, dict(others)
        if make is None:
            return None
        for option in fields(self):
            value = getattr(self, option.name)
            if value is not None and "check" in option.metadata:
                keywords = option.metadata["keywords"]
                chosen |= {option.name: value} if keywords is None else keywords(value)
        return make(num_tags, batch_first=True, **chosen)


@dataclass(frozen=True)
class ChainSettings(HeadSettings):
    """`HeadSettings`, and the options of a head whose labels have names: those of `hugging_face.ChainConfig`.

    Attributes:
        surrogate: of "lc": arguments of `LinearCore`, any of base (a name), tau, sides, sharpness; by default its own.
        form: of "lc": "logodds", "pairwise" or "centered"; by default "logodds".
        normalize: of "lc": the mean over the candidates (True) or their sum (False), as in `LinearCoreChain`; by default
            what the form's name means there. It is always saved; files of earlier versions have none and mean the sum.
        constraints: "bio", "bioes" or "bmes": the rules of that scheme, read off the labels, hold in training and decoding.
    """

    surrogate: Mapping[str, Any] | None = _option(
        "Arguments of LinearCore.", _check_surrogate, lambda value: {"surrogate": LinearCore(**value)}
    )
    form: str | None = _option(
        f"With lc: {', '.join(FORMS)}; by default logodds.", lambda name, value: one_of(name, value, FORMS)
    )
    normalize: bool | None = _option("With lc: the mean over the candidates, or their sum.", _check_truth)
    constraints: str | None = _option(
        f"Rules of {', '.join(SCHEMES)}, read off the labels.",
        lambda name, value: one_of(name, value, SCHEMES, "or None, for none"),
        lambda value: {},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.surrogate is not None and self.sharpness is not None:
            raise ValueError(complaint("sharpness", "be None beside `surrogate`", self.sharpness, "write it in there"))

    def make_chain(self, labels: Sequence[str], **others: Any) -> ChainHead | None:
        """`make_head` with the rules for these labels."""
        if self.constraints is not None:
            # While weights are read, transformers makes new tensors on "meta", where rules cannot be checked.
            with torch.device("cpu"):
                others["constraints"] = SCHEMES[self.constraints](labels)
        return self.make_head(len(labels), **others)
