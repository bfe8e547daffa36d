"""Small generated tagged sentences for tests, learnable in seconds."""

import random
from collections.abc import Sequence
from pathlib import Path

Tagged = tuple[list[str], list[str]]

_STEMS = ("lam", "dor", "tik", "sel", "bran", "mor", "fil", "gat")
#: Endings and their tags. The tag of "-a" depends on the previous word.
_ENDINGS = {"o": "NOUN Case=Nom", "um": "NOUN Case=Acc", "it": "VERB _", "a": None}


def sentences(count: int, seed: int = 0) -> list[Tagged]:
    """Generates sentences of two to nine words. A word with ending -a is a verb after a noun, and a noun otherwise."""
    generator = random.Random(seed)
    generated = []
    for _ in range(count):
        words: list[str] = []
        tags: list[str] = []
        for _ in range(generator.randint(2, 9)):
            ending = generator.choice(list(_ENDINGS))
            words.append(generator.choice(_STEMS) + generator.choice(_STEMS) + ending)
            after_noun = bool(tags) and tags[-1].startswith("NOUN")
            tags.append(_ENDINGS[ending] or ("VERB _" if after_noun else "NOUN Case=Nom"))
        generated.append((words, tags))
    return generated


def conllu(tagged: Sequence[Tagged]) -> str:
    """Formats sentences as CoNLL-U, with a comment for each sentence."""
    blocks = []
    for number, (words, tags) in enumerate(tagged, 1):
        lines = [f"# sent_id = {number}"]
        for place, (word, tag) in enumerate(zip(words, tags, strict=True), 1):
            upos, feats = tag.split(" ")
            lines.append("\t".join([str(place), word, f"lemma-{word}", upos, "_", feats, "0", "root", "_", f"Note={place}"]))
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks) + "\n"


def write_conllu(path: Path, count: int, seed: int = 0) -> Path:
    """Writes generated sentences to a file."""
    path.write_text(conllu(sentences(count, seed)), encoding="utf-8")
    return path
