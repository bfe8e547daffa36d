"""Dense losses of rows that fit into the registers of a program: several short rows, or one long one."""

import triton
import triton.language as tl

from linearcore.kernels.fused._surrogate import surrogate

#: The lowest float, for −inf where −inf − (−inf) would be NaN.
LOWEST: tl.constexpr = tl.constexpr(-3.4028234663852886e38)
#: `MIN_NORM` of losses/_robust.py.
MIN_NORM: tl.constexpr = tl.constexpr(1e-3)
#: Forms, as `FormCode`.
LOGODDS: tl.constexpr = tl.constexpr(0)
PAIRWISE: tl.constexpr = tl.constexpr(1)
#: Reductions.
NONE: tl.constexpr = tl.constexpr(0)
MEAN: tl.constexpr = tl.constexpr(2)


@triton.jit
def row_factor(target, count, num_rows, ignore_index, REDUCTION: tl.constexpr, HAS_COUNT: tl.constexpr):  # noqa: N803
    """Returns 1 / number of rows that are not ignored for the mean, otherwise 1."""
    if REDUCTION != MEAN:
        return 1.0
    if HAS_COUNT:
        return 1.0 / tl.load(count).to(tl.float32)
    counts = tl.zeros((1024,), tl.int32)
    for first in range(0, num_rows, 1024):
        row = first + tl.arange(0, 1024)
        counts += (tl.load(target + row, mask=row < num_rows, other=ignore_index) != ignore_index).to(tl.int32)
    return 1.0 / tl.sum(counts, 0).to(tl.float32)


@triton.jit
def _to_sphere(s, radius):
    """Returns radius · (s − mean) / max(‖s − mean‖, ε), and (rows, 1) each: number of classes, norm / radius, whether < ε.

    Masked classes (−inf) stay −inf. As `on_unit_sphere` of losses/_robust.py.
    """
    is_unmasked = s != -float("inf")
    top = tl.max(s, 1)[:, None]
    top = tl.where(top == -float("inf"), 0.0, top)
    shifted = tl.where(is_unmasked, s - top, 0.0)
    size = tl.maximum(-tl.min(shifted, 1)[:, None], MIN_NORM)
    scaled = shifted / size
    number = tl.maximum(tl.sum(is_unmasked.to(tl.float32), 1)[:, None], 1.0)
    centred = tl.where(is_unmasked, scaled - tl.sum(scaled, 1)[:, None] / number, 0.0)
    square = tl.sum(centred * centred, 1)[:, None]
    least = MIN_NORM / size
    is_short = square < least * least
    norm = tl.where(is_short, least, tl.sqrt(square))
    return tl.where(is_unmasked, centred * (radius / norm), -float("inf")), number, norm * size / radius, is_short


@triton.jit
def _from_sphere(gradient, normed, number, length, is_short, radius):
    """Returns the gradient at the scores, given that at the normalised scores: (g − mean g − ŝ (ŝ·g) / r²) / length."""
    is_unmasked = normed != -float("inf")
    normed = tl.where(is_unmasked, normed, 0.0)
    mean = tl.sum(gradient, 1)[:, None] / number
    along = tl.where(is_short, 0.0, tl.sum(gradient * normed, 1)[:, None] / (radius * radius))
    return tl.where(is_unmasked, (gradient - mean - normed * along) / length, 0.0)


