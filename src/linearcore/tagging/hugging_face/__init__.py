"""Chain heads for Hugging Face token classification.

    model = ChainForTokenClassification.from_encoder(path, labels=["O", "B-PER", "I-PER"], loss="lc")

is a `PreTrainedModel` for `Trainer`, `pipeline` and, after `register()`, the Auto classes. The argmax that they take is the
decoded sequence, so that nothing else has to know of the chain. Importing this package imports transformers.
"""

from linearcore._extras import require

require("transformers", extra="tagging")

from linearcore.tagging.hugging_face._config import ChainConfig  # noqa: E402
from linearcore.tagging.hugging_face._model import ChainForTokenClassification, register  # noqa: E402

__all__ = ["ChainConfig", "ChainForTokenClassification", "register"]
