"""The smallest deterministic automaton of a list of words."""

from collections.abc import Hashable, Iterable, Sequence

from linearcore._checks import complaint

#: Key under which a state of the tree marks the end of a word; labels are not negative.
_END = -1

Tree = dict[int, "Tree"]


def lexicon_arcs(words: Iterable[Sequence[Hashable]]) -> tuple[list[tuple[int, int, int]], list[int], dict[int, str]]:
    """Returns arcs (source, target, label), final states, and names of the labels. The start state is 0."""
    numbers: dict[Hashable, int] = {}
    root: Tree = {}
    for word in words:
        node = root
        for symbol in word:
            node = node.setdefault(numbers.setdefault(symbol, len(numbers)), {})
        node[_END] = {}
    if not root:
        raise ValueError(complaint("words", "hold at least one word", "none", "pass the words of the lexicon"))
    kinds, top = _merge_suffixes(root)
    # States are numbered after their targets, so the root has the highest number; it is to have number 0.
    kept = ((state, label, target) for state, kind in enumerate(kinds) for label, target in kind if label != _END)
    arcs = [(top - state, top - target, label) for state, label, target in kept]
    final = [top - state for state, kind in enumerate(kinds) if (_END, _END) in kind]
    return sorted(arcs), sorted(final), {number: str(symbol) for symbol, number in numbers.items()}


def _merge_suffixes(root: Tree) -> tuple[list[tuple[tuple[int, int], ...]], int]:
    """Merges states of a tree that are followed by the same suffixes.

    Returns the arcs (label, target) of each state, and the state of the root. Each node is visited after its children,
    without recursion, since words may be long.
    """
    known: dict[tuple[tuple[int, int], ...], int] = {}
    merged: dict[int, int] = {}
    stack = [root]
    while stack:
        node = stack[-1]
        waiting = [child for label, child in node.items() if label != _END and id(child) not in merged]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        kind = tuple(sorted((label, merged[id(child)] if label != _END else _END) for label, child in node.items()))
        merged[id(node)] = known.setdefault(kind, len(known))
    return list(known), merged[id(root)]
