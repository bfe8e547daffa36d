"""Every Triton kernel compiles for Hopper, on a machine without a GPU: Triton's interpreter accepts more than its compiler.

The kernels are called as usual, by tensors on a CPU, and compiled instead of launched, and all results are zeros.
"""

import os
import re
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import Tensor

import linearcore.kernels._fused as fused_module
from linearcore import ChainCRF, Hinge, multiclass_loss
from linearcore.heads._batch import to_batch
from linearcore.kernels._adamw_types import AdamWStep
from tests.kernels.paths import DEVICE, PATHS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed"),
    pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter compiles nothing"),
    pytest.mark.skipif(DEVICE.type == "cuda" or torch.cuda.is_available(), reason="a GPU runs the kernels themselves"),
]
#: Compute capability of an H100 or H200, and the shared memory that a program of theirs can have.
CAPABILITY, SHARED_MEMORY = 90, 227 * 2**10
SOURCES = Path(fused_module.__file__).with_name("fused")
#: A kernel in a launch: `_kernel[grid](`, `Launcher(_kernel)` or `Launch(kernel,`.
LAUNCHED = re.compile(r"Launch(?:er)?\((\w+)[,)]|^\s+(_\w+)\[.*\]\($|(\b_\w+)\[(?:\(|grid)[^=]*\]\(", re.MULTILINE)


def launched() -> set[str]:
    """The kernels in launches, as FILE.NAME."""
    sources = {path.stem: path.read_text(encoding="utf-8") for path in SOURCES.glob("_*.py") if path.stem != "_launch"}
    names: set[str] = set()
    for file, source in sources.items():
        for name in (next(filter(None, groups)) for groups in LAUNCHED.findall(source)):
            files = [file] if f"\ndef {name}(" in source else [it for it in sources if f"\ndef {name}(" in sources[it]]
            names |= {f"{it}.{name}" for it in files}
    return names


class Hopper:
    """What Triton asks its driver for a device."""

    def get_current_target(self) -> object:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", CAPABILITY, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _: int) -> int:
        return 0


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, int]:
    """Filled with the shared memory of each kernel that was called, by its name."""
    import triton
    from triton.runtime import JITFunction

    import linearcore.kernels.fused._recursion as recursion_module

    shared: dict[str, int] = {}
    run = JITFunction.run

    def compile_only(self, *given: object, grid: object, warmup: bool, **options: object) -> None:
        kernel = run(self, *given, grid=grid, warmup=True, **options)
        name = f"{self.fn.__module__.rpartition('.')[2]}.{self.fn.__name__}"
        shared[name] = max(shared.get(name, 0), kernel.metadata.shared)
        for tensor in given:
            if isinstance(tensor, Tensor):  # All inputs are zeros.
                tensor.data.zero_()

    monkeypatch.setattr(JITFunction, "run", compile_only)
    monkeypatch.setattr(recursion_module, "_launches", lambda a, items, length: [(items, 0, length, 0)])
    # The kernels are imported: from now on this only chooses them for tensors on a CPU.
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(triton.runtime.driver, "_active", Hopper())
    return shared


def of_path(name: str, dtype: torch.dtype, rows: int = 3, classes: int = 6) -> None:
    path = PATHS[name]
    inputs = {key: torch.zeros(*shape, dtype=dtype) for key, shape in path.shapes(rows, classes).items()}
    target = torch.zeros(path.labels(rows, classes), dtype=torch.long)
    with torch.no_grad():
        path.losses(inputs, target)
    losses = path.losses({key: tensor.requires_grad_() for key, tensor in inputs.items()}, target)
    losses.backward(torch.zeros_like(losses))


def of_hinge() -> None:
    multiclass_loss(torch.zeros(3, 6, requires_grad=True), torch.zeros(3, dtype=torch.long), surrogate=Hinge()).backward()


def of_decoding(num_tags: int) -> None:
    with torch.no_grad():
        # Without checks, which read results.
        ChainCRF(num_tags, validate=False).viterbi(torch.zeros(3, 2, num_tags))


def of_layout() -> None:
    to_batch(5, torch.zeros(3, 2, 5), torch.zeros(3, 2, dtype=torch.long), None, check_values=False, strict=False)


def of_scaling() -> None:
    from linearcore.kernels import fused
    from linearcore.kernels.fused._dense import scaled

    scaled(torch.zeros(2**20), torch.zeros(()))
    fused.scale_by(torch.zeros(9), torch.zeros(()))


def of_sparse_adamw() -> None:
    from linearcore.kernels import fused

    for last_step in (None, torch.zeros(5, dtype=torch.long)):
        tables: tuple[Tensor, ...] = tuple(torch.zeros(5, 3) for _ in range(3))
        step = AdamWStep(number=2, lr=0.1, betas=(0.9, 0.99), eps=1e-8, decay=0.9)
        fused.sparse_adamw(torch.zeros(2, 3), tables, last_step, torch.zeros(2, dtype=torch.long), step)


#: Every fast path once, and every dtype.
PATHS_AND_DTYPES = {
    "logodds": torch.float16,
    "pairwise, margins": torch.bfloat16,
    "centered, summed": torch.float32,
    "robust": torch.float32,
    "binary": torch.bfloat16,
    "sampled logodds": torch.bfloat16,
    "sampled pairwise": torch.float32,
    "sampled chain, rank, unary": torch.float32,
    "linear logodds": torch.float32,
    "linear pairwise": torch.bfloat16,
    "linear centered": torch.float16,
    "chain, unary": torch.float32,
    "chain, rank": torch.bfloat16,
    "crf": torch.float32,
}
CALLS: dict[str, Callable[[], None]] = {
    **{name: partial(of_path, name, dtype) for name, dtype in PATHS_AND_DTYPES.items()},
    **{f"long {form}": partial(of_path, form, torch.float32, 3, 5000) for form in ("logodds", "pairwise", "centered")},
    "crf with 128 tags": partial(of_path, "crf", torch.float32, 3, 128),
    "crf with 65 sequences and 200 tags": partial(of_path, "crf", torch.float32, 65, 200),
    "hinge": of_hinge,
    "decoding": partial(of_decoding, 128),
    "decoding with 200 tags": partial(of_decoding, 200),
    "layout": of_layout,
    "scaling": of_scaling,
    "sparse AdamW": of_sparse_adamw,
}


def test_every_kernel_compiles_for_hopper(compiled: dict[str, int]) -> None:
    for name, call in CALLS.items():
        try:
            call()
        except Exception as error:
            pytest.fail(f"{name}: {error}")
    assert compiled.keys() >= launched(), "these kernels need a call here"
    assert max(compiled.values()) <= SHARED_MEMORY
