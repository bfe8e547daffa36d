/* φ of `linearcore.surrogates.KernelIdentity`, for REAL in {float, double}. Included once for each.

       z = sharpness · (tau − u),  line = min(max(z, 0), width),  tail = z − line
       φ(u) = factor · (line + tail_scale · Φ(tail)),   −φ'(u) = factor · sharpness · tail_scale · Φ'(tail) */

/* Results are returned by value: gcc does not vectorise loops with pointers to local variables. */
typedef struct {
    REAL value, slope;
} NAME(pair);

/* Φ(z) and Φ'(z) of each base, in the order of `Base.kernel_index`. */
INLINE NAME(pair) NAME(tail)(const int base, const REAL *parameter, REAL z) {
    NAME(pair) result;
    if (base == 0) { /* logistic */
        const REAL x = EXP_NEGATIVE(z > 0 ? -z : z);
        const REAL inverse = 1 / (1 + x);
        result.value = (z > 0 ? z : 0) + LOG1P(x);
        result.slope = z > 0 ? inverse : x * inverse;
    } else if (base == 1) { /* exponential, linear past a point */
        const REAL end = parameter[0];
        const REAL x = EXP(z < end ? z : end);
        result.value = x * (z > end ? 1 + (z - end) : 1);
        result.slope = x;
    } else if (base == 2) { /* truncated quadratic */
        const REAL x = z > -1 ? 1 + z : 0;
        result.value = (REAL)0.5 * x * x;
        result.slope = x;
    } else if (base == 3) { /* gamma */
        REAL a = z > 0 ? z : -z;
        a = a < 746 ? a : 746;
        const REAL x = EXP_NEGATIVE(-a), left = (a * (a + 2) + 2) * x;
        result.value = (z > 0 ? 4 * z : 0) + (a * (a + 4) + 6) * x;
        result.slope = z > 0 ? 4 - left : left;
    } else { /* quartic */
        const REAL cube = z * z * z;
        result.value = z * (parameter[0] + cube / 12) + parameter[1];
        result.slope = parameter[0] + cube / 3;
    }
    return result;
}

typedef struct {
    REAL tau, shift, width, sharpness, tail_scale, factor;
    REAL parameter[2];
} NAME(phi);

INLINE NAME(phi) NAME(make_phi)(const surrogate *s) {
    const NAME(phi) result = {(REAL)s->tau,        (REAL)(s->tau * s->sharpness), (REAL)s->width, (REAL)s->sharpness,
                              (REAL)s->tail_scale, (REAL)s->factor,
                              {(REAL)s->parameter[0], (REAL)s->parameter[1]}};
    return result;
}

/* φ and −φ' at u = reference − score. τ, as `shift`, is added last, because rounding would lose it in a large reference. */
INLINE NAME(pair) NAME(evaluate)(const int base, const NAME(phi) * phi, REAL reference, REAL score) {
    const REAL z = (score - reference) * phi->sharpness + phi->shift;
    const REAL positive = z > 0 ? z : 0;
    const REAL line = positive < phi->width ? positive : phi->width;
    NAME(pair) result = NAME(tail)(base, phi->parameter, z - line);
    result.value = phi->factor * (line + phi->tail_scale * result.value);
    result.slope = phi->factor * phi->sharpness * phi->tail_scale * result.slope;
    return result;
}
