"""Counts of n-grams that two sequences share, for all pairs of a broadcast."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from linearcore.structures.costs._packing import PADDING

#: Codes of n-grams are renumbered when there could be more. It leaves room for the position and the group in 63 bits.
_MAX_CODES = 2**36


def gram_codes(prediction: Tensor, target: Tensor, order: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields for n = 1, …, `order` the codes (…, L − n + 1) of the n-grams of two packed tensors; `PADDING` after the last.

    Two n-grams have the same code if and only if they are equal. Each n-gram's code stands at its first tag.
    """
    codes = (prediction.long(), target.long())
    tags, num_tags = codes, _num_codes(*codes)
    num_codes = num_tags
    for n in range(1, order + 1):
        if n > 1:
            codes = tuple(_appended(grams, tag[..., n - 1 :], num_tags) for grams, tag in zip(codes, tags, strict=True))  # type: ignore[assignment]
            num_codes *= num_tags
        if num_codes > _MAX_CODES:
            codes = _renumbered(*codes)
            num_codes = _num_codes(*codes)
        yield codes


def _appended(grams: Tensor, tags: Tensor, num_tags: int) -> Tensor:
    """Returns the codes of the n-grams that add a tag to each of the (n−1)-grams, of which the last has no next tag."""
    return torch.where(tags == PADDING, PADDING, grams[..., : tags.shape[-1]] * num_tags + tags)


def _num_codes(*codes: Tensor) -> int:
    return max((int(part.max()) + 1 for part in codes if part.numel()), default=1)


def _renumbered(*codes: Tensor) -> tuple[Tensor, Tensor]:
    values, index = torch.cat([part.reshape(-1) for part in codes]).unique(return_inverse=True)
    if len(values) and values[0] == PADDING:
        index = index + PADDING
    first, second = index.split([part.numel() for part in codes])
    return first.view(codes[0].shape), second.view(codes[1].shape)


def clipped_matches(prediction: Tensor, target: Tensor) -> Tensor:
    """Returns Σ_g min(c'(g), c(g)) (…), float64; arguments as in `count_products`."""
    width = max(prediction.shape[-1], target.shape[-1])
    return count_products(_occurrence_codes(prediction, width), _occurrence_codes(target, width))


def _occurrence_codes(codes: Tensor, width: int) -> Tensor:
    """Returns codes (…, N) of the pairs of an n-gram and its number among the equal n-grams of its sequence, in any order.

    They are distinct in a sequence, and two sequences share min(c, c') of them for an n-gram with counts c and c'.
    """
    if not codes.numel():
        return codes
    grams = codes.sort(-1).values
    place = torch.arange(grams.shape[-1], device=grams.device)
    is_first = torch.ones_like(grams, dtype=torch.bool)
    is_first[..., 1:] = grams[..., 1:] != grams[..., :-1]
    number = place - torch.where(is_first, place, 0).cummax(-1).values
    return torch.where(grams == PADDING, PADDING, grams * width + number)


def count_products(prediction: Tensor, target: Tensor) -> Tensor:
    """Returns Σ_g c'(g) c(g) (…), float64, of the counts c' in codes (…, N) and c in codes (…, N'), which broadcast.

    The sums are matrix products over the codes of the targets, so a table of all pairs is cheap.

    Time O(N) look-ups for each sequence, and O(U) for each pair, with U distinct codes in the targets that belong together.
    """
    shape = torch.broadcast_shapes(prediction.shape[:-1], target.shape[:-1])
    rows, columns = (codes.reshape((1,) * (len(shape) + 1 - codes.dim()) + codes.shape) for codes in (prediction, target))
    dims = range(len(shape))
    shared = [d for d in dims if rows.shape[d] == columns.shape[d]]
    of_rows = [d for d in dims if d not in shared and columns.shape[d] == 1]
    of_columns = [d for d in dims if d not in shared and d not in of_rows]
    groups = math.prod(shape[d] for d in shared)
    rows = rows.permute(*shared, *of_rows, *of_columns, -1).reshape(
        groups, math.prod(shape[d] for d in of_rows), rows.shape[-1]
    )
    columns = columns.permute(*shared, *of_columns, *of_rows, -1).reshape(
        groups, math.prod(shape[d] for d in of_columns), columns.shape[-1]
    )
    products = torch.bmm(*_counts(rows, columns))
    order = [*shared, *of_rows, *of_columns]
    return products.reshape([shape[d] for d in order]).permute([order.index(d) for d in dims])


def _counts(rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Returns counts (G, R, U) and (G, U, C) of codes (G, R, N) and (G, C, N'), over the U codes in the columns."""
    if not rows.numel() or not columns.numel():
        return rows.new_zeros(*rows.shape[:2], 1).double(), columns.new_zeros(len(columns), 1, columns.shape[1]).double()
    group = torch.arange(len(rows), device=rows.device)
    num_codes = _num_codes(rows, columns)
    row_keys, keys = (
        torch.where(codes == PADDING, -1, codes + num_codes * group[:, None, None]) for codes in (rows, columns)
    )
    known, index = keys.unique(return_inverse=True)
    first = torch.searchsorted(known, num_codes * torch.arange(len(rows) + 1, device=rows.device))
    width = int((first[1:] - first[:-1]).max())
    # The last column collects padding and codes that no target has; it is dropped.
    place = torch.where(keys < 0, width, index - first[:-1, None, None])
    row_index = torch.searchsorted(known, row_keys.clamp(max=int(known[-1])).contiguous())
    is_known = (known[row_index] == row_keys) & (row_keys >= 0)
    row_place = torch.where(is_known, row_index - first[:-1, None, None], width)
    counts = [_histogram(places, width) for places in (row_place, place)]
    return counts[0], counts[1].transpose(1, 2)


def _histogram(places: Tensor, width: int) -> Tensor:
    counts = torch.zeros(*places.shape[:2], width + 1, dtype=torch.float64, device=places.device)
    return counts.scatter_add_(-1, places, torch.ones_like(places, dtype=torch.float64))[..., :width]
