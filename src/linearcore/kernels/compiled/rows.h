/* Dense losses of rows of n scores s, in two parts.

   Without STORED: the loss of one row with a label y. Included twice, with REAL = float and REAL = double. s has m = PADDED(n)
   numbers; what is in the padding does not matter.
   With STORED in {float, bfloat16, double}: the loop over the rows of a batch, computed in REAL. Included once for each. */

#ifndef STORED

/* Returns Σ_{v≠y} φ(reference − s_v); replaces s_v by −φ'(…), s_y and the padding by 0. Both are 0 for the score −∞, so most
   bases need no comparison of v in the loop; the quartic one does. */
INLINE REAL NAME(compare_base)(const int base, const NAME(phi) * phi, REAL reference, REAL *s, int32_t n, int32_t y, REAL *slopes) {
    const int32_t m = PADDED(n);
    s[y] = -INFINITY;
    for (int32_t v = n; v < m; v++)
        s[v] = -INFINITY;
    double total = 0, total_slope = 0; /* of sums over blocks, so that rounding errors do not grow with n */
    for (int32_t start = 0; start < m; start += SUM_BLOCK) {
        const int32_t stop = m - start < SUM_BLOCK ? m : start + SUM_BLOCK;
        REAL sum = 0, slope_sum = 0;
#pragma omp simd reduction(+ : sum, slope_sum)
        for (int32_t v = start; v < stop; v++) {
            const NAME(pair) term = NAME(evaluate)(base, phi, reference, s[v]);
            const int is_competitor = base != 4 || ((v != y) & (v < n));
            const REAL slope = is_competitor ? term.slope : 0;
            sum += is_competitor ? term.value : 0;
            slope_sum += slope;
            s[v] = slope;
        }
        total += sum;
        total_slope += slope_sum;
    }
    *slopes = (REAL)total_slope;
    return (REAL)total;
}

INLINE REAL NAME(compare)(int64_t base, const NAME(phi) * phi, REAL reference, REAL *s, int32_t n, int32_t y, REAL *slopes) {
    switch (base) { /* A constant base in each case, so that each has a loop of its own. */
    case 0:
        return NAME(compare_base)(0, phi, reference, s, n, y, slopes);
    case 1:
        return NAME(compare_base)(1, phi, reference, s, n, y, slopes);
    case 2:
        return NAME(compare_base)(2, phi, reference, s, n, y, slopes);
    case 3:
        return NAME(compare_base)(3, phi, reference, s, n, y, slopes);
    default:
        return NAME(compare_base)(4, phi, reference, s, n, y, slopes);
    }
}

/* The loss of a row. Its gradient is s_v · factor + shared for v ≠ y. */
typedef struct {
    REAL loss, factor, shared, label_gradient;
} NAME(outcome);

/* Σ_{v≠y} φ(s_y − s_v), or against the mean score. */
INLINE NAME(outcome) NAME(competitors)(const arguments *a, const NAME(phi) * phi, REAL *s, int32_t n, int32_t y, REAL scale) {
    const int is_centered = a->form == CENTERED;
    REAL reference = s[y], slopes;
    if (is_centered) {
        REAL sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int32_t v = 0; v < n; v++)
            sum += s[v];
        reference = sum / (REAL)n;
    }
    const REAL total = NAME(compare)(a->phi.base, phi, reference, s, n, y, &slopes);
    const REAL average = a->is_mean_over_competitors ? 1 / (REAL)(n - 1) : 1;
    const REAL factor = scale * average, shared = is_centered ? -factor * slopes / (REAL)n : 0;
    /* A sum of huge scores overflows; φ(∞) may be 0, so the loss would look right. */
    const REAL loss = IS_FINITE(reference) ? total * average : (REAL)NAN;
    const NAME(outcome) result = {loss, factor, shared, is_centered ? shared : -factor * slopes};
    return result;
}

/* φ(s_y − logsumexp_{v≠y} s_v). */
INLINE NAME(outcome) NAME(log_odds)(const arguments *a, const NAME(phi) * phi, REAL *s, int32_t n, int32_t y, REAL scale) {
    const int32_t m = PADDED(n);
    const REAL label = s[y];
    s[y] = -INFINITY;
    for (int32_t v = n; v < m; v++)
        s[v] = -INFINITY;
    REAL top = -INFINITY;
#pragma omp simd reduction(max : top)
    for (int32_t v = 0; v < m; v++)
        top = s[v] > top ? s[v] : top;
    double total = 0;
    for (int32_t start = 0; start < m; start += SUM_BLOCK) {
        const int32_t stop = m - start < SUM_BLOCK ? m : start + SUM_BLOCK;
        REAL part = 0;
#pragma omp simd reduction(+ : part)
        for (int32_t v = start; v < stop; v++) {
            const REAL x = EXP_NEGATIVE(s[v] - top);
            s[v] = x;
            part += x;
        }
        total += part;
    }
    const REAL sum = (REAL)total;
    const NAME(pair) term = NAME(evaluate)((int)a->phi.base, phi, (label - top) - LOG(sum), 0);
    const NAME(outcome) result = {term.value, scale * term.slope / sum, 0, -scale * term.slope};
    return result;
}

