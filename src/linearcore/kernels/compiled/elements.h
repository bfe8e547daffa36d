/* Elements of a binary loss in REAL. Included once for each. */

/* Targets are in [0, 1], up to rounding: `_TOLERANCE` of losses/_binary.py. */
#define IS_TARGET(t) ((t) >= (REAL)-0.01 && (t) <= (REAL)1.01)

/* Returns the sum of the losses of a block of n elements, NaN if a score is infinite or NaN, or a target is out of range;
   writes their gradient. */
INLINE REAL NAME(block_base)(const int base, const NAME(phi) * phi, const REAL *h, const REAL *t, int32_t n, REAL scale, REAL *g) {
    REAL total = 0;
    int32_t not_finite = 0;
#pragma omp simd reduction(+ : total) reduction(| : not_finite)
    for (int32_t i = 0; i < n; i++) {
        const NAME(pair) positive = NAME(evaluate)(base, phi, h[i], 0), negative = NAME(evaluate)(base, phi, 0, h[i]);
        not_finite |= !IS_FINITE(h[i]) | !IS_TARGET(t[i]);
        total += t[i] * positive.value + (1 - t[i]) * negative.value;
        g[i] = scale * ((1 - t[i]) * negative.slope - t[i] * positive.slope);
    }
    return not_finite ? (REAL)NAN : total;
}

#define BLOCK 256

/* Elements [first, last) in blocks, whose targets are converted to REAL. Returns the sum of the losses. */
VECTORIZED static double NAME(elements)(const arguments *a, int64_t first, int64_t last) {
    const NAME(phi) phi = NAME(make_phi)(&a->phi);
    REAL targets[BLOCK], unused[BLOCK];
    double total = 0;
    for (int64_t start = first; start < last; start += BLOCK) {
        const int32_t n = (int32_t)(last - start < BLOCK ? last - start : BLOCK);
        const REAL *scores = (const REAL *)a->scores + start, *t = targets;
        REAL *gradient = a->gradient == NULL ? unused : (REAL *)a->gradient + start;
        if (a->target_kind == 0)
            t = (const REAL *)a->target + start;
        else if (a->target_kind == 1)
            for (int32_t i = 0; i < n; i++)
                targets[i] = ((const uint8_t *)a->target)[start + i];
        else
            for (int32_t i = 0; i < n; i++)
                targets[i] = (REAL)((const int64_t *)a->target)[start + i];
        switch (a->phi.base) { /* A constant base in each case, so that each has a loop of its own. */
        case 0:
            total += NAME(block_base)(0, &phi, scores, t, n, (REAL)a->scale, gradient);
            break;
        case 1:
            total += NAME(block_base)(1, &phi, scores, t, n, (REAL)a->scale, gradient);
            break;
        case 2:
            total += NAME(block_base)(2, &phi, scores, t, n, (REAL)a->scale, gradient);
            break;
        case 3:
            total += NAME(block_base)(3, &phi, scores, t, n, (REAL)a->scale, gradient);
            break;
        default:
            total += NAME(block_base)(4, &phi, scores, t, n, (REAL)a->scale, gradient);
        }
    }
    return total;
}
#undef BLOCK
#undef IS_TARGET