@triton.jit
def _rows(
    s, is_label, label_score, label_margin, tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2,
    FORM: tl.constexpr, BASE: tl.constexpr, IS_MEAN: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Returns the losses (rows,) of scores (rows, classes) and their gradients."""
    others = tl.where(is_label, -float("inf"), s)
    is_masked = others == -float("inf")
    if FORM == LOGODDS:
        top = tl.maximum(tl.max(others, 1), LOWEST)
        terms = tl.exp(others - top[:, None])
        total = tl.sum(terms, 1)
        margin = (label_score - top) - tl.log(total) - label_margin
        loss, slope = surrogate(margin, 0.0, tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE)
        # Without competitors the margin is +inf, the slope 0, and the total 0.
        share = slope / tl.maximum(total, 1.1754943508222875e-38)
        gradient = tl.where(is_label, -slope[:, None], terms * share[:, None])
    else:
        is_unmasked = s != -float("inf")
        number = tl.sum(is_unmasked.to(tl.float32), 1)
        has_label = tl.where(label_score == -float("inf"), 0.0, 1.0)
        if FORM == PAIRWISE:
            reference = label_score - label_margin
        else:
            reference = tl.sum(tl.where(is_unmasked, s, 0.0), 1) / tl.maximum(number, 1.0) - label_margin
        reference = tl.where(reference < LOWEST, LOWEST, reference)[:, None]
        values, slopes = surrogate(
            reference, others, tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE
        )
        values = tl.where(is_masked, 0.0, values)
        slopes = tl.where(is_masked, 0.0, slopes)
        loss = tl.sum(values, 1)
        slope = tl.sum(slopes, 1)
        if FORM == PAIRWISE:
            gradient = tl.where(is_label, -slope[:, None], slopes)
        else:
            gradient = tl.where(is_unmasked, slopes - (slope / tl.maximum(number, 1.0))[:, None], 0.0)
        if IS_MEAN:
            average = 1.0 / tl.maximum(number - has_label, 1.0)
            loss *= average
            gradient *= average[:, None]
    return loss, gradient


@triton.jit(do_not_specialize=("num_rows", "ignore_index", "upstream_stride"))
def rows_kernel(
    scores, target, margin, upstream, count, statistics, losses, gradient,
    stride: tl.int64, upstream_stride: tl.int64, num_rows: tl.int64, num_classes, ignore_index: tl.int64,
    tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2, radius, scale,
    FORM: tl.constexpr, BASE: tl.constexpr, IS_MEAN: tl.constexpr, IS_SPHERE: tl.constexpr, HAS_MARGIN: tl.constexpr,  # noqa: N803
    REDUCTION: tl.constexpr, HAS_COUNT: tl.constexpr, HAS_UPSTREAM: tl.constexpr, HAS_LOSS: tl.constexpr,  # noqa: N803
    HAS_GRADIENT: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Losses, or the share of each program in their sum or mean, and upstream · gradient. No `statistics` are used."""
    program = tl.program_id(0)
    factor_of_rows = row_factor(target, count, num_rows, ignore_index, REDUCTION, HAS_COUNT)
    classes = tl.arange(0, BLOCK)
    is_class = classes < num_classes
    sums = tl.zeros((ROWS,), tl.float32)
    for first in range(program * ROWS, num_rows, tl.num_programs(0) * ROWS):
        row = first + tl.arange(0, ROWS).to(tl.int64)
        is_row = row < num_rows
        label = tl.load(target + row, mask=is_row, other=ignore_index)
        is_counted = is_row & (label != ignore_index)
        is_valid = is_counted & (label >= 0) & (label < num_classes)
        mask = is_row[:, None] & is_class[None, :]
        raw = tl.load(scores + row[:, None] * stride + classes[None, :], mask=mask, other=-float("inf")).to(tl.float32)
        label_score = tl.load(scores + row * stride + label, mask=is_valid, other=float("nan")).to(tl.float32)
        label_margin = tl.zeros((ROWS,), tl.float32)
        if HAS_MARGIN:
            label_margin = tl.load(margin + label, mask=is_valid, other=0.0)
        is_label = classes[None, :] == label[:, None]
        s = raw
        own_score = label_score
        if IS_SPHERE:
            s, number, length, is_short = _to_sphere(raw, radius)
            own_score = tl.where(is_valid, tl.sum(tl.where(is_label, s, 0.0), 1), float("nan"))
        loss, slopes = _rows(
            s, is_label, own_score, label_margin, tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2,
            FORM, BASE, IS_MEAN,
        )  # fmt: skip
        is_label_masked = label_score == -float("inf")
        # A score of +inf or NaN, or no score.
        is_invalid = is_counted & ((label_score == float("inf")) | (label_score != label_score))
        if HAS_LOSS:
            loss = tl.where(is_label_masked, float("inf"), loss * scale)
            loss = tl.where(is_invalid, float("nan"), loss)
            loss = tl.where(is_counted, loss, 0.0)
            if REDUCTION == NONE:
                tl.store(losses + row, loss.to(losses.dtype.element_ty), mask=is_row)
            else:
                sums += loss
        if HAS_GRADIENT:
            if IS_SPHERE:
                slopes = _from_sphere(slopes, s, number, length, is_short, radius)
            weight = tl.zeros((ROWS,), tl.float32) + scale * factor_of_rows
            if HAS_UPSTREAM:
                weight *= tl.load(upstream + row * upstream_stride, mask=is_row, other=0.0).to(tl.float32)
            weight = tl.where(is_invalid, float("nan"), weight)
            is_zero = (weight == 0.0) | is_label_masked | (label == ignore_index)
            slopes = tl.where(is_zero[:, None], 0.0, slopes * weight[:, None])
            tl.store(
                gradient + row[:, None] * num_classes + classes[None, :], slopes.to(gradient.dtype.element_ty), mask=mask
            )
    if HAS_LOSS and REDUCTION != NONE:
        tl.store(losses + program, (tl.sum(sums, 0) * factor_of_rows).to(losses.dtype.element_ty))
