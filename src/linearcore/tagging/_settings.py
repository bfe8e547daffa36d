"""Training settings of a tagger."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from linearcore._checks import complaint, one_of, positive
from linearcore.tagging._constraints import AUTO, NONE, SCHEMES, Pairs, resolve_constraints
from linearcore.tagging._heads import HEADS, HeadSettings, check_bool, check_count, check_fraction
from linearcore.tagging._vocabulary import Vocabulary
from linearcore.tagging.encoders import ENCODERS, BiLSTM, Encoder

PRECISIONS = ("auto", "fp32", "bf16")
OPTIMIZERS = ("adam", "sgd")
#: The seed of each epoch's order is a product that must fit into 64 bits.
_MAX_SEED = 2**40
#: Checks of the fields that only some encoders take.
_ENCODER_CHECKS = {
    "characters": check_bool, "embedding": check_count, "hidden": check_count, "layers": check_count,
    "dropout": check_fraction,
}  # fmt: skip
#: Field names of earlier versions, which are the keys in saved taggers, checkpoints and result files.
_FILE_KEYS = {"lr": "rate", "chain_lr_scale": "chain_rate", "weight_decay": "decay", "batch_tokens": "tokens"}

#: Fields that are paths of files and folders. Their hashes are part of a checkpoint's key.
_PATHS = ("vectors", "continue_from")


def setting(default: Any, help: str, flags: tuple[str, ...] = ()) -> Any:
    """Returns a field with the help text and, where they differ from its name, the flags of its command-line option."""
    return field(default=default, metadata={"help": help, "flags": flags})


def _describe(name: str) -> str:
    """Returns the bounds of a default for `--help`."""
    bounds = {kind: getattr(encoder.schedule, name) for kind, encoder in ENCODERS.items()}
    return " or ".join(f"{low} to {high} ({kind})" for kind, (low, high) in bounds.items())


@dataclass(frozen=True)
class Training(HeadSettings):
    """Settings that, with the data and the machine, determine the trained weights.

    The default None of `epochs`, `patience` and `batch_tokens` follows the size of the training data: see `Schedule`. The
    default None of `rank`, `unary` and `sharpness` follows the number of tags: see `HeadSettings`.

    Attributes:
        loss, rank, unary, sharpness, beam, cost: options of the head, as in `HeadSettings`. With `cost`, too, the best epoch
            is the one with the best validation accuracy.
        constraints: as in `HeadSettings`, or the name of a file of rules, "none", or "auto" (the default): a segment scheme
            (bio, bioes or bmes) if the training and validation sentences satisfy it without exception, else none; with
            `continue_from`, the constraints of that tagger if it has any.
        encoder: "bilstm", or "transformer:PATH" with a local folder or a name on the Hugging Face hub; the default None is
            "bilstm", or the encoder of `continue_from`.
        characters: use prefix, suffix and shape features (BiLSTM only); the default is True.
        embedding, hidden, layers, dropout: options of `linearcore.tagging.encoders.BiLSTM`, refused by a transformer.
        inflate: for benchmarks only: add unused tags until there are this many tags; None adds none.
        epochs: maximum number of epochs.
        patience: stop after this number of epochs without a better validation accuracy.
        lr: peak learning rate; the default None is 0.003 for a BiLSTM and 0.0001 for a transformer. The learning rate
            increases linearly during warm-up and then decreases linearly to zero.
        chain_lr_scale: learning-rate multiplier for transition, start and end scores; None is 1. Values below 1 help
            low-rank transitions, values above 1 a transformer with a small learning rate.
        warmup: fraction of all steps that are warm-up.
        optimizer: "adam" (AdamW), or "sgd" with momentum 0.9.
        weight_decay: weight decay.
        clip: maximum norm of the gradient.
        batch_tokens: words per batch, padding included.
        precision: "fp32", "bf16" (autocast; weights stay in float32), or "auto", which is bf16 on GPUs that support it.
        seed: random seed.
        compiled: use torch.compile for the loss ("lc" and "ce" only). Compilation takes time before the first steps and is
            useful with many tags on a GPU.
        vectors: file of pre-trained word vectors: word2vec (text or binary), fastText (.vec or .bin) or GloVe, plain or .gz
            (BiLSTM only). They are concatenated to the trained embeddings and not changed.
        max_vectors: number of vectors that are read, from the start of the file, and saved with the tagger; the default None
            is 100,000.
        compose: compute the scores of `upos+feats` tags as sums over their parts, so tags that do not occur in the training
            data can be predicted.
        unseen_tags: with `compose`, number of the most probable combinations that are not in the training data, which are
            added to the tag set; the default None is the number of tags in the training data.
        continue_from: folder of a trained tagger whose weights, words and tags training starts with. Options of the encoder
            and of the head are those of this tagger.
    """

    constraints: str | None = setting(
        AUTO, f"Tag sequences to enforce: auto, none, {', '.join(SCHEMES)}, or a file of rules such as: forbid O I-PER."
    )
    encoder: str | None = setting(
        None, "bilstm, or transformer:PATH with a local folder or a name on the Hugging Face hub. Default: bilstm."
    )
    characters: bool | None = setting(
        None, "Use prefix, suffix and shape features of each word (BiLSTM). Default: use them."
    )
    embedding: int | None = setting(None, f"Size of the word embeddings (BiLSTM). Default: {BiLSTM.settings['embedding']}.")
    hidden: int | None = setting(None, f"Hidden units per direction (BiLSTM). Default: {BiLSTM.settings['hidden']}.")
    layers: int | None = setting(None, f"Number of layers (BiLSTM). Default: {BiLSTM.settings['layers']}.")
    dropout: float | None = setting(
        None, f"Dropout of embeddings and hidden states (BiLSTM). Default: {BiLSTM.settings['dropout']}."
    )
    inflate: int | None = setting(None, "For benchmarks only: add unused tags until there are this many tags.")
    epochs: int | None = setting(None, f"Maximum number of epochs. Default: {_describe('epochs')}, more for fewer words.")
    patience: int | None = setting(
        None, "Stop after this number of epochs without a better validation accuracy. Default: 4, more for fewer words."
    )
    lr: float | None = setting(None, "Peak learning rate. Default: 0.003, or 0.0001 for a transformer.")
    chain_lr_scale: float | None = setting(
        None,
        "Learning-rate multiplier for transition, start and end scores. Default: 1. Try 0.1 with --rank, more than 1 with a "
        "transformer.",
    )
    warmup: float = setting(0.05, "Fraction of all steps in which the learning rate increases.")
    optimizer: str = setting("adam", "adam (AdamW), or sgd with momentum 0.9.")
    weight_decay: float = setting(0.01, "Weight decay.")
    clip: float = setting(5.0, "Maximum norm of the gradient.")
    batch_tokens: int | None = setting(
        None, f"Words per batch. Default: training words / 50, but within {_describe('batch_tokens')}."
    )
    precision: str = setting("auto", "fp32, bf16, or auto (bf16 on a GPU that supports it).")
    seed: int = setting(0, "Random seed.")
    compiled: bool = setting(False, "Use torch.compile for the loss; useful with many tags on a GPU.", flags=("--compile",))
    vectors: str | None = setting(
        None, "File of pre-trained word vectors: word2vec, fastText or GloVe, text or binary, plain or .gz (BiLSTM)."
    )
    max_vectors: int | None = setting(
        None, "Number of vectors to read from the start of --vectors and to save with the tagger. Default: 100,000."
    )
    compose: bool = setting(
        False, "Compose upos+feats tags from parts, so tags that do not occur in the training data can be predicted."
    )
    unseen_tags: int | None = setting(
        None,
        "With --compose: number of combinations not seen in training to add to the tag set. Default: the number of tags in "
        "the training data.",
    )
    continue_from: str | None = setting(
        None,
        "Folder of a trained tagger to continue training. Its options of encoder and head are kept. Its words and tags are "
        "kept, and those of --train are added.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        head = HEADS[self.loss]
        if self.compiled and not head.can_compile:
            advice = "this loss is computed position by position, and compilation does not make it faster"
            raise ValueError(complaint("compiled", f"be False with loss {self.loss!r}", True, advice))
        if self.compiled and self.cost is not None:
            advice = "the search for candidates is not compiled; omit one of the two"
            raise ValueError(complaint("compiled", "be False with `cost`", True, advice))
        one_of("precision", self.precision, PRECISIONS)
        one_of("optimizer", self.optimizer, OPTIMIZERS)
        self._check_encoder()
        for name in ("inflate", "epochs", "batch_tokens", "patience"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        if self.lr is not None:
            positive("lr", self.lr, "for example 0.003")
        if self.chain_lr_scale is not None:
            positive("chain_lr_scale", self.chain_lr_scale, "for example 0.1")
            if head.make is None:
                must, advice = f"be None with loss {self.loss!r}", f"{head.label} has no transitions; omit it"
                raise ValueError(complaint("chain_lr_scale", must, self.chain_lr_scale, advice))
        if not isinstance(self.constraints, str | None):
            advice = "pass the name of a file, or its lines"
            raise ValueError(complaint("constraints", "be a string or None", type(self.constraints).__name__, advice))
        if self.constraints not in (None, AUTO, NONE) and "constraints" not in head.options:
            must, advice = f"be none or auto with loss {self.loss!r}", f"{head.label} has no transitions; omit it"
            raise ValueError(complaint("constraints", must, repr(self.constraints), advice))
        positive("clip", self.clip, "for example 5")
        check_fraction("warmup", self.warmup)
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or not 0 <= self.seed <= _MAX_SEED:
            raise ValueError(complaint("seed", f"be an integer in [0, {_MAX_SEED}]", repr(self.seed), "for example 0"))
        if not self.weight_decay >= 0:
            raise ValueError(complaint("weight_decay", "not be negative", self.weight_decay, "for example 0.01"))
        self._check_additions()

    def _check_additions(self) -> None:
        """Checks the options of word vectors and composed tags."""
        for name, needed in (("max_vectors", "vectors"), ("unseen_tags", "compose")):
            value = getattr(self, name)
            if value is not None:
                check_count(name, value)
                if not getattr(self, needed):
                    advice = f"pass --{needed} as well, or omit it"
                    raise ValueError(complaint(name, f"be None without `{needed}`", value, advice))
        if self.compose and self.inflate is not None:
            raise ValueError(complaint("inflate", "be None with `compose`", self.inflate, "use `unseen_tags`"))

    def _check_encoder(self) -> None:
        has_colon = ":" in (self.encoder or "")
        if self.kind not in ENCODERS or not has_colon == bool(self.path) == self.encoder_class.takes_path:
            choices = " or ".join(f"{kind}:PATH" if encoder.takes_path else kind for kind, encoder in ENCODERS.items())
            advice = "PATH is a folder or a name on the Hugging Face hub"
            raise ValueError(complaint("encoder", f"be {choices}", repr(self.encoder), advice))
        for name in dict.fromkeys(name for encoder in ENCODERS.values() for name in encoder.settings):
            value = getattr(self, name)
            if value is not None and name not in self.encoder_class.settings:
                raise ValueError(
                    complaint(name, f"be None with encoder {self.encoder or self.kind}", repr(value), "omit it")
                )
        for name, check in _ENCODER_CHECKS.items():
            if getattr(self, name) is not None:
                check(name, getattr(self, name))

    @property
    def kind(self) -> str:
        """The name of the encoder in `ENCODERS`."""
        return (self.encoder or BiLSTM.kind).partition(":")[0]

    @property
    def encoder_class(self) -> type[Encoder]:
        """The class of the encoder."""
        return ENCODERS[self.kind]

    @property
    def path(self) -> str:
        """The folder or hub name of a pre-trained encoder; empty for others."""
        return (self.encoder or BiLSTM.kind).partition(":")[2]

    @property
    def peak_lr(self) -> float:
        """The highest learning rate: `lr`, or its default for the encoder."""
        return self.encoder_class.default_lr if self.lr is None else self.lr

    def with_defaults(self, num_words: int, num_tags: int) -> "Training":
        """Returns a copy in which None is replaced by the default for this encoder and this training data.

        Args:
            num_words: number of words of the training sentences.
            num_tags: number of different tags that occur in them.

        Example:
            >>> settings = Training(epochs=3).with_defaults(num_words=6400, num_tags=17)
            >>> settings.epochs, settings.batch_tokens, settings.hidden, settings.rank
            (3, 128, 256, 0)
        """
        schedule = self.encoder_class.schedule
        batch_tokens = schedule.default_batch_tokens(num_words) if self.batch_tokens is None else self.batch_tokens
        epochs = schedule.default_epochs(num_words, batch_tokens) if self.epochs is None else self.epochs
        defaults = {
            "lr": self.peak_lr,
            "batch_tokens": batch_tokens,
            "epochs": epochs,
            "patience": schedule.default_patience(num_words, batch_tokens, epochs),
            **HEADS[self.loss].defaults(num_tags),
            **self.encoder_class.settings,
        }
        return replace(self, **{name: value for name, value in defaults.items() if getattr(self, name) is None})

    def with_constraints(self, tags: Sequence[str], sentences: Pairs, dev: Pairs) -> tuple["Training", str | None]:
        """Returns a copy with the constraints of the head, and a line that says what was found, or None.

        Raises:
            ValueError: if `sentences` violate explicit constraints, or these do not fit the tags.
        """
        has_chain = "constraints" in HEADS[self.loss].options
        constraints, note = resolve_constraints(self.constraints if has_chain else NONE, tags, sentences, dev)
        return replace(self, constraints=constraints), note

    def make_encoder(self, vocabulary: Vocabulary) -> Encoder:
        """Returns a new encoder for the words of a vocabulary."""
        values = {name: getattr(self, name) for name in self.encoder_class.settings}
        given = {name: value for name, value in values.items() if value is not None}
        return self.encoder_class.from_settings(vocabulary, self.path, **{**self.encoder_class.settings, **given})

    def to_json(self) -> dict[str, Any]:
        """Returns the settings as JSON values under the keys used in files; of paths only the last part."""
        values = {_FILE_KEYS.get(key, key): value for key, value in asdict(self).items()}
        values["encoder"] = f"{self.kind}:{Path(self.path).name}" if self.path else self.kind
        for name in _PATHS:
            values[name] = None if values[name] is None else Path(values[name]).name
        return values
