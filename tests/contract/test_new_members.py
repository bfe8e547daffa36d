"""A new member of an axis is one class in one file: here, defined in a test, it works wherever the library's own do."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import linearcore as lc
from linearcore.analysis import certify, conditional_risk, transform
from linearcore.cli import main
from linearcore.forms import Form, Labels, LinearMargins
from linearcore.heads import ChainHead
from linearcore.kernels import viterbi
from linearcore.proposals import Proposal, Uniform
from linearcore.structures import Cost, Sequences, Sites, path_score
from linearcore.surrogates import Surrogate
from linearcore.tagging import HEADS, ChainSettings, Head, Tagger, Training, Vocabulary
from linearcore.tagging.encoders import ENCODERS, Encoder, Schedule, WordFeatures
from linearcore.tagging.readers import Format, Sentence
from linearcore.tagging.readers._format import ReadOptions
from linearcore.tagging.readers._index import BY_NAME
from linearcore_paper.experiments import EXPERIMENTS
from linearcore_paper.runner import Claim, Experiment, Outcome, Settings, verdict
from tests.tagged_text import write_conllu

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GENERATOR = torch.Generator().manual_seed(0)
SCORES = torch.randn(5, 4, dtype=torch.float64, generator=GENERATOR)
TARGET = torch.tensor([0, 3, -100, 2, 2])


@dataclass(frozen=True)
class Strongest(Form):
    """φ(s_y − max_{v≠y} s_v): the margin to the strongest competitor."""

    name: ClassVar[str] = "strongest"

    def hard_losses(self, surrogate: Surrogate, scores: Tensor, labels: Labels) -> Tensor:
        assert labels.index is not None
        margin = self.decision_margin(scores, labels.index)
        delta = labels.label_margin(scores)
        return surrogate._value(margin if delta is None else margin - delta.squeeze(-1))


def by_hand(scores: Tensor, label: int) -> Tensor:
    others = torch.cat([scores[:label], scores[label + 1 :]])
    return lc.LinearCore().value(scores[label] - others.max())


@pytest.mark.parametrize("backend", ("auto", "reference", "eager"))
def test_a_form_in_losses(backend: str) -> None:
    leaf = SCORES.clone().requires_grad_()
    losses = lc.multiclass_loss(leaf, TARGET, form=Strongest(), reduction="none", backend=backend)
    expected = torch.stack([by_hand(row, y) if y >= 0 else row.new_zeros(()) for row, y in zip(SCORES, TARGET, strict=True)])
    torch.testing.assert_close(losses.detach(), expected)
    # Probabilities and label smoothing are expectations over labels.
    share = F.softmax(SCORES.flip(0), -1)
    soft = lc.multiclass_loss(leaf, share, form=Strongest(), reduction="none", backend=backend)
    every = torch.stack([torch.stack([by_hand(row, y) for y in range(4)]) for row in SCORES])
    torch.testing.assert_close(soft.detach(), (share * every).sum(-1))
    assert torch.autograd.gradcheck(lambda s: lc.multiclass_loss(s, TARGET, form=Strongest(), backend=backend), leaf)
    assert torch.autograd.gradgradcheck(lambda s: lc.multiclass_loss(s, share, form=Strongest(), backend=backend), leaf)


def test_a_form_in_modules_and_heads() -> None:
    lc.LinearCoreLoss(form=Strongest())(SCORES.float().requires_grad_(), TARGET).backward()
    emissions, tags = SCORES.float().unsqueeze(1).requires_grad_(), torch.tensor([[0], [3], [1], [2], [2]])
    for options in ({}, {"rank": 2}, {"unary": 0.5}):
        head = lc.LinearCoreChain(4, form=Strongest(), **options)
        head.loss(emissions, tags).backward()
        assert float(head.confidence(emissions.detach()).min()) >= 0


def test_probabilities_without_a_share_of_a_masked_class() -> None:
    scores = SCORES.clone()
    scores[0, 1] = scores[3, 3] = -math.inf
    share = F.softmax(SCORES.flip(0), -1).masked_fill(scores == -math.inf, 0.0)
    for surrogate in (lc.LinearCore(), lc.SquaredHinge(), lc.Exponential()):
        leaf, weight = scores.clone().requires_grad_(), torch.ones(4, dtype=torch.float64, requires_grad=True)
        lc.multiclass_loss(leaf, share / share.sum(-1, keepdim=True), form=Strongest(), surrogate=surrogate).backward()
        lc.multiclass_loss(scores, share, form=Strongest(), surrogate=surrogate, weight=weight).backward()
        assert leaf.grad.isfinite().all() and weight.grad.isfinite().all()


@dataclass(frozen=True)
class Against(Form):
    """φ(t · (s_y − mean s)), with a factor t that may be trained."""

    name: ClassVar[str] = "against"
    factor: Tensor | float = 1.0

    def hard_losses(self, surrogate: Surrogate, scores: Tensor, labels: Labels) -> Tensor:
        assert labels.index is not None
        own = scores.gather(-1, labels.index.unsqueeze(-1)).squeeze(-1)
        return surrogate._value(self.factor * (own - scores.mean(-1)))

    def margins(self, own: Tensor, candidates: Tensor, basis: Tensor) -> LinearMargins:
        eye = torch.eye(len(basis), dtype=basis.dtype)
        return LinearMargins(eye[own], basis, eye[own] - eye[candidates].mean(1))


def test_what_a_form_trains_gets_a_gradient() -> None:
    for backend in ("auto", "reference"):
        factor = torch.ones((), requires_grad=True)
        lc.multiclass_loss(SCORES, TARGET, form=Against(factor), backend=backend).backward()
        assert factor.grad is not None and factor.grad != 0
    with pytest.raises(ValueError, match="`backend` must be able to differentiate all inputs"):
        lc.multiclass_loss(SCORES, TARGET, form=Against(factor), backend="eager")


def test_a_form_in_the_consistency_lab() -> None:
    found = certify(lc.LinearCore(), Against(), 3, starts=30)
    assert found.linear_bound.verdict in ("supported", "refuted")
    with pytest.raises(ValueError, match="`form` must define its margins, got 'strongest'"):
        certify(lc.LinearCore(), Strongest(), 3)


def test_a_form_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="`form` must not need all classes when it is sampled, got 'strongest'"):
        lc.sampled_multiclass_loss(
            SCORES, torch.randn(9, 4).double(), TARGET, form=Strongest(), proposal=Uniform(), num_samples=3
        )
    with pytest.raises(ValueError, match="`normalize` must be None or False for form='strongest'"):
        lc.multiclass_loss(SCORES, TARGET, form=Strongest(), normalize=True)


@dataclass(frozen=True)
class Elliptic(Surrogate):
    """φ(u) = √(1 + (1 − u)²) + 1 − u: smooth, convex and decreasing."""

    lipschitz: ClassVar[float] = 2.0
    smoothness: ClassVar[float] = 1.0
    is_convex: ClassVar[bool] = True
    is_c1: ClassVar[bool] = True
    is_c2: ClassVar[bool] = True
    is_monotone: ClassVar[bool] = True
    vanishes: ClassVar[bool] = True
    bounds_zero_one: ClassVar[bool] = True
    knots: ClassVar[tuple[float, ...]] = ()
    core: ClassVar[None] = None

    def _value(self, margin: Tensor) -> Tensor:
        z = 1 - margin
        return torch.where(z > 0, torch.hypot(z, torch.ones_like(z)) + z, 1 / (torch.hypot(z, torch.ones_like(z)) - z))

    def _derivative(self, margin: Tensor) -> Tensor:
        z = 1 - margin
        return -z / torch.hypot(z, torch.ones_like(z)) - 1

    def _curvature(self, margin: Tensor) -> Tensor:
        return (1 + (1 - margin) ** 2) ** -1.5


@pytest.mark.parametrize("form", ("pairwise", "centered", "logodds"))
def test_a_surrogate(form: str) -> None:
    leaf = SCORES.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: lc.multiclass_loss(s, TARGET, surrogate=Elliptic(), form=form), leaf)
    lc.LinearCoreChain(4, surrogate=Elliptic(), form=form).double().loss(leaf.unsqueeze(1), TARGET.unsqueeze(1)).backward()
    if form != "centered":  # Which needs all classes, whatever the surrogate.
        given = leaf, torch.eye(4).double(), TARGET
        lc.sampled_multiclass_loss(*given, surrogate=Elliptic(), form=form, proposal=Uniform(), num_samples=3).backward()
        layer = nn.Linear(4, 4).double()
        lc.LinearCoreChain(4, surrogate=Elliptic(), form=form).double().sampled_loss(
            leaf.unsqueeze(1), layer, TARGET.unsqueeze(1), proposal=Uniform(), num_samples=3
        ).backward()
    assert certify(Elliptic(), form, 2, starts=20).linear_bound.verdict in ("supported", "refuted")
    assert float(transform(Elliptic(), 0.5)) > 0


@dataclass(frozen=True, kw_only=True)
class Halves(Proposal):
    """Half of the draws from the first half of the classes, half from the others."""

    def sample(self, size: tuple[int, ...], num_classes: int, like: Tensor, generator: torch.Generator | None) -> Tensor:
        first = (num_classes + 1) // 2
        drawn = torch.rand((2, *size), generator=generator, device=like.device, dtype=torch.float64)
        low = (drawn[1] * first).long()
        high = first + (drawn[1] * (num_classes - first)).long()
        return torch.where((drawn[0] < 0.5) | (num_classes == 1), low, high).clamp(max=num_classes - 1)

    def log_prob(self, index: Tensor, num_classes: int) -> Tensor:
        first = (num_classes + 1) // 2
        sizes = torch.where(index < first, float(first), float(num_classes - first))
        return -sizes.log() - math.log(2)


def test_a_proposal() -> None:
    weight, target = torch.randn(7, 4, dtype=torch.float64, generator=GENERATOR), torch.tensor([0, 6, 3, 2, 2])
    options = {"form": lc.Pairwise(normalize=False), "reduction": "sum"}
    exact = lc.multiclass_loss(SCORES @ weight.t(), target, **options)
    stream = torch.Generator().manual_seed(1)
    draws = torch.stack([
        lc.sampled_multiclass_loss(SCORES, weight, target, proposal=Halves(), num_samples=20, generator=stream, **options)
        for _ in range(400)
    ])  # fmt: skip
    assert abs(float(draws.mean() - exact)) < 4 * float(draws.std()) / 20
    head, layer = lc.LinearCoreChain(7), nn.Linear(4, 7)
    head.sampled_loss(SCORES.float().unsqueeze(1), layer, target.unsqueeze(1), proposal=Halves(), num_samples=3).backward()


@dataclass(frozen=True)
class Distance(Cost):
    """The mean distance |y'_j − y_j| of tags that are ordered, over the largest."""

    name: ClassVar[str] = "distance"
    is_additive: ClassVar[bool] = True
    most: int = 3

    def between(
        self, answer: Tensor, truth: Tensor, mask: Tensor | None = None, *, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        away = (answer - truth).abs().to(dtype) / self.most
        there = torch.ones_like(truth, dtype=dtype) if mask is None else mask.to(dtype)
        return (away * there).sum(-1) / there.sum(-1).clamp(min=1)

    def site_costs(self, truth: Tensor, num_tags: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return (torch.arange(num_tags, device=truth.device) - truth.unsqueeze(-1)).abs().to(dtype) / self.most


class Tenth(Distance):
    """A cost about which nothing is declared: a tenth of the distance."""

    is_additive: ClassVar[bool] = False

    def between(self, *given: Tensor, **how: torch.dtype) -> Tensor:
        return super().between(*given, **how) / 10


SPACE = Sequences(4, 2)
EMISSIONS, TAGS = SCORES[:2].unsqueeze(1), torch.tensor([[0], [2]])
TRUTH = (SPACE.outputs == TAGS.t()).all(-1).double()


def every_score(head: ChainHead) -> Tensor:
    sites = Sites.of(torch.ones(2, SPACE.size, dtype=torch.bool))
    emissions = EMISSIONS.expand(-1, SPACE.size, -1)
    return path_score(emissions, head.chain(emissions), SPACE.outputs.t(), sites).detach()


def test_a_cost_in_a_search() -> None:
    head = lc.ChainSSVM(4, cost=Distance()).double()
    scores, costs = every_score(head), 2 * SPACE.cost(Distance()) @ TRUTH
    torch.testing.assert_close(head.loss(EMISSIONS, TAGS, reduction="sum").detach(), (scores + costs - scores @ TRUTH).max())
    with pytest.raises(ValueError, match=r"`cost` must be a sum over positions, or 1 for every wrong sequence, got Tenth"):
        lc.ChainSSVM(4, cost=Tenth())


@pytest.mark.parametrize("form", ("sum", "centered"))
@pytest.mark.parametrize("cost", (Distance(), Tenth()))
def test_a_cost_in_the_estimators(form: str, cost: Cost) -> None:
    head, stream = lc.LinearCoreChain(4, cost=cost).double(), torch.Generator().manual_seed(1)
    exact = conditional_risk(head.surrogate, f"structured-{form}", every_score(head), TRUTH, outputs=SPACE, cost=cost)
    how = {"form": form, "num_samples": 1000, "generator": stream}
    found = torch.stack([head.structured(EMISSIONS, TAGS, objective="raw", **how) for _ in range(40)]).detach()
    assert abs(float(found.mean()) - float(exact)) < 4 * float(found.std()) / math.sqrt(40)
    with pytest.raises(ValueError, match="`cost` must define `log_similarity_mass` for the normalised objective, got "):
        head.structured(EMISSIONS, TAGS, **how)


def test_a_cost_without_weights_of_sites() -> None:
    head = lc.LinearCoreChain(4, cost=Distance()).double()
    with pytest.raises(ValueError, match="`cost` must define `site_weight`, got Distance; use 'hamming', or"):
        head.loss(EMISSIONS, TAGS)


def test_a_cost_in_the_consistency_lab() -> None:
    # The centered form's bound is for every cost; that of classes is for the zero-one cost alone.
    proven = certify(lc.LinearCore(), "structured-centered", outputs=Sequences(3, 2), cost=Distance(2))
    assert proven.linear_bound.verdict == "proven" and proven.to_json()["cost"] == "Distance(most=2)"
    for outputs in (Sequences(2), Sequences(3)):
        found = certify(lc.LinearCore(), "centered", outputs=outputs, cost=Tenth(2), starts=30)
        assert found.linear_bound.verdict in ("supported", "refuted")


class ChainPerceptron(ChainHead):
    """The structured perceptron: the best score less that of the truth."""

    def _losses(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        chain = self.chain(emissions)
        best = viterbi(emissions.detach(), chain, sites)[0].clamp(min=0)
        return path_score(emissions, chain, best, sites) - path_score(emissions, chain, tags, sites)

    def _confidence(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        return torch.ones_like(tags, dtype=emissions.dtype)

    def candidate_loss(self, emissions: Tensor, tags: Tensor, mask: Tensor | None = None, *, cost: Cost) -> Tensor:
        """Needed for the option `cost`; here the error of the best sequence weights its loss."""
        best, _ = self.viterbi(emissions, mask)
        return (cost.between(best, tags.clamp(min=0), mask) * self.loss(emissions, tags, mask, reduction="none")).mean()


def test_a_head_of_the_tagger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(HEADS, "perceptron", Head("structured perceptron", ChainPerceptron, ("rank", "beam", "cost")))
    words = [
        "--train",
        str(write_conllu(tmp_path / "train.conllu", 60)),
        "--tag",
        "upos",
        "--epochs",
        "8",
        "--batch-tokens",
        "64",
    ]
    run = ["tag", "train", *words, "--loss", "perceptron", "--rank", "2", "--out", str(tmp_path / "model"), "--json"]
    assert command(run) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["settings"]["loss"], printed["settings"]["rank"]) == ("perceptron", 2)
    assert printed["dev_accuracy"] > 80
    head = Tagger.load(tmp_path / "model").model.head
    assert type(head) is ChainPerceptron and head.rank == 2
    assert type(ChainSettings("perceptron", beam=4).make_head(["O", "B-X"], strict_mask=False)) is ChainPerceptron
    again = [*run[: run.index("--out")], "--out", str(tmp_path / "weighted"), "--json", "--cost", "hamming"]
    assert command(again) == 0 and json.loads(capsys.readouterr().out)["dev_accuracy"] > 80
    # What it does not take is refused by what it declares.
    assert command([*run, "--unary", "0.5"]) == 2
    assert "`unary` must be None with loss 'perceptron', got 0.5; omit it, or use loss 'lc'" in capsys.readouterr().err
    with pytest.raises(ValueError, match="`compiled` must be False with loss 'perceptron'"):
        Training(loss="perceptron", compiled=True)


class LastLetter(Encoder):
    """An embedding of the last letter of each word."""

    kind = "last-letter"
    settings: ClassVar = {"embedding": 16}
    default_lr = 0.05
    schedule = Schedule(batch_tokens=(64, 64), epochs=(9, 9), min_steps=1)

    def __init__(self, letters: str, embedding: int = 16) -> None:
        super().__init__()
        self.letters, self.width = letters, embedding
        self.table = nn.Embedding(len(letters) + 1, embedding)

    @classmethod
    def from_settings(cls, vocabulary: Vocabulary, path: str = "", **settings: Any) -> "LastLetter":
        return cls("".join(sorted({word[-1] for word in vocabulary.words})), **settings)

    def featurize(self, words: Sequence[str]) -> WordFeatures:
        return (torch.tensor([self.letters.find(word[-1]) + 1 for word in words]),)

    def collate(self, sentences: Sequence[WordFeatures], length: int) -> dict[str, Tensor]:
        return {"letters": torch.stack([F.pad(letters, (0, length - len(letters))) for (letters,) in sentences])}

    def forward(self, mask: Tensor, *, letters: Tensor) -> Tensor:
        states: Tensor = self.table(letters)
        return states

    def save(self, folder: Path) -> dict[str, Any]:
        return {"letters": self.letters, "embedding": self.width}

    @classmethod
    def load(cls, folder: Path, settings: dict[str, Any]) -> "LastLetter":
        return cls(**settings)


def test_an_encoder_of_the_tagger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(ENCODERS, LastLetter.kind, LastLetter)
    data, out = str(write_conllu(tmp_path / "train.conllu", 60)), str(tmp_path / "model")
    run = ["tag", "train", "--train", data, "--tag", "upos", "--out", out, "--json"]
    assert command([*run, "--encoder", "last-letter", "--embedding", "8"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["settings"]["encoder"], printed["settings"]["rate"]) == ("last-letter", 0.05)
    assert printed["dev_accuracy"] > 80
    encoder = Tagger.load(out).model.encoder
    assert type(encoder) is LastLetter and encoder.width == 8
    # It does not take a path, and says so.
    assert command([*run, "--encoder", "last-letter:somewhere"]) == 2
    assert "`encoder` must be bilstm or transformer:PATH or last-letter, got" in capsys.readouterr().err


class Slashes(Format):
    """One sentence per line between // and //, words as word:tag, or as word where there are no tags."""

    name = "slashes"
    description = "sentences between slashes"
    output = "columns"

    def check_tag(self, tag: str, file: str) -> None:
        if tag != "last":
            raise ValueError("`tag` must be 'last' for slashes")

    def read(self, lines: Iterable[str], name: str, options: ReadOptions) -> Iterator[Sentence]:
        for number, line in enumerate(lines, 1):
            pairs = [word.partition(":") for word in line.strip("/ ").split()]
            tags = None if options.tag is None else [tag for _, _, tag in pairs]
            yield Sentence([word for word, _, _ in pairs], tags, [], [], number, self.name)

    def columns(self, tag: str) -> str:
        return "last"

    def recognises(self, line: str) -> bool:
        return line.startswith("// ")


def test_a_format_of_the_tagger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(BY_NAME, Slashes.name, Slashes())
    data, text, out = tmp_path / "train.txt", tmp_path / "new.txt", str(tmp_path / "model")
    data.write_text("// a:DET dog:NOUN //\n" * 20)
    text.write_text("// a dog //\n")
    assert command(["tag", "train", "--train", str(data), "--out", out, "--hidden", "8"]) == 0
    assert Tagger.load(out).layout.format == "slashes"
    capsys.readouterr()
    assert command(["tag", "predict", out, str(text)]) == 0
    assert capsys.readouterr().out == "a\tDET\ndog\tNOUN\n\n"
    assert command(["tag", "eval", out, str(data)]) == 0
    assert "100.00 % of 40 words correct" in capsys.readouterr().out
    # What it declares is used where files of other formats are refused.
    text.write_text("a\tDET\n")
    assert command(["tag", "predict", out, str(text)]) == 2
    assert "slashes (sentences between slashes)" in capsys.readouterr().err
    assert command(["tag", "predict", out, str(data), "--comments"]) == 2
    assert "has no meaning for the format slashes" in capsys.readouterr().err


def command(words: list[str]) -> int:
    with pytest.raises(SystemExit) as left:
        main(words)
    return int(left.value.code or 0)


def slopes(settings: Settings) -> dict[str, Any]:
    return {f"tau-{tau}": lambda tau=tau: float(lc.LinearCore(tau=tau).derivative(0.0)) for tau in (1, 2)}


def compare(results: dict[str, Any], settings: Settings) -> Outcome:
    same = verdict(results["tau-1"] == results["tau-2"] == -1)
    claim = Claim("The slope in the core is −1", "−1", f"{results['tau-1']:g}", same)
    return Outcome([claim], results, "Two bars, both at −1.")


def bars(data: dict[str, Any]) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure()
    figure.add_subplot().bar(list(data), list(data.values()))
    return figure


SLOPES = Experiment(
    name="slopes", title="Slopes in the core", question="How steep is the core?", shows="the slope in the core",
    paper="nowhere", needs="nothing", cost={"smoke": "1 s", "paper": "1 s"}, parts=slopes, conclude=compare, draw=bars,
)  # fmt: skip


def test_an_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(EXPERIMENTS, "slopes", SLOPES)
    assert command(["reproduce", "slopes", "--list", "--json"]) == 0
    assert [item["shows"] for item in json.loads(capsys.readouterr().out)] == ["the slope in the core"]
    assert command(["reproduce", "slopes", "--out", str(tmp_path), "--report"]) == 0
    assert "holds: The slope in the core is −1" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "slopes").iterdir()} == {"results.jsonl", "slopes.svg", "slopes.png"}
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Slopes in the core" in page and "How steep is the core?" in page and "Two bars, both at −1." in page
    # Finished parts are kept, as those of every experiment.
    assert command(["reproduce", "slopes", "--out", str(tmp_path)]) == 0
    assert "2 of 2 parts were finished before" in capsys.readouterr().out
