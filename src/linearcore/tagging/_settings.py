"""How a tagger is trained."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from linearcore._checks import complaint, one_of, positive
from linearcore.tagging._heads import HEADS, HeadSettings, check_count, check_share

PRECISIONS = ("auto", "fp32", "bf16")
OPTIMIZERS = ("adam", "sgd")
#: What is best for an encoder that starts from nothing, and for one that was trained before.
_RATES = {"bilstm": 3e-3, "transformer": 1e-4}
_TOKENS = {"bilstm": 800, "transformer": 1600}
_EPOCHS = {"bilstm": 12, "transformer": 4}


@dataclass(frozen=True)
class Training(HeadSettings):
    """Everything that decides the weights, besides the data and the machine.

    Attributes:
        loss, rank, unary, sharpness, beam: of the head, as in `HeadSettings`.
        encoder: "bilstm", or "transformer:PATH" with a local folder or a name on the Hugging Face hub.
        characters: of a BiLSTM: look at the spelling of words.
        embedding, hidden, layers, dropout: of a BiLSTM, as in `linearcore.tagging.encoders.BiLSTM`.
        inflate: add tags that never occur until there are so many; None adds none.
        epochs: passes over the training sentences; None suits the encoder.
        patience: stop after so many epochs without a better accuracy on dev.
        rate: the largest learning rate; None suits the encoder. It rises for `warmup` of all steps, and then falls linearly
            to zero.
        chain_rate: the chain's own scores learn at so many times the rate; None is 1. Less than 1 keeps a low-rank chain
            from outrunning the words while the rate is high, more than 1 suits a chain on a transformer with a small rate.
        warmup: share of the steps.
        optimizer: "adam" (AdamW), or "sgd" with momentum 0.9.
        decay: weight decay.
        clip: largest norm of the gradient.
        tokens: words of a batch, padding included; None suits the encoder.
        precision: "fp32", "bf16" (weights stay in float32), or "auto": bf16 on a GPU that has it.
        seed: of weights, order and dropout.
        compiled: of losses "lc" and "ce": let torch.compile fuse the loss, which takes a while before the first steps.
            Meant for many tags on a GPU.
    """

    encoder: str = "bilstm"
    characters: bool = True
    embedding: int = 128
    hidden: int = 256
    layers: int = 1
    dropout: float = 0.3
    inflate: int | None = None
    epochs: int | None = None
    patience: int = 4
    rate: float | None = None
    chain_rate: float | None = None
    warmup: float = 0.05
    optimizer: str = "adam"
    decay: float = 0.01
    clip: float = 5.0
    tokens: int | None = None
    precision: str = "auto"
    seed: int = 0
    compiled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        head = HEADS[self.loss]
        if self.compiled and not head.can_compile:
            advice = "it goes from one position to the next, and has nothing to gain"
            raise ValueError(complaint("compiled", f"be False with loss {self.loss!r}", True, advice))
        one_of("precision", self.precision, PRECISIONS)
        one_of("optimizer", self.optimizer, OPTIMIZERS)
        if self.encoder != "bilstm" and not self.encoder.partition("transformer:")[2]:
            must, advice = "be bilstm or transformer:PATH", "PATH is a folder, or a name on the Hugging Face hub"
            raise ValueError(complaint("encoder", must, repr(self.encoder), advice))
        for name in ("inflate", "epochs", "tokens", "patience", "embedding", "hidden", "layers"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        if self.rate is not None:
            positive("rate", self.rate, "for example 0.003")
        if self.chain_rate is not None:
            positive("chain_rate", self.chain_rate, "for example 0.1")
            if head.make is None:
                must, advice = f"be None with loss {self.loss!r}", f"{head.label} has no chain: leave it out"
                raise ValueError(complaint("chain_rate", must, self.chain_rate, advice))
        positive("clip", self.clip, "for example 5")
        for name in ("warmup", "dropout"):
            check_share(name, getattr(self, name))
        if not self.decay >= 0:
            raise ValueError(complaint("decay", "not be negative", self.decay, "for example 0.01"))

    @property
    def kind(self) -> str:
        """Of the encoder."""
        return self.encoder.partition(":")[0]

    @property
    def path(self) -> str:
        """Of a transformer's weights."""
        return self.encoder.partition(":")[2]

    def filled(self) -> "Training":
        """With the encoder's defaults in the place of None."""
        return replace(
            self,
            rate=_RATES[self.kind] if self.rate is None else self.rate,
            tokens=_TOKENS[self.kind] if self.tokens is None else self.tokens,
            epochs=_EPOCHS[self.kind] if self.epochs is None else self.epochs,
        )

    def to_json(self) -> dict[str, Any]:
        """As JSON values. Where a transformer came from says nothing on another machine: of a path its last part."""
        name = self.path.rstrip("/").rpartition("/")[2]
        return asdict(self) | {"encoder": f"{self.kind}:{name}" if name else self.kind}
