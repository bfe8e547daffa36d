"""How a tagger is trained."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from linearcore._checks import complaint, one_of, positive
from linearcore.tagging._model import LOSSES, linear_core_options

PRECISIONS = ("auto", "fp32", "bf16")
OPTIMIZERS = ("adam", "sgd")
#: Losses in which a compiler finds something to fuse.
COMPILED = ("lc", "ce")
#: What is best for an encoder that starts from nothing, and for one that was trained before.
_RATES = {"bilstm": 3e-3, "transformer": 1e-4}
_TOKENS = {"bilstm": 800, "transformer": 1600}
_EPOCHS = {"bilstm": 12, "transformer": 4}


@dataclass(frozen=True)
class Training:
    """Everything that decides the weights, besides the data and the machine.

    Attributes:
        loss: "lc", "crf", "ssvm" or "ce".
        encoder: "bilstm", or "transformer:PATH" with a local folder or a name on the Hugging Face hub.
        characters: of a BiLSTM: look at the spelling of words.
        embedding, hidden, layers, dropout: of a BiLSTM, as in `linearcore.tagging.encoders.BiLSTM`.
        rank: of the transitions; None is a full matrix.
        unary: of loss "lc": the share of the loss that is put on the emissions alone, so that the words themselves have to
            tell the tags and transitions only correct them; None is 0.
        sharpness: of loss "lc": how fast its surrogate bends behind the core, as in `LinearCore`; None is 1.
        inflate: add tags that never occur until there are so many; None adds none.
        beam: width of the beam that decodes; 0 is exact; None is exact unless tags are many.
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

    loss: str = "lc"
    encoder: str = "bilstm"
    characters: bool = True
    embedding: int = 128
    hidden: int = 256
    layers: int = 1
    dropout: float = 0.3
    rank: int | None = None
    unary: float | None = None
    sharpness: float | None = None
    inflate: int | None = None
    beam: int | None = None
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
        one_of("loss", self.loss, LOSSES)
        linear_core_options(self.loss, self.unary, self.sharpness)
        if self.compiled and self.loss not in COMPILED:
            advice = "it goes from one position to the next, and has nothing to gain"
            raise ValueError(complaint("compiled", f"be False with loss {self.loss!r}", True, advice))
        one_of("precision", self.precision, PRECISIONS)
        one_of("optimizer", self.optimizer, OPTIMIZERS)
        if self.encoder != "bilstm" and not self.encoder.partition("transformer:")[2]:
            must, advice = "be bilstm or transformer:PATH", "PATH is a folder, or a name on the Hugging Face hub"
            raise ValueError(complaint("encoder", must, repr(self.encoder), advice))
        for name in ("rank", "inflate", "epochs", "tokens", "patience", "embedding", "hidden", "layers"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise ValueError(complaint(name, "be a positive integer", repr(value), "leave it out for the default"))
        if self.beam is not None and (not isinstance(self.beam, int) or self.beam < 0):
            raise ValueError(complaint("beam", "be a width, or 0 for exact search", repr(self.beam), "for example 16"))
        if self.rate is not None:
            positive("rate", self.rate, "for example 0.003")
        if self.chain_rate is not None:
            positive("chain_rate", self.chain_rate, "for example 0.1")
            if self.loss == "ce":
                advice = "token cross-entropy has no chain: leave it out, or take another loss"
                raise ValueError(complaint("chain_rate", "be None with loss 'ce'", self.chain_rate, advice))
        positive("clip", self.clip, "for example 5")
        for name in ("warmup", "dropout", "unary"):
            if getattr(self, name) is not None and not 0 <= getattr(self, name) < 1:
                raise ValueError(complaint(name, "be a share in [0, 1)", getattr(self, name), "for example 0.1"))
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
