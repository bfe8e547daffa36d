"""What all tests share."""

import pytest
import torch

try:
    from hypothesis import settings
except ImportError:  # `make test-gpu` installs nothing, and its tests do without.
    pass
else:
    # Every run tests the same examples, so that a failure is one of the change.
    # `--hypothesis-profile=default` draws new ones.
    settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
    settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def seeded():
    """Seeds torch's global generators, so that a test draws the same numbers alone as after any other test."""
    torch.manual_seed(0)
