"""Loads Hugging Face encoders and tokenizers, without pickle and without remote code.

transformers is an optional dependency and slow to import, so the functions import it when they are called.
"""

import inspect
import json
import os
import re
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
    """Returns a pre-trained encoder in float32, without a pooling layer.

    Args:
        path: a local folder, or a name on the hub. Weights are read from safetensors only.

    Raises:
        MissingExtraError: if transformers is not installed.
        ValueError: if there is no such model, it has a decoder, or weights are missing.
    """
    require("transformers", extra="tagging")
    from transformers import AutoConfig, AutoModel

    is_local = Path(path).is_dir()
    with one_line_errors(path):
        config = AutoConfig.from_pretrained(str(path), trust_remote_code=False, local_files_only=is_local)
    _require_encoder(config, path)
    with one_line_errors(path), _quiet():
        model, loading_info = AutoModel.from_pretrained(
            str(path),
            config=config,
            trust_remote_code=False,
            use_safetensors=True,
            local_files_only=is_local,
            output_loading_info=True,
            **_no_pooling(config),
        )
    missing = sorted(key for key in loading_info["missing_keys"] if "pooler" not in key)
    if missing:
        # transformers would initialise them at random, with a warning only.
        got = f"{len(missing)} missing weights, among them {missing[0]}"
        raise ValueError(
            complaint("path", "contain all weights of the encoder", got, "check that they belong to this model")
        )
    # The dtype is saved with the configuration; another one would load the model in half precision.
    model.config.dtype = torch.float32
    if is_local:
        model.config.name_or_path = ""  # A local path is useless on another machine and may be private.
    encoder: PreTrainedModel = model.float()
    return encoder


def empty_encoder(config: "PretrainedConfig") -> "PreTrainedModel":
    """Returns an encoder with random weights in torch's default dtype; the dtype in the configuration is ignored."""
    from transformers import AutoModel

    model = AutoModel.from_config(config, trust_remote_code=False, **_no_pooling(config))
    encoder: PreTrainedModel = model.to(torch.get_default_dtype())
    return encoder


def pretrained_tokenizer(path: str | Path) -> "PreTrainedTokenizerFast":
    """Returns a fast tokenizer, which maps sub-words to words.

    Raises:
        MissingExtraError: if transformers is not installed.
        ValueError: if there is no tokenizer, or it is not a fast one.
    """
    require("transformers", extra="tagging")
    from transformers import AutoTokenizer

    options = {"trust_remote_code": False, "use_fast": True, "local_files_only": Path(path).is_dir()}
    with one_line_errors(path):
        tokenizer = AutoTokenizer.from_pretrained(str(path), **options)
    if not tokenizer.is_fast:
        advice = "save it as tokenizer.json; only fast tokenizers map sub-words to words"
        raise ValueError(complaint("path", "have a fast tokenizer", type(tokenizer).__name__, advice))
    if set(tokenizer.get_vocab().values()) <= set(tokenizer.all_special_ids):
        # If a folder has no tokenizer, transformers creates one that has only special tokens.
        raise ValueError(
            complaint("path", "have a tokenizer with words", "special tokens only", "copy tokenizer.json to this folder")
        )
    _enable_prefix_space(tokenizer)
    fast_tokenizer: PreTrainedTokenizerFast = tokenizer
    return fast_tokenizer


@contextmanager
def _quiet() -> Iterator[None]:
    """Hides the progress bar of transformers and its warnings about unused weights, such as the pooling layer."""
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
def one_line_errors(path: object, must: str = _MUST, advice: str = _ADVICE) -> Iterator[None]:
    """Turns every error of transformers about a folder or a name into a one-line ValueError."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError, SafetensorError) as error:
        reason = " ".join(str(error).split()).partition(". ")[0] or type(error).__name__
        raise ValueError(complaint("path", must, f"{str(path)!r} ({reason[:200]})", advice)) from error


@contextmanager
def file_errors(folder: Path) -> Iterator[None]:
    """Raises errors of writing a tokenizer, which are plain `Exception`s of the package tokenizers, as `OSError`."""
    try:
        yield
    except Exception as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(folder)) from error


def _require_encoder(config: "PretrainedConfig", path: str | Path) -> None:
    if getattr(config, "is_encoder_decoder", False):
        got = f"{config.model_type} in {str(path)!r}, which has a decoder"
        raise ValueError(complaint("path", "be an encoder", got, "use one such as BERT, RoBERTa or DeBERTa"))


def _enable_prefix_space(tokenizer: "PreTrainedTokenizerBase") -> None:
    """Makes a byte-level tokenizer treat each word of a list as the start of a word.

    `add_prefix_space=True` is the option for this, but not every class and version of transformers respects it.
    """
    pre_tokenizer = tokenizer.backend_tokenizer.pre_tokenizer
    state = {} if pre_tokenizer is None else json.loads(pre_tokenizer.__getstate__())
    parts = [part for part in (state, *state.get("pretokenizers", ())) if part.get("type") == "ByteLevel"]
    for part in parts:
        part["add_prefix_space"] = True
    if parts:
        pre_tokenizer.__setstate__(json.dumps(state).encode())
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizer
        tokenizer.add_prefix_space = tokenizer.init_kwargs["add_prefix_space"] = True


def _no_pooling(config: "PretrainedConfig") -> dict[str, bool]:
    """Returns the option that disables the pooling layer, if the model has one, so no unused weights are saved."""
    from transformers import MODEL_MAPPING

    kind = MODEL_MAPPING.get(type(config), None)
    has_option = kind is not None and "add_pooling_layer" in inspect.signature(kind.__init__).parameters
    return {"add_pooling_layer": False} if has_option else {}
