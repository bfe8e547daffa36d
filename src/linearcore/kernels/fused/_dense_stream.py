"""Dense losses of rows that do not fit into registers: each Triton program makes one to three passes over a row.

`pairwise` needs one pass for loss and gradient, because competitors are independent once the score of the label is known.
`logodds` needs two and `centered` three. The second pass runs from the end of the row to its start, so that it begins with
data that is still in the L2 cache.

Names: `base` points to a row of scores and `to` to its gradient; BASE is the base function of the surrogate; `weight` is the
upstream gradient of a row, not a class weight; 1.4426950408889634 is log2(e). `first`, `second` and `third` are the
statistics of a row that the forward pass saves. With HAS_LOSS they are computed, otherwise they are inputs:

    form       first                 second                         third
    logodds    largest other score   Σ exp(s − first) over others
    pairwise   Σ −φ'                 number of competitors
    centered   mean score            Σ −φ'                          number of unmasked classes
"""

import triton
import triton.language as tl

from linearcore.kernels.fused._dense_rows import LOGODDS, LOWEST, NONE, PAIRWISE, row_factor
from linearcore.kernels.fused._surrogate import lane_sums, surrogate, surrogate_sums


@triton.jit
def _places(REPEATS: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr):  # noqa: N803
    """Returns the offsets (REPEATS, LANES, WIDTH) of a tile. All elements of a lane belong to one thread."""
    rows = tl.arange(0, REPEATS)[:, None, None] * LANES + tl.arange(0, LANES)[None, :, None]
    return rows * WIDTH + tl.arange(0, WIDTH)[None, None, :]


@triton.jit
def _load(base, tile, num_tiles, num_classes, places, TILE: tl.constexpr):  # noqa: N803
    """Loads the tile with index `tile` without a cast, with −inf past the end of the row.

    Loops load a tile before they process the previous one.
    """
    start = tile * TILE
    limit = tl.where((tile >= 0) & (tile < num_tiles), num_classes - start, 0)
    return tl.load(base + start + places, mask=places < limit, other=-float("inf"))


@triton.jit
def _store(to, tile, gradient, num_classes, places, TILE: tl.constexpr):  # noqa: N803
    start = tile * TILE
    tl.store(to + start + places, gradient.to(to.dtype.element_ty), mask=places < num_classes - start)


@triton.jit
def _store_zeros(to, num_classes, REPEATS: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr):  # noqa: N803
    size: tl.constexpr = REPEATS * LANES * WIDTH
    zeros = tl.zeros((REPEATS, LANES, WIDTH), tl.float32)
    for tile in range(0, tl.cdiv(num_classes, size)):
        _store(to, tile, zeros, num_classes, _places(REPEATS, LANES, WIDTH), size)


@triton.jit
def _without_label(s, tile, label, places, TILE: tl.constexpr):  # noqa: N803
    """Returns the scores with −inf at the label."""
    place = label - tile * TILE
    if (place >= 0) & (place < TILE):
        s = tl.where(places == place, -float("inf"), s)
    return s


