"""What all tests share."""

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded():
    """Seeds torch's global generators, so that a test draws the same numbers alone as after any other test."""
    torch.manual_seed(0)
