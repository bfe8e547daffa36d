"""Full precision is held while anybody wants it, and torch's settings are afterwards what they were."""

import threading
from collections.abc import Iterator

import pytest
import torch

from linearcore.kernels._precision import full_precision

CPU = torch.device("cpu")
SETTINGS = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul


@pytest.fixture(autouse=True)
def settings_as_they_were() -> Iterator[None]:
    torch.set_float32_matmul_precision("highest")
    yield
    torch.backends.fp32_precision = "none"
    torch.set_float32_matmul_precision("highest")


def now() -> set[str]:
    return {setting.fp32_precision for setting in SETTINGS}


@pytest.mark.parametrize("precision", ("highest", "high", "medium"))
def test_the_old_setting_is_restored(precision: str) -> None:
    torch.set_float32_matmul_precision(precision)
    before = [setting.fp32_precision for setting in SETTINGS]
    with full_precision(CPU):
        assert now() == {"ieee"} and not torch.backends.cuda.matmul.allow_tf32
    assert [setting.fp32_precision for setting in SETTINGS] == before
    assert torch.get_float32_matmul_precision() == precision


def test_the_new_setting_is_restored_and_still_inherited() -> None:
    for setting in SETTINGS:
        setting.fp32_precision = "none"
    torch.backends.fp32_precision = "tf32"
    with full_precision(CPU):
        assert now() == {"ieee"}
    assert now() == {"tf32"}
    torch.backends.fp32_precision = "ieee"
    assert now() == {"ieee"}


def test_a_setting_made_meanwhile_is_kept() -> None:
    torch.set_float32_matmul_precision("high")
    with full_precision(CPU):
        torch.set_float32_matmul_precision("medium")
    assert torch.get_float32_matmul_precision() == "medium"


def test_the_last_thread_restores() -> None:
    torch.set_float32_matmul_precision("high")
    inside, leave, seen = threading.Event(), threading.Event(), []

    def other() -> None:
        with full_precision(CPU):
            inside.set()
            leave.wait(10)
            seen.append(now())

    thread = threading.Thread(target=other)
    with full_precision(CPU):
        thread.start()
        inside.wait(10)
    assert now() == {"ieee"}
    leave.set()
    thread.join()
    assert seen == [{"ieee"}] and torch.get_float32_matmul_precision() == "high"
