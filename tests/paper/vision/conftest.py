import pytest

from linearcore.runtime import one_thread


@pytest.fixture(autouse=True)
def on_one_core():
    """Networks as small as these lose by more."""
    with one_thread():
        yield
