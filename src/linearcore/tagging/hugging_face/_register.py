"""Makes the Auto classes of transformers know the chain."""

from transformers import AutoConfig, AutoModelForTokenClassification

from linearcore.tagging.hugging_face._config import ChainConfig
from linearcore.tagging.hugging_face._model import ChainForTokenClassification


def register() -> None:
    """Lets AutoConfig and AutoModelForTokenClassification read saved chains, and pipelines call them by name.

    Importing does not do it, since it changes what transformers does in the whole process. Twice is once.

    Example:
        >>> from transformers import AutoConfig
        >>> register()
        >>> type(AutoConfig.for_model("linearcore-chain", num_labels=3)).__name__
        'ChainConfig'
    """
    AutoConfig.register(ChainConfig.model_type, ChainConfig, exist_ok=True)
    AutoModelForTokenClassification.register(ChainConfig, ChainForTokenClassification, exist_ok=True)
