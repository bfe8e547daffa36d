"""Tagged sentences for tests: made up, small, and learnable in seconds."""

import random
from collections.abc import Sequence
from pathlib import Path

Tagged = tuple[list[str], list[str]]

_STEMS = ("lam", "dor", "tik", "sel", "bran", "mor", "fil", "gat")
#: Endings and their tags. "-a" may be either, which only the word before can tell.
_ENDINGS = {"o": "NOUN Case=Nom", "um": "NOUN Case=Acc", "it": "VERB _", "a": None}


def sentences(count: int, seed: int = 0) -> list[Tagged]:
    """Sentences of two to nine words. A word in -a is a verb after a noun, and a noun elsewhere."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        words: list[str] = []
        tags: list[str] = []
        for _ in range(chance.randint(2, 9)):
            ending = chance.choice(list(_ENDINGS))
            words.append(chance.choice(_STEMS) + chance.choice(_STEMS) + ending)
            after_noun = bool(tags) and tags[-1].startswith("NOUN")
            tags.append(_ENDINGS[ending] or ("VERB _" if after_noun else "NOUN Case=Nom"))
        found.append((words, tags))
    return found


def conllu(tagged: Sequence[Tagged]) -> str:
    """The same as CoNLL-U, with a comment for each sentence."""
    blocks = []
    for number, (words, tags) in enumerate(tagged, 1):
        lines = [f"# sent_id = {number}"]
        for place, (word, tag) in enumerate(zip(words, tags, strict=True), 1):
            upos, feats = tag.split(" ")
            lines.append("\t".join([str(place), word, f"lemma-{word}", upos, "_", feats, "0", "root", "_", f"Note={place}"]))
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks) + "\n"


def write_conllu(path: Path, count: int, seed: int = 0) -> Path:
    """Writes such sentences to a file."""
    path.write_text(conllu(sentences(count, seed)), encoding="utf-8")
    return path
