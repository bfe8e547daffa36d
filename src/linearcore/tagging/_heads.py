"""The heads of a tagger and their options, used by the command line, `Training` and the Hugging Face classes.

To add a head, add one line to `HEADS`. To add an option, add a field to `HeadSettings` (or to `ChainSettings` if only the
Hugging Face classes have it) and its name to `HEADS`; `keywords` converts its value to arguments of the head.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import torch

from linearcore._checks import complaint, one_of, positive
from linearcore.forms import FORMS
from linearcore.heads import ChainCRF, ChainHead, ChainSSVM, LinearCoreChain
from linearcore.structures import COST_NAMES, Cost
from linearcore.surrogates import LinearCore
from linearcore.tagging._constraints import SCHEMES, check_constraints, make_constraints
from linearcore.tagging._costs import cost_of_names

#: With more tags than this the default decoder is beam search with width `DEFAULT_BEAM`. On real text it finds the same tags
#: as exact search (docs/replace-a-crf.md), and it is not slower if the scores are nearly uniform.
MAX_EXACT_TAGS, DEFAULT_BEAM = 600, 16
#: With at least this number of tags the options in `Head.many_tags` are the defaults. With 3,499 tags they were better,
#: with 215 to 1,503 tags there was no clear difference (docs/tag-text.md).
MANY_TAGS = 600


@dataclass(frozen=True)
class Head:
    """A head and the options that it accepts.

    Attributes:
        label: description for `--help`.
        make: creates the head from the number of tags; None is token cross-entropy without a chain.
        options: the fields of `HeadSettings` and `ChainSettings` that the head accepts.
        can_compile: whether torch.compile makes the loss faster.
        few_tags, many_tags: defaults of options in training with fewer and with at least `MANY_TAGS` tags.
    """

    label: str
    make: Callable[..., ChainHead] | None
    options: tuple[str, ...] = ()
    can_compile: bool = False
    few_tags: Mapping[str, Any] = field(default_factory=dict)
    many_tags: Mapping[str, Any] = field(default_factory=dict)

    def defaults(self, num_tags: int) -> Mapping[str, Any]:
        """Returns the defaults of options in training, by the number of tags that occur.

        Example:
            >>> HEADS["lc"].defaults(1500)
            {'rank': 64, 'unary': 0.5, 'sharpness': 4.0}
        """
        return self.few_tags if num_tags < MANY_TAGS else self.many_tags


_CHAIN = ("rank", "beam", "constraints")
_LINEAR_CORE = (*_CHAIN, "unary", "sharpness", "cost", "surrogate", "form", "normalize")
#: The values of `loss`.
HEADS: dict[str, Head] = {
    "lc": Head(
        "linear core",
        LinearCoreChain,
        _LINEAR_CORE,
        can_compile=True,
        few_tags={"rank": 0, "unary": 0.0, "sharpness": 1.0},
        many_tags={"rank": 64, "unary": 0.5, "sharpness": 4.0},
    ),
    "crf": Head("conditional random field", ChainCRF, _CHAIN),
    "ssvm": Head("structured SVM", ChainSSVM, _CHAIN),
    "ce": Head("token cross-entropy", None, can_compile=True),
}

Keywords = dict[str, Any]


def _option(help: str, check: Callable[[str, Any], object], keywords: Callable[[Any], Keywords] | None = None) -> Any:
    """Returns an optional field with its `--help` text, its check, and the conversion of a value to head arguments."""
    return field(default=None, metadata={"help": help, "check": check, "keywords": keywords})


def check_count(name: str, value: Any) -> None:
    """Raises unless `value` is a positive integer."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(complaint(name, "be a positive integer", repr(value), "omit it for the default"))


def check_fraction(name: str, value: Any) -> None:
    """Raises unless `value` is a number in [0, 1)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise ValueError(complaint(name, "be a fraction in [0, 1)", repr(value), "for example 0.1"))


def check_width(name: str, value: Any) -> None:
    """Raises unless `value` is a beam width, or 0 for exact search."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(complaint(name, "be a beam width, or 0 for exact search", repr(value), "for example 16"))


