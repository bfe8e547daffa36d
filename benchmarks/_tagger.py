"""A tagger for benchmarks: reads or makes sentences, and trains a network with a LinearCoreChain on top."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import linearcore as lc
from linearcore.runtime import track
from linearcore.tagging.readers import read_sentences
from linearcore_paper.experiments.tagging.text import every_tenth

TURKISH = ("tr_web", "tr_wiki")  # the files of the Turkish Web Treebank

Words = list[tuple[str, str]]  # a sentence: words and their tags
Sentence = tuple[Tensor, Tensor]  # the same as numbers


class UsageError(Exception):
    """An error of the user; its message is one line."""


@dataclass(frozen=True)
class Recipe:
    """Sizes of the network and training settings."""

    steps: int = 1000
    tokens: int = 800  # tokens per training batch
    rate: float = 0.004
    buckets: int = 2**16
    width: int = 64
    hidden: int = 256
    rank: int = 32


# ---- data ----------------------------------------------------------------------------------------------------------------


class Corpus(NamedTuple):
    """Sentences as numbers.

    Attributes:
        features: (number of word forms, 9) buckets of each word form; form 0 stands for padding.
        num_tags: |Y|, the tags of the training part.
        parts: sentences of train, dev and test as (forms, tags); tags that do not occur in training are −1.
    """

    features: Tensor
    num_tags: int
    parts: dict[str, list[Sentence]]


def latin(folder: Path | None) -> dict[str, list[Words]]:
    """Reads LASLA: sentences of words with tags "UPOS|FEATS"."""
    return {part: treebank(folder, f"la_lasla-{part}", "latin", "generated") for part in ("train", "dev", "test")}


def turkish(folder: Path | None) -> dict[str, list[Words]]:
    """Reads both files of the Turkish Web Treebank, split by sentence number (see `every_tenth`)."""
    parts: dict[str, list[Words]] = {"train": [], "dev": [], "test": []}
    for name in TURKISH:
        for part, sentences in every_tenth(treebank(folder, name, "turkish", "chains")).items():
            parts[part] += sentences
    return parts


def treebank(folder: Path | None, name: str, set_name: str, instead: str) -> list[Words]:
    """Reads the sentences of tagging/NAME.conllu.xz; if it is missing, the error names the set and an alternative."""
    file = f"tagging/{name}.conllu.xz"
    if folder is None or not (folder / file).is_file():
        where = "no data folder was given" if folder is None else f"no {file} in {folder}"
        raise UsageError(f"{set_name} needs its files, and {where}: pass --data DIR, or use --sets {instead}")
    # LASLA has duplicate word numbers.
    sentences = read_sentences(folder / file, "upos+feats", check_ids=False)
    pairs = (zip(sentence.words, sentence.tags or [], strict=True) for sentence in sentences)
    return [[(word, tag.replace(" ", "|")) for word, tag in sentence] for sentence in pairs]


def generated(num_tags: int, sizes: dict[str, int], seed: int) -> dict[str, list[Words]]:
    """Generates sentences of 20 words from a Markov chain of tags, each with 12 successors and 3 words.

    A word belongs to about 3 tags, so its tag depends on the neighbours. `sizes` is the number of sentences per part.
    """
    generator = torch.Generator().manual_seed(20240 + seed)
    successors = torch.randint(num_tags, (num_tags, 12), generator=generator)
    words = torch.randint(num_tags, (num_tags, 3), generator=generator)
    weights = torch.rand(12, generator=generator).exp()
    parts = {}
    for part, count in sizes.items():
        tag = torch.randint(num_tags, (count,), generator=generator)
        tags, forms = [], []
        for _ in range(20):
            tag = successors[tag, torch.multinomial(weights, count, replacement=True, generator=generator)]
            tags.append(tag)
            forms.append(words[tag, torch.randint(3, (count,), generator=generator)])
        rows = zip(torch.stack(forms, 1).tolist(), torch.stack(tags, 1).tolist(), strict=True)
        parts[part] = [[(f"{form:04d}", str(tag)) for form, tag in zip(*row, strict=True)] for row in rows]
    return parts


def encode(parts: dict[str, list[Words]], buckets: int) -> Corpus:
    """Converts words and tags to integers."""
    forms: dict[str, int] = {"": 0}
    tags: dict[str, int] = {}
    encoded: dict[str, list[Sentence]] = {}
    for part, sentences in parts.items():
        encoded[part] = []
        for sentence in sentences:
            words = [forms.setdefault(word, len(forms)) for word, _ in sentence]
            tag_ids = [tags.setdefault(tag, len(tags)) if part == "train" else tags.get(tag, -1) for _, tag in sentence]
            encoded[part].append((torch.tensor(words), torch.tensor(tag_ids)))
    return Corpus(torch.tensor([hashed(word, buckets) for word in forms]), len(tags), encoded)


def hashed(word: str, buckets: int) -> list[int]:
    """Hashes the features of a word to buckets: word, lower case, suffixes, prefixes, shape."""
    low = word.lower()
    shape = "".join("X" if sign.isupper() else "x" if sign.islower() else "0" if sign.isdigit() else sign for sign in word)
    features = [word, low, *(low[-size:] for size in (1, 2, 3, 4)), *(low[:size] for size in (1, 2)), shape[:6]]
    # Python's `hash` of strings differs between runs.
    return [zlib.crc32(f"{kind} {text}".encode()) % buckets for kind, text in enumerate(features)]


def padded(sentences: Sequence[Sentence]) -> tuple[Tensor, Tensor, Tensor]:
    """Pads sentences; returns forms, tags (padded with −100) and mask, each (B, L)."""
    forms, tags = zip(*sentences, strict=True)
    tags = nn.utils.rnn.pad_sequence(tags, batch_first=True, padding_value=-100)
    return nn.utils.rnn.pad_sequence(forms, batch_first=True), tags, tags != -100


# ---- the tagger ----------------------------------------------------------------------------------------------------------


class Tagger(nn.Module):
    """Window tagger: emissions (B, L, |Y|) from word forms (B, L), and a LinearCoreChain.

    Args:
        corpus: defines word forms and tags.
        recipe: sizes of the network.
        sparse: use sparse gradients for the embedding.
        form: form of the chain's loss, as a sum over candidates.
    """

    def __init__(self, corpus: Corpus, recipe: Recipe, *, sparse: bool = False, form: str = "logodds") -> None:
        super().__init__()
        self.register_buffer("features", corpus.features)
        self.embedding = nn.EmbeddingBag(recipe.buckets, recipe.width, mode="sum", sparse=sparse)
        nn.init.normal_(self.embedding.weight, 0.0, 0.1)
        self.hidden = nn.Linear(5 * recipe.width, recipe.hidden)
        self.out = nn.Linear(recipe.hidden, corpus.num_tags)
        self.chain = lc.LinearCoreChain(corpus.num_tags, batch_first=True, form=form, normalize=False, rank=recipe.rank)

    def forward(self, forms: Tensor, mask: Tensor) -> Tensor:
        return self.out(self.states(forms, mask))

    def states(self, forms: Tensor, mask: Tensor) -> Tensor:
        """Computes the inputs (B, L, hidden) of the last layer."""
        words = self.embedding(self.features[forms.flatten()]).view(*forms.shape, -1) * mask.unsqueeze(-1)
        around = F.pad(words, (0, 0, 2, 2))
        window = torch.cat([around[:, shift : shift + forms.shape[1]] for shift in range(5)], -1)
        return F.relu(self.hidden(window))


def trained(corpus: Corpus, recipe: Recipe, device: str, seed: int) -> Tagger:
    """Trains a tagger for `recipe.steps` batches of sentences of similar length, with linear decay of the learning rate."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        tagger = Tagger(corpus, recipe).to(device)
    optimizer = torch.optim.Adam(tagger.parameters(), recipe.rate, fused=True)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, total_iters=recipe.steps)
    batches = training_batches(corpus, recipe, torch.Generator().manual_seed(seed))
    for _ in track(range(recipe.steps), "training"):
        forms, tags, mask = (tensor.to(device) for tensor in padded(next(batches)))
        loss = -tagger.chain(tagger(forms, mask), tags, mask, reduction="token_mean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return tagger.cpu().eval()


def training_batches(corpus: Corpus, recipe: Recipe, generator: torch.Generator) -> Iterator[list[Sentence]]:
    """Yields batches of about `recipe.tokens` tokens without end; sentences are truncated to 100 words."""
    sentences = [(forms[:100], tags[:100]) for forms, tags in corpus.parts["train"]]
    while True:
        random_keys = torch.rand(len(sentences), generator=generator).tolist()
        order = sorted(range(len(sentences)), key=lambda index: (len(sentences[index][0]), random_keys[index]))
        batches, batch = [], []
        for index in order:
            if batch and (len(batch) + 1) * len(sentences[index][0]) > recipe.tokens:
                batches.append(batch)
                batch = []
            batch.append(sentences[index])
        batches.append(batch)
        for number in torch.randperm(len(batches), generator=generator).tolist():
            yield batches[number]


def multiplied_out(head: lc.LinearCoreChain) -> lc.LinearCoreChain:
    """Returns the same chain with a dense transition matrix."""
    with torch.random.fork_rng(), torch.no_grad():
        dense, chain = lc.LinearCoreChain(head.num_tags, batch_first=True), head.chain()
        for name in ("start_transitions", "transitions", "end_transitions"):
            getattr(dense, name).copy_(getattr(chain, name.removesuffix("_transitions")))
    return dense
