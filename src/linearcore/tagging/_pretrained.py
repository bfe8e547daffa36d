"""Encoders and tokenizers of Hugging Face: read without pickle and without foreign code, or refused in one line.

transformers takes seconds to import and is an extra, so that it is imported when something here is called.
"""

import inspect
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from linearcore._checks import complaint
from linearcore._extras import require

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

_MUST = "be a Hugging Face encoder with safetensors"
_ADVICE = "pass a folder with config.json, model.safetensors and tokenizer.json, or a name on the Hugging Face hub"


def pretrained_encoder(path: str | Path) -> "PreTrainedModel":
    """The encoder with its weights, in float32 and without the pooling layer that no tagger needs.

    Args:
        path: a local folder, or a name on the hub. Weights are read from safetensors only.

    Raises:
        MissingExtraError: if transformers is not installed.
        ValueError: if there is no such model, it has a decoder, or its weights are not all there.
    """
    require("transformers", extra="tagging")
    from transformers import AutoConfig, AutoModel

    is_local = Path(path).is_dir()
    with in_one_line(path):
        config = AutoConfig.from_pretrained(str(path), trust_remote_code=False, local_files_only=is_local)
    _require_encoder(config, path)
    with in_one_line(path), _quiet():
        model, found = AutoModel.from_pretrained(
            str(path),
            config=config,
            trust_remote_code=False,
            use_safetensors=True,
            local_files_only=is_local,
            output_loading_info=True,
            **_no_pooling(config),
        )
    missing = sorted(key for key in found["missing_keys"] if "pooler" not in key)
    if missing:
        # transformers would draw them at random and say so in a warning.
        got = f"{len(missing)} that are not there, among them {missing[0]}"
        raise ValueError(complaint("path", "hold all weights of the encoder", got, "are they of another model?"))
    # Saved with the configuration, this would make a later reader build the model in half precision.
    model.config.dtype = torch.float32
    if is_local:
        model.config.name_or_path = ""  # A path says nothing on another machine, and may say too much.
    encoder: PreTrainedModel = model.float()
    return encoder


def empty_encoder(config: "PretrainedConfig") -> "PreTrainedModel":
    """An encoder of that kind with weights drawn at random, in torch's default dtype whatever the configuration says."""
    from transformers import AutoModel

    model = AutoModel.from_config(config, trust_remote_code=False, **_no_pooling(config))
    encoder: PreTrainedModel = model.to(torch.get_default_dtype())
    return encoder


def pretrained_tokenizer(path: str | Path) -> "PreTrainedTokenizerFast":
    """The tokenizer, which knows where words begin.

    Raises:
        MissingExtraError: if transformers is not installed.
        ValueError: if there is none, or it is not a fast one.
    """
    require("transformers", extra="tagging")
    from transformers import AutoTokenizer

    options = {"trust_remote_code": False, "use_fast": True, "local_files_only": Path(path).is_dir()}
    with in_one_line(path):
        tokenizer = AutoTokenizer.from_pretrained(str(path), **options)
    if not tokenizer.is_fast:
        advice = "words are found again among sub-words only with one; save it with tokenizer.json"
        raise ValueError(complaint("path", "have a fast tokenizer", type(tokenizer).__name__, advice))
    if set(tokenizer.get_vocab().values()) <= set(tokenizer.all_special_ids):
        # transformers makes up a tokenizer of special tokens where a folder has only a model.
        raise ValueError(
            complaint("path", "have a tokenizer with words", "special tokens only", "copy tokenizer.json there")
        )
    _begin_words_with_space(tokenizer)
    found: PreTrainedTokenizerFast = tokenizer
    return found


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the bar and the report that transformers prints about weights nobody wants, such as the pooling layer's."""
    from transformers.utils import logging

    verbosity, has_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if has_bar:
            logging.enable_progress_bar()


@contextmanager
def in_one_line(path: object, must: str = _MUST, advice: str = _ADVICE) -> Iterator[None]:
    """Whatever transformers raises over a folder or a name becomes a ValueError of one line."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError, SafetensorError) as error:
        reason = " ".join(str(error).split()).partition(". ")[0] or type(error).__name__
        raise ValueError(complaint("path", must, f"{str(path)!r} ({reason[:200]})", advice)) from error


def _require_encoder(config: "PretrainedConfig", path: str | Path) -> None:
    if getattr(config, "is_encoder_decoder", False):
        got = f"{config.model_type} in {str(path)!r}, which has a decoder"
        raise ValueError(complaint("path", "be an encoder", got, "take one such as BERT, RoBERTa or DeBERTa"))


def _begin_words_with_space(tokenizer: "PreTrainedTokenizerBase") -> None:
    """Makes a byte-level tokenizer take a word of a list for a word, and not for the middle of one.

    `add_prefix_space=True` is the option for this, which not every class and version of transformers heeds.
    """
    cutter = tokenizer.backend_tokenizer.pre_tokenizer
    state = {} if cutter is None else json.loads(cutter.__getstate__())
    parts = [part for part in (state, *state.get("pretokenizers", ())) if part.get("type") == "ByteLevel"]
    for part in parts:
        part["add_prefix_space"] = True
    if parts:
        cutter.__setstate__(json.dumps(state).encode())
        tokenizer.backend_tokenizer.pre_tokenizer = cutter
        tokenizer.add_prefix_space = tokenizer.init_kwargs["add_prefix_space"] = True


def _no_pooling(config: "PretrainedConfig") -> dict[str, bool]:
    """The option that leaves the pooling layer out, where the model has it: unused weights would be saved and decayed."""
    from transformers import MODEL_MAPPING

    kind = MODEL_MAPPING.get(type(config), None)
    has_option = kind is not None and "add_pooling_layer" in inspect.signature(kind.__init__).parameters
    return {"add_pooling_layer": False} if has_option else {}
