"""Streams of random numbers that have nothing to do with one another, though a user gives one seed for all."""

from hashlib import sha256

import torch

from linearcore._checks import complaint


def stream_for(purpose: str, seed: int) -> torch.Generator:
    """A generator on the CPU that belongs to a purpose and a seed.

    Whoever makes labels wrong and then holds some out, each with seed 0, must not hold out the wrong ones; the same numbers
    from `torch.manual_seed(0)` for both would do just that.

    Raises:
        TypeError: if the seed is no integer.

    Example:
        >>> torch.rand(1, generator=stream_for("labels", 0)) == torch.rand(1, generator=stream_for("order", 0))
        tensor([False])
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(complaint("seed", "be an integer", repr(seed), "for example 0"))
    # torch's Mersenne Twister takes 32 bits of a seed, whatever it is given.
    name = sha256(f"linearcore: {purpose}, {seed}".encode()).digest()[:4]
    return torch.Generator(device="cpu").manual_seed(int.from_bytes(name, "big"))


def check_seed(seed: int) -> None:
    """Raises unless torch takes `seed` as it is."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise ValueError(complaint("seed", "be a non-negative integer below 2**63", repr(seed), "pass 0, for example"))
