"""Independent random streams from one user seed, and the check of seeds."""

from hashlib import sha256

import torch

from linearcore._checks import complaint


def stream_for(purpose: str, seed: int) -> torch.Generator:
    """Returns a CPU generator seeded by `purpose` and `seed`.

    Different purposes give independent streams. With `torch.manual_seed(0)` for both label noise and a validation split,
    the split would select exactly the noisy labels.

    Raises:
        TypeError: if `seed` is not an integer.

    Example:
        >>> torch.rand(1, generator=stream_for("labels", 0)) == torch.rand(1, generator=stream_for("order", 0))
        tensor([False])
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(complaint("seed", "be an integer", repr(seed), "pass 0, for example"))
    # torch's Mersenne Twister uses 32 bits of the seed.
    digest = sha256(f"linearcore: {purpose}, {seed}".encode()).digest()[:4]
    return torch.Generator(device="cpu").manual_seed(int.from_bytes(digest, "big"))


def check_seed(seed: int) -> None:
    """Raises if `seed` is not an integer that torch accepts."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise ValueError(complaint("seed", "be a non-negative integer below 2**63", repr(seed), "pass 0, for example"))