@triton.jit
def _sum_of_competitors(
    base, to, reference, label, weight, num_classes, tau, width, sharpness, tail_scale, parameter_1, parameter_2,
    BASE: tl.constexpr, IS_SIMPLE: tl.constexpr, IS_BACKWARD: tl.constexpr, HAS_LOWEST: tl.constexpr,  # noqa: N803
    HAS_GRADIENT: tl.constexpr, REPEATS: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Returns Σ φ and Σ −φ' (without their constant factors) over the competitors, and min(0, lowest score).

    The last one is −inf if a score is masked; without HAS_LOWEST it is 0.

    Writes weight · −φ' if `HAS_GRADIENT`, 0 at the label.
    """
    size: tl.constexpr = REPEATS * LANES * WIDTH
    places = _places(REPEATS, LANES, WIDTH)
    values = tl.zeros((LANES,), tl.float32)
    slopes = tl.zeros((LANES,), tl.float32)
    lowest = tl.zeros((LANES,), tl.float32)
    num_tiles = tl.cdiv(num_classes, size)
    tile = num_tiles - 1 if IS_BACKWARD else 0
    raw = _load(base, tile, num_tiles, num_classes, places, size)
    for i in range(0, num_tiles):
        tile = num_tiles - 1 - i if IS_BACKWARD else i
        s = raw.to(tl.float32)
        raw = _load(base, tile - 1 if IS_BACKWARD else tile + 1, num_tiles, num_classes, places, size)
        if HAS_LOWEST:
            low = tl.min(tl.min(s, 2), 0)
            if (tile + 1) * size > num_classes:
                low = tl.min(tl.min(tl.where(places < num_classes - tile * size, s, 0.0), 2), 0)
            lowest = tl.minimum(lowest, low)
        s = _without_label(s, tile, label, places, size)
        value, slope_sum, slope = surrogate_sums(
            reference, s, tau, width, sharpness, tail_scale, parameter_1, parameter_2,
            BASE, IS_SIMPLE, base.dtype.element_ty == tl.float32, HAS_GRADIENT,
        )  # fmt: skip
        values += value
        slopes += slope_sum
        if HAS_GRADIENT:
            _store(to, tile, slope * weight, num_classes, places, size)
    return tl.sum(values, 0), tl.sum(slopes, 0), tl.min(lowest, 0)


@triton.jit
def _rescale(to, ratio, num_classes, REPEATS: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr):  # noqa: N803
    """Multiplies the row in place."""
    size: tl.constexpr = REPEATS * LANES * WIDTH
    places = _places(REPEATS, LANES, WIDTH)
    for tile in range(0, tl.cdiv(num_classes, size)):
        gradient = tl.load(to + tile * size + places, mask=places < num_classes - tile * size, other=0.0).to(tl.float32)
        _store(to, tile, gradient * ratio, num_classes, places, size)


@triton.jit
def _max_and_sum_exp(base, label, num_classes, REPEATS: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr):  # noqa: N803
    """Returns the largest score of the competitors and Σ exp(s − largest) over them."""
    size: tl.constexpr = REPEATS * LANES * WIDTH
    places = _places(REPEATS, LANES, WIDTH)
    largest = tl.full((LANES,), LOWEST, tl.float32)
    sums = tl.zeros((LANES,), tl.float32)
    num_tiles = tl.cdiv(num_classes, size)
    raw = _load(base, 0, num_tiles, num_classes, places, size)
    for tile in range(0, num_tiles):
        s = raw.to(tl.float32)
        raw = _load(base, tile + 1, num_tiles, num_classes, places, size)
        s = _without_label(s, tile, label, places, size)
        new_largest = tl.maximum(largest, tl.max(tl.max(s, 2), 0))
        terms = tl.exp2((s - new_largest[None, :, None]) * 1.4426950408889634)
        sums = sums * tl.exp2((largest - new_largest) * 1.4426950408889634) + lane_sums(terms)
        largest = new_largest
    top = tl.max(largest, 0)
    return top, tl.sum(sums * tl.exp2((largest - top) * 1.4426950408889634), 0)


@triton.jit
def _softmax(base, to, top, share, num_classes, REPEATS: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr):  # noqa: N803
    """Writes share · exp(s − top), from the end of the row to its start."""
    size: tl.constexpr = REPEATS * LANES * WIDTH
    places = _places(REPEATS, LANES, WIDTH)
    num_tiles = tl.cdiv(num_classes, size)
    raw = _load(base, num_tiles - 1, num_tiles, num_classes, places, size)
    for i in range(0, num_tiles):
        tile = num_tiles - 1 - i
        s = raw.to(tl.float32)
        raw = _load(base, tile - 1, num_tiles, num_classes, places, size)
        _store(to, tile, tl.exp2((s - top) * 1.4426950408889634) * share, num_classes, places, size)


@triton.jit
def _mean(base, num_classes, REPEATS: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr):  # noqa: N803
    """Returns the mean of the unmasked scores and their number."""
    size: tl.constexpr = REPEATS * LANES * WIDTH
    places = _places(REPEATS, LANES, WIDTH)
    sums = tl.zeros((LANES,), tl.float32)
    for tile in range(0, tl.cdiv(num_classes, size)):
        start = tile * size
        sums += lane_sums(tl.load(base + start + places, mask=places < num_classes - start, other=0.0).to(tl.float32))
    total = tl.sum(sums, 0)
    number = num_classes * 1.0
    if total == -float("inf"):
        total, number = _unmasked(base, num_classes, REPEATS, LANES, WIDTH)
    return total / tl.maximum(number, 1.0), number


@triton.jit
def _unmasked(base, num_classes, REPEATS: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr):  # noqa: N803
    """Returns the sum of the unmasked scores and their number."""
    size: tl.constexpr = REPEATS * LANES * WIDTH
    places = _places(REPEATS, LANES, WIDTH)
    sums = tl.zeros((LANES,), tl.float32)
    numbers = tl.zeros((LANES,), tl.float32)
    num_tiles = tl.cdiv(num_classes, size)
    for tile in range(0, num_tiles):
        s = _load(base, tile, num_tiles, num_classes, places, size).to(tl.float32)
        is_unmasked = s != -float("inf")
        sums += lane_sums(tl.where(is_unmasked, s, 0.0))
        numbers += lane_sums(is_unmasked.to(tl.float32))
    return tl.sum(sums, 0), tl.sum(numbers, 0)


@triton.jit
def _centered_gradient(
    base, to, reference, mean_slope, weight, num_classes, tau, width, sharpness, tail_scale,
    parameter_1, parameter_2, BASE: tl.constexpr, IS_SIMPLE: tl.constexpr, HAS_MASKED: tl.constexpr,  # noqa: N803
    REPEATS: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Writes weight · (−φ' − mean slope), and 0 for masked classes."""
    size: tl.constexpr = REPEATS * LANES * WIDTH
    places = _places(REPEATS, LANES, WIDTH)
    num_tiles = tl.cdiv(num_classes, size)
    raw = _load(base, 0, num_tiles, num_classes, places, size)
    for tile in range(0, num_tiles):
        s = raw.to(tl.float32)
        raw = _load(base, tile + 1, num_tiles, num_classes, places, size)
        _, _, slope = surrogate_sums(
            reference, s, tau, width, sharpness, tail_scale, parameter_1, parameter_2,
            BASE, IS_SIMPLE, base.dtype.element_ty == tl.float32, True,
        )  # fmt: skip
        gradient = slope * weight - mean_slope * weight
        if HAS_MASKED:
            gradient = tl.where(s == -float("inf"), 0.0, gradient)
        _store(to, tile, gradient, num_classes, places, size)


@triton.jit
def _log_odds_row(
    base, to, first, second, label, label_score, label_margin, weight, num_classes,
    tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2,
    BASE: tl.constexpr, HAS_LOSS: tl.constexpr, HAS_GRADIENT: tl.constexpr,  # noqa: N803
    REPEATS: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Returns the loss, the gradient of the label's score, and the largest other score and the sum of `_max_and_sum_exp`.

    Writes the gradient of the other scores. Without `HAS_LOSS` the last two are inputs.
    """
    if HAS_LOSS:
        first, second = _max_and_sum_exp(base, label, num_classes, REPEATS, LANES, WIDTH)
    margin = (label_score - first) - tl.log(second) - label_margin
    loss, slope = surrogate(margin, 0.0, tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE)
    slope *= weight
    if HAS_GRADIENT:
        # Without competitors the slope is 0 and the sum is 0.
        _softmax(base, to, first, slope / tl.maximum(second, 1.1754943508222875e-38), num_classes, REPEATS, LANES, WIDTH)
    return loss, -slope, first, second


@triton.jit
def _pairwise_row(
    base, to, first, second, label, label_score, label_margin, weight, num_classes,
    tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2,
    BASE: tl.constexpr, IS_SIMPLE: tl.constexpr, IS_MEAN: tl.constexpr,  # noqa: N803
    HAS_LOSS: tl.constexpr, HAS_GRADIENT: tl.constexpr,  # noqa: N803
    REPEATS: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """As `_log_odds_row`; the last two results are the sum of −φ' and the number of competitors."""
    reference = tl.maximum(label_score - label_margin, LOWEST, propagate_nan=tl.PropagateNan.ALL)
    weight *= factor * sharpness * tail_scale
    guess = tl.maximum(num_classes * 1.0 - 1.0, 1.0)
    if HAS_LOSS:
        second = guess
    total, slopes, lowest = _sum_of_competitors(
        base, to, reference, label, weight / second if IS_MEAN else weight, num_classes, tau, width, sharpness, tail_scale,
        parameter_1, parameter_2, BASE, IS_SIMPLE, False, IS_MEAN and HAS_LOSS, HAS_GRADIENT, REPEATS, LANES, WIDTH,
    )  # fmt: skip
    loss = total * factor
    if HAS_LOSS:
        first = slopes
        if IS_MEAN:
            if lowest == -float("inf"):
                _, number = _unmasked(base, num_classes, REPEATS, LANES, WIDTH)
                second = tl.maximum(number - 1.0, 1.0)
                if HAS_GRADIENT:
                    # The gradient was written with the divisor `guess`. Wait for all threads, then rescale it.
                    tl.debug_barrier()
                    _rescale(to, guess / second, num_classes, REPEATS, LANES, WIDTH)
            loss /= second
    return loss, -first * (weight / second if IS_MEAN else weight), first, second


@triton.jit
def _centered_row(
    base, to, first, second, third, label, label_margin, weight, num_classes, tau, width, sharpness, tail_scale, factor,
    parameter_1, parameter_2, BASE: tl.constexpr, IS_SIMPLE: tl.constexpr, IS_MEAN: tl.constexpr,  # noqa: N803
    HAS_LOSS: tl.constexpr, HAS_GRADIENT: tl.constexpr,  # noqa: N803
    REPEATS: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """As `_log_odds_row`; the last three results are the mean score, the sum of −φ', and the number of unmasked classes."""
    if HAS_LOSS:
        first, third = _mean(base, num_classes, REPEATS, LANES, WIDTH)
    reference = tl.maximum(first - label_margin, LOWEST, propagate_nan=tl.PropagateNan.ALL)
    weight *= factor * sharpness * tail_scale
    loss = 0.0
    if HAS_LOSS:
        total, second, _ = _sum_of_competitors(
            base, to, reference, label, weight, num_classes, tau, width, sharpness, tail_scale, parameter_1, parameter_2,
            BASE, IS_SIMPLE, True, False, False, REPEATS, LANES, WIDTH,
        )  # fmt: skip
        loss = total * factor
    if IS_MEAN:
        number = tl.maximum(third - 1.0, 1.0)
        loss /= number
        weight /= number
    mean_slope = second / third
    if HAS_GRADIENT:
        if third == num_classes * 1.0:
            _centered_gradient(
                base, to, reference, mean_slope, weight, num_classes, tau, width, sharpness, tail_scale,
                parameter_1, parameter_2, BASE, IS_SIMPLE, False, REPEATS, LANES, WIDTH,
            )  # fmt: skip
        else:
            _centered_gradient(
                base, to, reference, mean_slope, weight, num_classes, tau, width, sharpness, tail_scale,
                parameter_1, parameter_2, BASE, IS_SIMPLE, True, REPEATS, LANES, WIDTH,
            )  # fmt: skip
    return loss, -mean_slope * weight, first, second, third


@triton.jit
def _row(
    base, to, first, second, third, label, label_score, label_margin, weight, num_classes,
    tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2,
    FORM: tl.constexpr, BASE: tl.constexpr, IS_SIMPLE: tl.constexpr, IS_MEAN: tl.constexpr,  # noqa: N803
    HAS_LOSS: tl.constexpr, HAS_GRADIENT: tl.constexpr,  # noqa: N803
    REPEATS: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Returns the loss, the gradient of the label's score, and three statistics, which are inputs without `HAS_LOSS`."""
    if FORM == LOGODDS:
        loss, label_gradient, first, second = _log_odds_row(
            base, to, first, second, label, label_score, label_margin, weight, num_classes, tau, width, sharpness,
            tail_scale, factor, parameter_1, parameter_2, BASE, HAS_LOSS, HAS_GRADIENT, REPEATS, LANES, WIDTH,
        )  # fmt: skip
    elif FORM == PAIRWISE:
        loss, label_gradient, first, second = _pairwise_row(
            base, to, first, second, label, label_score, label_margin, weight, num_classes, tau, width, sharpness,
            tail_scale, factor, parameter_1, parameter_2, BASE, IS_SIMPLE, IS_MEAN, HAS_LOSS, HAS_GRADIENT,
            REPEATS, LANES, WIDTH,
        )  # fmt: skip
    else:
        loss, label_gradient, first, second, third = _centered_row(
            base, to, first, second, third, label, label_margin, weight, num_classes, tau, width, sharpness,
            tail_scale, factor, parameter_1, parameter_2, BASE, IS_SIMPLE, IS_MEAN, HAS_LOSS, HAS_GRADIENT,
            REPEATS, LANES, WIDTH,
        )  # fmt: skip
    return loss, label_gradient, first, second, third


@triton.jit
def _load_statistics(place, num_rows):
    return tl.load(place), tl.load(place + num_rows), tl.load(place + 2 * num_rows)


@triton.jit
def _store_statistics(place, num_rows, first, second, third):
    tl.store(place, first)
    tl.store(place + num_rows, second)
    tl.store(place + 2 * num_rows, third)


@triton.jit(do_not_specialize=("num_rows", "ignore_index", "upstream_stride"))
def stream_kernel(
    scores, target, margin, upstream, count, statistics, losses, gradient,
    stride: tl.int64, upstream_stride: tl.int64, num_rows: tl.int64, num_classes, ignore_index: tl.int64,
    tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2, radius, scale,
    FORM: tl.constexpr, BASE: tl.constexpr, IS_SIMPLE: tl.constexpr, IS_MEAN: tl.constexpr,  # noqa: N803
    HAS_MARGIN: tl.constexpr, REDUCTION: tl.constexpr, HAS_COUNT: tl.constexpr, HAS_UPSTREAM: tl.constexpr,  # noqa: N803
    HAS_LOSS: tl.constexpr, HAS_GRADIENT: tl.constexpr, HAS_STATISTICS: tl.constexpr,  # noqa: N803
    REPEATS: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Writes the losses, or each program's part of their sum or mean, and the gradient times `upstream`.

    With `HAS_STATISTICS` the forward pass writes three numbers per row, and a backward pass without `HAS_LOSS` reads them.
    `radius` is unused; the kernel has the same arguments as that of `_dense_rows`.
    """
    program = tl.program_id(0)
    factor_of_rows = row_factor(target, count, num_rows, ignore_index, REDUCTION, HAS_COUNT)
    program_loss = tl.zeros((), tl.float32)
    for row in range(program.to(tl.int64), num_rows, tl.num_programs(0)):
        label = tl.load(target + row)
        is_counted = label != ignore_index
        is_valid = is_counted & (label >= 0) & (label < num_classes)
        base = scores + row * stride
        to = base
        if HAS_GRADIENT:
            to = gradient + row * num_classes
        label_score = tl.load(base + label, mask=is_valid, other=float("nan")).to(tl.float32)
        label_margin = 0.0
        if HAS_MARGIN:
            label_margin = tl.load(margin + label, mask=is_valid, other=0.0)
        row_weight = scale * factor_of_rows
        if HAS_UPSTREAM:
            row_weight *= tl.load(upstream + row * upstream_stride).to(tl.float32)
        is_invalid = (label_score == float("inf")) | (label_score != label_score)
        row_weight = tl.where(is_invalid, float("nan"), row_weight)
        loss = tl.where(is_counted, float("inf"), 0.0)
        is_active = is_counted & (label_score != -float("inf"))
        if not HAS_LOSS:
            is_active = is_active & (row_weight != 0.0)
        if is_active:
            first, second, third = 0.0, 0.0, 0.0
            if not HAS_LOSS:
                first, second, third = _load_statistics(statistics + row, num_rows)
            loss, label_gradient, first, second, third = _row(
                base, to, first, second, third, label, label_score, label_margin, row_weight, num_classes,
                tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2,
                FORM, BASE, IS_SIMPLE, IS_MEAN, HAS_LOSS, HAS_GRADIENT, REPEATS, LANES, WIDTH,
            )  # fmt: skip
            if HAS_LOSS and HAS_STATISTICS:
                _store_statistics(statistics + row, num_rows, first, second, third)
            if HAS_GRADIENT:
                # Another thread wrote to the place of the label before.
                tl.debug_barrier()
                tl.store(to + label, label_gradient.to(to.dtype.element_ty), mask=is_valid)
            loss = tl.where(is_invalid, float("nan"), loss * scale)
        elif HAS_GRADIENT:
            _store_zeros(to, num_classes, REPEATS, LANES, WIDTH)
        if HAS_LOSS:
            if REDUCTION == NONE:
                tl.store(losses + row, loss.to(losses.dtype.element_ty))
            else:
                program_loss += loss
    if HAS_LOSS and REDUCTION != NONE:
        tl.store(losses + program, (program_loss * factor_of_rows).to(losses.dtype.element_ty))


@triton.jit
def scale_kernel(gradient, upstream, size: tl.int64, BLOCK: tl.constexpr):  # noqa: N803
    """Multiplies `gradient` in place by the number `upstream`; returns at once if that is 1."""
    number = tl.load(upstream).to(tl.float32)
    if number != 1.0:
        for first in range(tl.program_id(0).to(tl.int64) * BLOCK, size, tl.num_programs(0) * BLOCK):
            place = first + tl.arange(0, BLOCK)
            values = tl.load(gradient + place, mask=place < size, other=0.0).to(tl.float32)
            values = tl.where(number == 0.0, 0.0, values * number)
            tl.store(gradient + place, values.to(gradient.dtype.element_ty), mask=place < size)