def _check_rank(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(complaint(name, "be a rank, or 0 for a full matrix", repr(value), "for example 64"))


def check_bool(name: str, value: Any) -> None:
    """Raises unless `value` is True or False."""
    if not isinstance(value, bool):
        raise ValueError(complaint(name, "be True or False", repr(value), "omit it for the default"))


def _check_surrogate(name: str, value: Any) -> None:
    for argument in value:
        one_of(name, argument, ("base", "tau", "sides", "sharpness"), "pass arguments of linearcore.LinearCore")


@dataclass(frozen=True)
class HeadSettings:
    """The head of a tagger and its options. The default None of an option means the default of the head.

    Only `train` knows the number of tags that occur: with "lc" and at least `MANY_TAGS` of them it replaces None by rank 64,
    unary 0.5 and sharpness 4 (`Training.with_defaults`).

    Attributes:
        loss: "lc" (`LinearCoreChain`), "crf" (`ChainCRF`), "ssvm" (`ChainSSVM`), or "ce" (token cross-entropy, no chain).
        rank: rank of the transitions; 0, the default, is a full matrix.
        unary: weight in [0, 1) of a second loss on the emissions alone, as in `LinearCoreChain` ("lc" only); the default
            is 0.
        sharpness: factor of the curvature of the surrogate's tail, as in `LinearCore` ("lc" only); the default is 1.
        beam: beam width of the decoder; 0 is exact search. The default is exact search for up to `MAX_EXACT_TAGS` tags.
        constraints: enforce tag sequences in training and decoding: "bio", "bioes" or "bmes", given by the names of the
            tags, or rules such as "forbid O I-PER", one per line, each with a line end; the default is no constraints.
        cost: add a loss term for this metric on whole sequences, `LinearCoreChain.candidate_loss` with its defaults: one of
            `linearcore.structures.COST_NAMES` ("lc" only). It has no effect on decoding. The default is `loss` alone.

    Raises:
        ValueError: if the loss is unknown, an option is out of range, or the loss does not accept an option.
    """

    loss: str = field(
        default="lc", metadata={"help": f"One of {', '.join(f'{name} ({head.label})' for name, head in HEADS.items())}."}
    )
    rank: int | None = _option(
        f"Rank of low-rank transitions; 0 is a full matrix. Default: 0; with lc and at least {MANY_TAGS} tags, 64.",
        _check_rank,
        lambda value: {"rank": value or None},
    )
    unary: float | None = _option(
        "With lc: weight in [0, 1) of a second loss on the emissions alone. "
        f"Default: 0; with at least {MANY_TAGS} tags, 0.5.",
        check_fraction,
    )
    sharpness: float | None = _option(
        f"With lc: factor of the curvature of the surrogate's tail. Default: 1; with at least {MANY_TAGS} tags, 4.",
        lambda name, value: positive(name, value, "for example 4"),
        lambda value: {"surrogate": LinearCore(sharpness=value)},
    )
    beam: int | None = _option(
        f"Beam width; 0 is exact search. Default: 0 for up to {MAX_EXACT_TAGS} tags, else {DEFAULT_BEAM}.",
        check_width,
        lambda value: {},
    )
    constraints: str | None = _option(
        f"Tag sequences to enforce: {', '.join(SCHEMES)}, or lines of rules.", check_constraints, lambda value: {}
    )
    cost: str | None = _option(
        f"With lc: add a loss term for this metric on whole sentences: {', '.join(COST_NAMES)}. Slow with hundreds of tags.",
        lambda name, value: one_of(name, value, COST_NAMES),
        lambda value: {},
    )

    def __post_init__(self) -> None:
        one_of("loss", self.loss, HEADS)
        for option in fields(self):
            value = getattr(self, option.name)
            if value is None or "check" not in option.metadata:
                continue
            if option.name not in HEADS[self.loss].options:
                losses = " or ".join(repr(name) for name, head in HEADS.items() if option.name in head.options)
                advice = f"omit it, or use loss {losses}"
                raise ValueError(complaint(option.name, f"be None with loss {self.loss!r}", repr(value), advice))
            option.metadata["check"](option.name, value)

    def head_options(self) -> dict[str, Any]:
        """Returns the loss and the options of its head as JSON values."""
        return {option.name: getattr(self, option.name) for option in fields(HeadSettings)}

    def beam_width(self, num_tags: int) -> int:
        """Returns the beam width of the decoder for `num_tags` tags; 0 is exact search."""
        return (0 if num_tags <= MAX_EXACT_TAGS else DEFAULT_BEAM) if self.beam is None else self.beam

    def make_cost(self, tags: Sequence[str] | int) -> Cost | None:
        """Returns the cost to train for, or None.

        Args:
            tags: the names of the tags, in the order of their indices; without a cost their number is enough.

        Raises:
            ValueError: if there is a cost but no names, or it is not defined for tags with these names.
        """
        if self.cost is None:
            return None
        # On the "meta" device, where transformers makes modules, the tables of a cost would stay empty.
        with torch.device("cpu"):
            return cost_of_names("cost", self.cost, _check_names(tags, "cost"))

    def make_head(self, tags: Sequence[str] | int, **others: Any) -> ChainHead | None:
        """Returns a new batch-first head, or None for token cross-entropy.

        Args:
            tags: the names of the tags, in the order of their indices; without constraints their number is enough.
            others: passed to the head unchanged.

        Raises:
            ValueError: if there are constraints but no names, or the constraints do not fit the names.
        """
        make, arguments = HEADS[self.loss].make, dict(others)
        if make is None:
            return None
        for option in fields(self):
            value = getattr(self, option.name)
            if value is not None and "check" in option.metadata:
                keywords = option.metadata["keywords"]
                arguments |= {option.name: value} if keywords is None else keywords(value)
        if self.constraints is not None:
            names = _check_names(tags, "constraints")
            # While transformers loads weights, new tensors are on the "meta" device, where constraints cannot be checked.
            with torch.device("cpu"):
                arguments["constraints"] = make_constraints(self.constraints, names)
        return make(tags if isinstance(tags, int) else len(tags), batch_first=True, **arguments)


def _check_names(tags: Sequence[str] | int, option: str) -> Sequence[str]:
    if isinstance(tags, int):
        raise ValueError(complaint("tags", f"be names with `{option}`", tags, "pass the names of all tags"))
    return tags


@dataclass(frozen=True)
class ChainSettings(HeadSettings):
    """`HeadSettings` plus the options that only `hugging_face.ChainConfig` has.

    Attributes:
        surrogate: arguments of `LinearCore` ("lc" only): base (a name), tau, sides, sharpness; all optional.
        form: "logodds", "pairwise" or "centered" ("lc" only); the default is "logodds".
        normalize: use the mean over the candidates (True) or the sum (False), as in `LinearCoreChain` ("lc" only); the
            default is that of the form. It is always saved; configurations of earlier versions without it use the sum.
    """

    surrogate: Mapping[str, Any] | None = _option(
        "Arguments of LinearCore.", _check_surrogate, lambda value: {"surrogate": LinearCore(**value)}
    )
    form: str | None = _option(
        f"With lc: {', '.join(FORMS)}. Default: logodds.", lambda name, value: one_of(name, value, FORMS)
    )
    normalize: bool | None = _option("With lc: use the mean over the candidates instead of the sum.", check_bool)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.surrogate is not None and self.sharpness is not None:
            raise ValueError(
                complaint("sharpness", "be None if `surrogate` is given", self.sharpness, "put it into `surrogate`")
            )
