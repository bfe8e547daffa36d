"""φ and −φ' of a `surrogates.KernelIdentity`, for kernels to call.

z = sharpness · (tau − u),  line = min(max(z, 0), width),  tail = z − line
φ(u) = factor · (line + tail_scale · Φ(tail)),   −φ'(u) = factor · sharpness · tail_scale · Φ'(tail)
"""

import triton
import triton.language as tl


@triton.jit
def log1p(x):
    """Returns log(1 + x) for x ≥ 0 with a small relative error; `tl.log(1 + x)` is 0 for tiny x."""
    total = 1.0 + x
    rounded = total - 1.0
    return tl.where(rounded == 0.0, x, tl.log(total) * (x / tl.where(rounded == 0.0, 1.0, rounded)))


@triton.jit
def base(z, parameter_1, parameter_2, BASE: tl.constexpr):  # noqa: N803
    """Returns Φ(z) and Φ'(z) of the base with this `kernel_index`."""
    if BASE == 0:  # logistic
        x = tl.exp(-tl.abs(z))
        inverse = 1.0 / (1.0 + x)
        return tl.maximum(z, 0.0) + log1p(x), tl.where(z > 0, inverse, x * inverse)
    elif BASE == 1:  # exponential, linear past a point
        x = tl.exp(tl.minimum(z, parameter_1))
        return tl.where(z > parameter_1, x * (1.0 + (z - parameter_1)), x), x
    elif BASE == 2:  # truncated quadratic
        x = tl.maximum(1.0 + z, 0.0)
        return 0.5 * x * x, x
    elif BASE == 3:  # gamma
        a = tl.minimum(tl.abs(z), 746.0)
        x = tl.exp(-a)
        left = (a * (a + 2.0) + 2.0) * x
        return tl.maximum(4.0 * z, 0.0) + (a * (a + 4.0) + 6.0) * x, tl.where(z > 0, 4.0 - left, left)
    else:  # quartic
        tl.static_assert(BASE == 4, "unknown base")
        cube = z * z * z
        return z * (parameter_1 + cube / 12.0) + parameter_2, parameter_1 + cube / 3.0


@triton.jit
def surrogate(
    reference, score, tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Returns φ(u) and −φ'(u) at u = reference − score.

    τ is added last, because rounding would lose it in a large reference. Both results are NaN if u is.
    """
    # Written with comparisons that keep NaN: tl.maximum and tl.minimum return the other number.
    z = ((score - reference) + tau) * sharpness
    positive = tl.where(z < 0.0, 0.0, z)
    line = tl.where(positive > width, width, positive)
    value, slope = base(z - line, parameter_1, parameter_2, BASE)
    is_number = z == z
    value = tl.where(is_number, factor * (line + tail_scale * value), z)
    return value, tl.where(is_number, factor * sharpness * tail_scale * slope, z)


@triton.jit
def log1p_of_product(x):
    """Returns log(1 + x) for x ≥ 0 as `log1p`, without a division."""
    total = 1.0 + x
    # What rounding has left out of 1 + x matters for small x only.
    return tl.log(total) + tl.where(x < 1.0, x - (total - 1.0), 0.0)


@triton.jit
def _compound(x, y):
    """Returns (1 + x)(1 + y) − 1 with a small relative error."""
    return x + y + x * y


@triton.jit
def _compound_sums(x, numerator, y, other_numerator):
    """Returns (1 + x)(1 + y) − 1, and the numerator of the sum of numerator / (1 + x) and other_numerator / (1 + y)."""
    return x + y + x * y, (numerator + numerator * y) + (other_numerator + other_numerator * x)


@triton.jit
def lane_sums(x):
    """Returns the sums (lanes,) of a tile (repeats, lanes, width)."""
    return tl.sum(tl.sum(x, 2), 0)


@triton.jit
def surrogate_sums(
    reference, scores, tau, width, sharpness, tail_scale, parameter_1, parameter_2,
    BASE: tl.constexpr, IS_SIMPLE: tl.constexpr, IS_FLOAT32: tl.constexpr, HAS_SLOPES: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Returns Σ φ / factor and Σ −φ' / c, with c = factor · sharpness · tail_scale, (lanes,) each, and −φ' / c.

    As `surrogate` but with fewer instructions, for kernels that are otherwise limited by them. Scores of −inf have value and
    slope 0.

    Args:
        scores: a tile (repeats, lanes, width).
        IS_SIMPLE: the surrogate has width ∞ and sharpness 1.
        IS_FLOAT32: otherwise slopes may have an error of a few units of float32.
        HAS_SLOPES: otherwise the third result is undefined.
    """
    z = (scores - reference) + tau
    if IS_SIMPLE:
        line = tl.maximum(z, 0.0, propagate_nan=tl.PropagateNan.ALL)
        tail = tl.minimum(z, 0.0, propagate_nan=tl.PropagateNan.ALL)
    else:
        z *= sharpness
        line = tl.maximum(z, 0.0, propagate_nan=tl.PropagateNan.ALL)
        line = tl.minimum(line, width, propagate_nan=tl.PropagateNan.ALL)
        tail = z - line
    if BASE == 0:
        # log(1 + x) of several x is one logarithm: that of the product of all 1 + x ≤ 2.
        x = tl.exp2((tail if IS_SIMPLE else -tl.abs(tail)) * 1.4426950408889634)
        if IS_SIMPLE and not HAS_SLOPES:
            product, numerator = tl.reduce(tl.reduce((x, x), 2, _compound_sums), 0, _compound_sums)
            return lane_sums(line) + tail_scale * log1p_of_product(product), numerator / (1.0 + product), x
        else:
            if IS_FLOAT32:
                slope = x / (1.0 + x)
            else:
                root = tl.rsqrt(1.0 + x)
                slope = (x * root) * root
            value = log1p_of_product(tl.reduce(tl.reduce(x, 2, _compound), 0, _compound))
            if not IS_SIMPLE:
                slope = tl.where(tail > 0, 1.0 - slope, slope)
                value += lane_sums(tl.maximum(tail, 0.0))
            return lane_sums(line) + tail_scale * value, lane_sums(slope), slope
    else:
        value, slope = base(tail, parameter_1, parameter_2, BASE)
        value = line + tail_scale * value
        if BASE == 4:  # It does not vanish.
            value = tl.where(scores == -float("inf"), 0.0, value)
            slope = tl.where(scores == -float("inf"), 0.0, slope)
        is_number = z == z
        slope = tl.where(is_number, slope, z)
        return lane_sums(tl.where(is_number, value, z)), lane_sums(slope), slope