/* Replaces s by r (s − mean) / max(‖s − mean‖, ε). Returns max(‖s − mean‖, ε) / r, negative if the norm is below ε. */
INLINE REAL NAME(to_sphere)(const arguments *a, REAL *s, int32_t n) {
    REAL top = s[0], low = s[0], sum = 0, square = 0;
#pragma omp simd reduction(max : top) reduction(min : low)
    for (int32_t v = 0; v < n; v++) {
        top = s[v] > top ? s[v] : top;
        low = s[v] < low ? s[v] : low;
    }
    /* Shifted and scaled first: squares would overflow, and a large mean would cancel. */
    const REAL range = top - low, size = range > (REAL)MIN_NORM ? range : (REAL)MIN_NORM, inverse = 1 / size;
#pragma omp simd reduction(+ : sum)
    for (int32_t v = 0; v < n; v++) {
        s[v] = (s[v] - top) * inverse;
        sum += s[v];
    }
    const REAL mean = sum / (REAL)n;
#pragma omp simd reduction(+ : square)
    for (int32_t v = 0; v < n; v++) {
        s[v] -= mean;
        square += s[v] * s[v];
    }
    const REAL least = (REAL)MIN_NORM * inverse;
    const int is_short = square <= least * least;
    const REAL norm = is_short ? least : SQRT(square);
    const REAL factor = (REAL)a->radius / norm, length = norm * size / (REAL)a->radius;
#pragma omp simd
    for (int32_t v = 0; v < n; v++)
        s[v] *= factor;
    return is_short ? -length : length;
}

/* The gradient at the scores, given that at the normalised scores, g: (g − mean g − ŝ (ŝ·g) / r²) / length. */
INLINE NAME(outcome) NAME(from_sphere)(const arguments *a, REAL *s, const REAL *normed, int32_t n, int32_t y, REAL length, NAME(outcome) row) {
    REAL sum = 0, product = 0;
    s[y] = (row.label_gradient - row.shared) / row.factor;
#pragma omp simd reduction(+ : sum, product)
    for (int32_t v = 0; v < n; v++) {
        sum += s[v];
        product += s[v] * normed[v];
    }
    const REAL mean = sum / (REAL)n, along = length < 0 ? 0 : product / (REAL)(a->radius * a->radius);
#pragma omp simd
    for (int32_t v = 0; v < n; v++)
        s[v] = s[v] - mean - normed[v] * along;
    const REAL factor = row.factor / (length < 0 ? -length : length);
    const NAME(outcome) result = {row.loss, factor, 0, s[y] * factor};
    return result;
}

/* `pairwise` of normalised scores ŝ if all margins are in the linear core: a linear function of ŝ_y, because Σ ŝ = 0. */
INLINE NAME(outcome) NAME(symmetric)(const arguments *a, const NAME(phi) * phi, const REAL *s, int32_t n, int32_t y, REAL scale, REAL length) {
    const NAME(pair) end = NAME(evaluate)((int)a->phi.base, phi, phi->tau, 0);
    const REAL average = a->is_mean_over_competitors ? 1 / (REAL)(n - 1) : 1;
    const REAL at_zero = (end.value + end.slope * phi->tau) * (REAL)(n - 1), slope = end.slope * (REAL)n;
    const REAL along = length < 0 ? 0 : slope * s[y] / (REAL)(a->radius * a->radius);
    const REAL factor = scale * average / (length < 0 ? -length : length);
    const NAME(outcome) result = {(at_zero - slope * s[y]) * average, along * factor, end.slope * factor,
                                  (end.slope - slope + s[y] * along) * factor};
    return result;
}

#else

/* The weights of row i: that of its label, which is in range, and its own. */
INLINE double ROWS(label_weight)(const arguments *a, int64_t i) {
    return a->target == NULL || a->class_weights == NULL ? 1 : ((const REAL *)a->class_weights)[a->target[i]];
}

INLINE double ROWS(row_weight)(const arguments *a, int64_t i) {
    return a->row_weights == NULL ? 1 : ((const REAL *)a->row_weights)[i];
}

