"""`import linearcore` is cheap, quiet and leaves no trace."""

from tests.fresh_python import fresh_python

OPTIONAL = (
    "triton", "sklearn", "matplotlib", "transformers", "scipy", "typer", "rich",
    "pandas", "pyarrow", "safetensors", "jinja2", "conllu", "seqeval", "PIL",
    "onnx", "onnxruntime", "onnxscript", "spacy", "tokenizers",
)  # fmt: skip

# torch itself may import some of these where they are installed; that is not ours to answer for.
LISTS_NEW_MODULES = """
import sys, torch
before = set(sys.modules)
def new():
    return sorted({{name.partition(".")[0] for name in set(sys.modules) - before}})
import {modules}
print(*new())
import linearcore.cli._app
print(*new())
"""

COMPARES_STATE = """
import random, numpy, torch
torch.manual_seed(3); numpy.random.seed(3); random.seed(3)
def state():
    return (torch.get_rng_state().tolist(), str(numpy.random.get_state()), random.getstate(), torch.get_num_threads(),
            torch.get_default_dtype(), torch.is_grad_enabled(), torch.cuda.is_initialized())
before = state()
import linearcore, linearcore.noise
assert state() == before
"""

# As in an environment that has torch, numpy and what these two require, and nothing else.
ONLY_TORCH_AND_NUMPY = """
import re, sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

def collect(name, found):
    name = re.sub("[-_.]+", "-", re.match("[A-Za-z0-9._-]+", name)[0]).lower()
    if name in found:
        return
    found.add(name)
    try:
        needed = requires(name) or []
    except PackageNotFoundError:
        return
    for line in needed:
        if "extra ==" not in line:
            collect(line, found)

there = set()
collect("torch", there), collect("numpy", there)
distributions = {name: {re.sub("[-_.]+", "-", item).lower() for item in items}
                 for name, items in packages_distributions().items()}
blocked = {name for name, items in distributions.items() if not items & there} - {"linearcore"}
assert {"scipy", "typer", "rich", "safetensors", "matplotlib"} <= blocked and not {"torch", "numpy"} & blocked
sys.modules.update(dict.fromkeys(blocked | {"linearcore_paper"}))
"""

TRAINS = """
import torch
import linearcore as lc

torch.manual_seed(0)
features, labels = torch.randn(64, 20), torch.randint(5, (64,))
model = torch.nn.Linear(20, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for criterion in (lc.LinearCoreLoss(), lc.RobustLinearCoreLoss()):
    losses = []
    for step in range(3):
        optimizer.zero_grad()
        loss = criterion(model(features), labels)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]
head = lc.LinearCoreChain(4, batch_first=True)
emissions, tags = torch.randn(2, 7, 4, requires_grad=True), torch.randint(4, (2, 7))
(-head(emissions, tags)).backward()
assert emissions.grad.abs().sum() > 0 and head.viterbi(emissions)[0].shape == (2, 7)
from linearcore import noise
assert noise.symmetric(labels, 0.2, num_classes=5, seed=0).labels.shape == labels.shape
from linearcore.cleaning import find_wrong_labels, out_of_fold_scores, suspects
found = suspects(out_of_fold_scores(features, labels, num_classes=5, epochs=1).scores, labels.numpy())
assert found.estimate.rows == 64 and len(find_wrong_labels(features, labels, model="network").suspects) == 64
"""


SAVES = """
import pathlib, linearcore.runtime as runtime
try:
    runtime.write_store(pathlib.Path("nowhere"), "x", settings={}, tensors={})
except ImportError as error:
    print(error)
from linearcore.cleaning import find_wrong_labels
for missing in (lambda: find_wrong_labels([[0.0], [1.0]] * 4, [0, 1] * 4), found.to_frame):
    try:
        missing()
    except ImportError as error:
        print(error)
"""

COMMANDS = """
from linearcore.cli import main
for words in ([], ["--help"], ["tag", "train"]):
    try:
        main(words)
    except SystemExit as stopped:
        assert stopped.code == 2
"""


def test_torch_and_numpy_are_enough_to_train_and_the_rest_says_what_to_install():
    """In one Python, since each costs seconds."""
    run = fresh_python("-c", ONLY_TORCH_AND_NUMPY + TRAINS + SAVES + COMMANDS)
    assert run.returncode == 0, run.stderr
    names = {"safetensors": "tagging", "scikit-learn": "cleaning", "pandas": "tables"}
    expected = [f"{name} not installed; run pip install 'linearcore[{extra}]'" for name, extra in names.items()]
    assert run.stdout.splitlines()[-3:] == expected
    lines = run.stderr.splitlines()
    assert len(lines) == 3 and all(line.endswith("run pip install 'linearcore[cli]'") for line in lines)


def test_nothing_optional_is_imported_and_commands_import_no_extra_but_their_own():
    """One Python for all, since each would cost seconds."""
    packages = ["noise", "structures", "analysis", "cleaning", "tables", "tagging", "runtime", "cli"]
    modules = ["linearcore", *(f"linearcore.{name}" for name in packages)]
    modules += ["linearcore_paper.vision", "linearcore_paper.experiments"]
    run = fresh_python("-c", LISTS_NEW_MODULES.format(modules=", ".join(modules)))
    assert run.returncode == 0, run.stderr
    new, with_commands = (line.split() for line in run.stdout.splitlines())
    assert "linearcore" in new and "typer" in with_commands
    assert not set(new) & set(OPTIONAL)
    assert not set(with_commands) & (set(OPTIONAL) - {"typer", "rich"})


def test_import_prints_and_warns_nothing_and_leaves_random_streams_and_settings_alone():
    run = fresh_python("-W", "error", "-c", COMPARES_STATE)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
