"""Noun phrases in the trees of the Penn Treebank."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(r"[()]|[^\s()]+")
#: Phrases that may stand inside a chunk, if they contain no noun phrase.
_MODIFIERS = ("ADJP", "QP", "NX", "NAC", "UCP", "ADVP")
#: A chunk has a word with a tag that begins so.
_HEADS = ("NN", "PRP", "CD", "DT", "EX", "WP", "WDT", "JJ")
_NO_CHUNK_AT_ENDS = (",", ":", "``", "''", ".", "-LRB-", "-RRB-", "CC")


@dataclass
class Tree:
    """A bracket of a tree: its label without function, its word if it is a leaf, and its children."""

    label: str = ""
    word: str | None = None
    children: "list[Tree]" = field(default_factory=list)

    def leaves(self) -> "Iterator[Tree]":
        """Yields the leaves from left to right, without traces."""
        if self.word is not None:
            yield self
        for child in self.children:
            yield from child.leaves()


def parse_trees(text: str) -> Iterator[Tree]:
    """Yields the trees of a file, without traces and brackets that hold nothing else.

    Example:
        >>> tree = next(parse_trees("( (S (NP-SBJ (DT A) (NN dog)) (VP (VBZ sits) (NP (-NONE- *)))))"))
        >>> [leaf.word for leaf in tree.leaves()]
        ['A', 'dog', 'sits']
    """
    stack: list[Tree] = []
    for token in _TOKEN.findall(text):
        if token == "(":
            stack.append(Tree())
        elif token != ")":
            if stack[-1].label:
                stack[-1].word = token
            else:
                stack[-1].label = token if token.startswith("-") else re.split("[-=|]", token)[0]
        else:
            tree = stack.pop()
            is_empty = tree.label == "-NONE-" or (tree.word is None and not tree.children)
            if stack and not is_empty:
                stack[-1].children.append(tree)
            elif not is_empty:
                yield tree


def noun_phrases(tree: Tree) -> tuple[list[str], list[str]]:
    """Returns the words and their tags B-NP, I-NP and O: noun phrases up to the first clause or nested noun phrase.

    A chunk is a run of children of one NP that are words, or phrases of modifiers without a noun phrase inside.

    Example:
        >>> text = "( (S (NP (NP (DT A) (NN dog)) (PP (IN in) (NP (NNP Rome)))) (VP (VBZ sits))))"
        >>> noun_phrases(next(parse_trees(text)))
        (['A', 'dog', 'in', 'Rome', 'sits'], ['B-NP', 'I-NP', 'O', 'B-NP', 'O'])
    """
    chunk_of: dict[int, int] = {}
    _mark(tree, chunk_of)
    words, tags, before = [], [], None
    for leaf in tree.leaves():
        chunk = chunk_of.get(id(leaf))
        words.append(leaf.word or "")
        tags.append("O" if chunk is None else "I-NP" if chunk == before else "B-NP")
        before = chunk
    return words, tags


def _mark(tree: Tree, chunk_of: dict[int, int]) -> None:
    """Writes the number of the chunk of each leaf."""
    run: list[Tree] = []
    for child in tree.children:
        if tree.label == "NP" and (child.word is not None or (child.label in _MODIFIERS and not _has_noun_phrase(child))):
            run += child.leaves()
        else:
            _close(run, chunk_of)
            run = []
            _mark(child, chunk_of)
    _close(run, chunk_of)


def _close(run: list[Tree], chunk_of: dict[int, int]) -> None:
    while run and run[-1].label in _NO_CHUNK_AT_ENDS:
        run.pop()
    while run and run[0].label in _NO_CHUNK_AT_ENDS:
        run.pop(0)
    if any(leaf.label.startswith(_HEADS) for leaf in run):
        number = len(chunk_of)
        chunk_of.update((id(leaf), number) for leaf in run)


def _has_noun_phrase(tree: Tree) -> bool:
    return tree.label == "NP" or any(_has_noun_phrase(child) for child in tree.children)