/* Writes the weight of each class as a label of row i, `Labels.target_weights`. */
INLINE void ROWS(target_weights)(const arguments *a, int64_t i, REAL *w, int32_t n) {
    const REAL *given = a->probabilities == NULL ? NULL : (const REAL *)a->probabilities + i * n;
    const REAL *classes = a->class_weights, rest = (REAL)(1 - a->smoothing), even = (REAL)(a->smoothing / n);
#pragma omp simd
    for (int32_t v = 0; v < n; v++)
        w[v] = given == NULL ? even : given[v] * rest + even;
    if (given == NULL)
        w[a->target[i]] += rest;
    for (int32_t v = 0; v < n && classes != NULL; v++)
        w[v] *= classes[v];
}

/* Rows [first, last): losses or their sum, and the gradient. Returns 0 if a score or a loss is infinite or NaN,
   or memory is missing. */
INLINE int ROWS(rows)(const int is_soft, const arguments *a, double row_scale, int64_t first, int64_t last, double *sum) {
    const int32_t n = (int32_t)a->num_classes, m = PADDED(n);
    const NAME(phi) phi = NAME(make_phi)(&a->phi);
    /* Margins on a sphere are at most √2 · radius. */
    const double largest = 1.41422 * a->radius;
    const int is_on_sphere = a->radius > 0;
    const int is_symmetric =
        is_on_sphere && !is_soft && largest <= a->phi.tau && largest + a->phi.tau <= a->phi.width / a->phi.sharpness;
    const REAL scale = (REAL)(a->scale * row_scale);
    /* The scores, a copy on the sphere, and for soft labels their weights and two more parts. */
    const size_t size = (is_soft ? 5 : 2) * (size_t)m;
    _Alignas(64) REAL small[2048], *s = small;
    int32_t not_finite = 0;
    if (size > 2048 && (s = malloc(size * sizeof(REAL))) == NULL)
        return 0;
    REAL *normed = s + m, *w = normed + m;
    memset(s, 0, size * sizeof(REAL));
    double total = 0;
    for (int64_t i = first; i < last; i++) {
        const STORED *scores = (const STORED *)a->scores + i * n;
        STORED *gradient = a->gradient == NULL ? NULL : (STORED *)a->gradient + i * n;
        const int64_t y = a->target == NULL ? 0 : a->target[i];
        REAL loss = 0, weight = 1;
        if (a->target != NULL && y == a->ignore_index) {
            if (gradient != NULL)
                memset(gradient, 0, (size_t)n * sizeof(STORED));
        } else {
#pragma omp simd reduction(| : not_finite)
            for (int32_t v = 0; v < n; v++) {
                s[v] = LOAD(scores[v]);
                not_finite |= !IS_FINITE(s[v]);
            }
            if (is_soft && not_finite)
                break;
            const REAL length = is_on_sphere ? NAME(to_sphere)(a, s, n) : 1;
            if (is_on_sphere && !is_symmetric && gradient != NULL)
                memcpy(normed, s, (size_t)n * sizeof(REAL));
            weight = (REAL)((is_soft ? 1 : ROWS(label_weight)(a, i)) * ROWS(row_weight)(a, i));
            NAME(outcome) row;
            if (is_soft) {
                ROWS(target_weights)(a, i, w, n);
                row = NAME(soft_row)(a, &phi, s, w, n, (int32_t)y, scale, w + m);
            } else
                row = is_symmetric         ? NAME(symmetric)(a, &phi, s, n, (int32_t)y, scale, length)
                      : a->form == LOGODDS ? NAME(log_odds)(a, &phi, s, n, (int32_t)y, scale)
                                           : NAME(competitors)(a, &phi, s, n, (int32_t)y, scale);
            loss = (REAL)a->scale * row.loss;
            if (gradient != NULL) {
                if (is_on_sphere && !is_symmetric)
                    row = NAME(from_sphere)(a, s, normed, n, (int32_t)y, length, row);
                const REAL factor = weight * row.factor, shared = weight * row.shared;
#pragma omp simd
                for (int32_t v = 0; v < n; v++)
                    gradient[v] = STORE(s[v] * factor + shared);
                gradient[y] = STORE(weight * row.label_gradient);
            }
        }
        not_finite |= !IS_FINITE(loss);
        total += (double)weight * loss;
        if (a->reduction == 0)
            ((REAL *)a->losses)[i] = weight * loss;
    }
    if (s != small)
        free(s);
    *sum = total;
    return not_finite == 0;
}

/* Two functions, because the code for soft labels takes registers from that for others. */
VECTORIZED static int ROWS(hard_rows)(const arguments *a, double row_scale, int64_t first, int64_t last, double *sum) {
    return ROWS(rows)(0, a, row_scale, first, last, sum);
}

VECTORIZED static int ROWS(soft_rows)(const arguments *a, double row_scale, int64_t first, int64_t last, double *sum) {
    return ROWS(rows)(1, a, row_scale, first, last, sum);
}

#endif
