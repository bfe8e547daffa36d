"""Chain heads for Hugging Face token classification.

    model = ChainForTokenClassification.from_encoder(path, labels=["O", "B-PER", "I-PER"], loss="lc")

The model is a `PreTrainedModel` for `Trainer`, `pipeline` and, after `register()`, the Auto classes. The argmax of its
logits is the decoded sequence, so these classes need no change. `from_tagger` converts a trained tagger. Importing this
package imports transformers.
"""

from linearcore._extras import require

require("transformers", extra="tagging")

from linearcore.tagging.hugging_face._config import ChainConfig  # noqa: E402
from linearcore.tagging.hugging_face._from_tagger import from_tagger  # noqa: E402
from linearcore.tagging.hugging_face._model import ChainForTokenClassification, register  # noqa: E402

__all__ = ["ChainConfig", "ChainForTokenClassification", "from_tagger", "register"]
