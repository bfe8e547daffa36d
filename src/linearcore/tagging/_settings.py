"""Training settings of a tagger."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from linearcore._checks import complaint, one_of, positive
from linearcore.tagging._constraints import AUTO, NONE, SCHEMES, Pairs, resolve_constraints
from linearcore.tagging._heads import HEADS, HeadSettings, check_count, check_fraction
from linearcore.tagging._vocabulary import Vocabulary
from linearcore.tagging.encoders import ENCODERS, Encoder

PRECISIONS = ("auto", "fp32", "bf16")
OPTIMIZERS = ("adam", "sgd")
#: Field names of earlier versions, which are the keys in saved taggers, checkpoints and result files.
_FILE_KEYS = {"lr": "rate", "chain_lr_scale": "chain_rate", "weight_decay": "decay", "batch_tokens": "tokens"}


def setting(default: Any, help: str, flags: tuple[str, ...] = ()) -> Any:
    """Returns a field with the help text and, where they differ from its name, the flags of its command-line option."""
    return field(default=default, metadata={"help": help, "flags": flags})


@dataclass(frozen=True)
class Training(HeadSettings):
    """Settings that, with the data and the machine, determine the trained weights.

    Attributes:
        loss, rank, unary, sharpness, beam: options of the head, as in `HeadSettings`.
        constraints: as in `HeadSettings`, or the name of a file of rules, "none", or "auto" (the default): a segment scheme
            (bio, bioes or bmes) if the training and validation sentences satisfy it without exception, else none.
        encoder: "bilstm", or "transformer:PATH" with a local folder or a name on the Hugging Face hub.
        characters: use prefix, suffix and shape features (BiLSTM only).
        embedding, hidden, layers, dropout: options of `linearcore.tagging.encoders.BiLSTM`.
        inflate: pad the tag set to this size with tags that never occur, for benchmarks; None adds none.
        epochs: maximum number of epochs; the default None is 12 for a BiLSTM and 4 for a transformer.
        patience: stop after this number of epochs without a better validation accuracy.
        lr: peak learning rate; the default None is 0.003 for a BiLSTM and 0.0001 for a transformer. The learning rate
            increases linearly during warm-up and then decreases linearly to zero.
        chain_lr_scale: learning-rate multiplier for transition, start and end scores; None is 1. Values below 1 help
            low-rank transitions, values above 1 a transformer with a small learning rate.
        warmup: fraction of all steps that are warm-up.
        optimizer: "adam" (AdamW), or "sgd" with momentum 0.9.
        weight_decay: weight decay.
        clip: maximum norm of the gradient.
        batch_tokens: batch size in words, padding included; the default None is 800 for a BiLSTM and 1600 for a transformer.
        precision: "fp32", "bf16" (autocast; weights stay in float32), or "auto", which is bf16 on GPUs that support it.
        seed: random seed.
        compiled: use torch.compile for the loss ("lc" and "ce" only). Compilation takes time before the first steps and is
            useful with many tags on a GPU.
    """

    constraints: str | None = setting(
        AUTO, f"Tag sequences to enforce: auto, none, {', '.join(SCHEMES)}, or a file of rules such as: forbid O I-PER."
    )
    encoder: str = setting("bilstm", "bilstm, or transformer:PATH with a local folder or a name on the Hugging Face hub.")
    characters: bool = setting(True, "Use prefix, suffix and shape features (BiLSTM).")
    embedding: int = setting(128, "Size of the word embeddings (BiLSTM).")
    hidden: int = setting(256, "Hidden units per direction (BiLSTM).")
    layers: int = setting(1, "Number of layers (BiLSTM).")
    dropout: float = setting(0.3, "Dropout of embeddings and hidden states (BiLSTM).")
    inflate: int | None = setting(None, "Pad the tag set to this number of tags, for benchmarks.")
    epochs: int | None = setting(None, "Maximum number of epochs. Default: 12, or 4 for a transformer.")
    patience: int = setting(4, "Stop after this number of epochs without a better validation accuracy.")
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
    batch_tokens: int | None = setting(None, "Batch size in words. Default: 800, or 1600 for a transformer.")
    precision: str = setting("auto", "fp32, bf16, or auto (bf16 on a GPU that supports it).")
    seed: int = setting(0, "Random seed.")
    compiled: bool = setting(False, "Use torch.compile for the loss; useful with many tags on a GPU.", flags=("--compile",))

    def __post_init__(self) -> None:
        super().__post_init__()
        head = HEADS[self.loss]
        if self.compiled and not head.can_compile:
            advice = "this loss is computed position by position, and compilation does not make it faster"
            raise ValueError(complaint("compiled", f"be False with loss {self.loss!r}", True, advice))
        one_of("precision", self.precision, PRECISIONS)
        one_of("optimizer", self.optimizer, OPTIMIZERS)
        if self.kind not in ENCODERS or (":" in self.encoder, bool(self.path)) != (self.encoder_class.takes_path,) * 2:
            choices = " or ".join(f"{kind}:PATH" if encoder.takes_path else kind for kind, encoder in ENCODERS.items())
            advice = "PATH is a folder or a name on the Hugging Face hub"
            raise ValueError(complaint("encoder", f"be {choices}", repr(self.encoder), advice))
        for name in ("inflate", "epochs", "batch_tokens", "patience", "embedding", "hidden", "layers"):
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
        for name in ("warmup", "dropout"):
            check_fraction(name, getattr(self, name))
        if not self.weight_decay >= 0:
            raise ValueError(complaint("weight_decay", "not be negative", self.weight_decay, "for example 0.01"))

    @property
    def kind(self) -> str:
        """The name of the encoder in `ENCODERS`."""
        return self.encoder.partition(":")[0]

    @property
    def encoder_class(self) -> type[Encoder]:
        """The class of the encoder."""
        return ENCODERS[self.kind]

    @property
    def path(self) -> str:
        """The folder or hub name of a pre-trained encoder; empty for others."""
        return self.encoder.partition(":")[2]

    def with_defaults(self) -> "Training":
        """Returns a copy in which None is replaced by the encoder's defaults."""
        return replace(
            self,
            lr=self.encoder_class.default_lr if self.lr is None else self.lr,
            batch_tokens=self.encoder_class.default_batch_tokens if self.batch_tokens is None else self.batch_tokens,
            epochs=self.encoder_class.default_epochs if self.epochs is None else self.epochs,
        )

    def with_constraints(self, tags: Sequence[str], sentences: Pairs, dev: Pairs) -> tuple["Training", str | None]:
        """Returns a copy with the constraints of the head, and a line that says what was found, or None.

        Raises:
            ValueError: if `sentences` violate constraints that were asked for, or these do not fit the tags.
            OSError: if the file of rules cannot be read.
        """
        has_chain = "constraints" in HEADS[self.loss].options
        constraints, note = resolve_constraints(self.constraints if has_chain else NONE, tags, sentences, dev)
        return replace(self, constraints=constraints), note

    def make_encoder(self, vocabulary: Vocabulary) -> Encoder:
        """Returns a new encoder for the words of a vocabulary."""
        values = {name: getattr(self, name) for name in self.encoder_class.settings}
        given = {name: value for name, value in values.items() if value is not None}
        return self.encoder_class.from_settings(vocabulary, self.path, **given)

    def to_json(self) -> dict[str, Any]:
        """Returns the settings as JSON values under the keys used in files; of a transformer's path only the last part."""
        name = self.path.rstrip("/").rpartition("/")[2]
        values = {_FILE_KEYS.get(key, key): value for key, value in asdict(self).items()}
        return values | {"encoder": f"{self.kind}:{name}" if name else self.kind}
