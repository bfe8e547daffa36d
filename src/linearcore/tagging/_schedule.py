"""Default batch size, number of epochs and patience, which follow the size of the training data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """Defaults of one encoder.

    A batch has a `steps_per_epoch`-th of the training words, within bounds. Training has as many epochs as `min_steps`
    steps take, within bounds, so small corpora are trained for more epochs than large ones.

    Attributes:
        batch_tokens: smallest and largest batch size, in words.
        epochs: smallest and largest number of epochs.
        min_steps: number of steps that training should have.
        steps_per_epoch: number of steps that an epoch should have.
        patience: smallest patience, in epochs.
        patience_steps: number of steps without a better validation accuracy after which training may stop.

    Example:
        >>> words, schedule = 6400, Schedule(batch_tokens=(64, 400), epochs=(12, 40), min_steps=1500)
        >>> tokens = schedule.default_batch_tokens(words)
        >>> tokens, schedule.default_epochs(words, tokens), schedule.default_patience(words, tokens, epochs=30)
        (128, 30, 20)
        >>> schedule.default_batch_tokens(1_000_000), schedule.default_epochs(1_000_000, 400)
        (400, 12)
    """

    batch_tokens: tuple[int, int]
    epochs: tuple[int, int]
    min_steps: int
    steps_per_epoch: int = 50
    patience: int = 4
    patience_steps: int = 1000

    def default_batch_tokens(self, num_words: int) -> int:
        """Returns the batch size in words for a number of training words."""
        low, high = self.batch_tokens
        return min(high, max(low, num_words // self.steps_per_epoch))

    def default_epochs(self, num_words: int, batch_tokens: int) -> int:
        """Returns the number of epochs."""
        low, high = self.epochs
        return min(high, max(low, _epochs_of(self.min_steps, num_words, batch_tokens)))

    def default_patience(self, num_words: int, batch_tokens: int, epochs: int) -> int:
        """Returns the number of epochs without a better validation accuracy after which training stops."""
        return min(epochs, max(self.patience, _epochs_of(self.patience_steps, num_words, batch_tokens)))


def _epochs_of(steps: int, num_words: int, batch_tokens: int) -> int:
    """Returns the number of epochs that together have about `steps` steps."""
    return -(-steps * batch_tokens // num_words)
