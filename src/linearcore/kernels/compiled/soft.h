/* Losses for probability targets: a row has a weight for each class. Included twice, with REAL = float and REAL = double.

   A row has n scores s and weights w. The functions return its loss and write its gradient g; they may overwrite s.
   `buffer` has 3 · PADDED(n) numbers. `evaluate(base, phi, a, b)` returns φ(a − b) and the slope −φ'(a − b),
   the derivative with respect to the score b of the competitor. */

/* Returns NAME(function)(base, …) with a constant base, a->phi.base, so that each base has a loop of its own. `a` must be
   in scope. */
#define BY_BASE(function, ...)                                                                                              \
    switch (a->phi.base) {                                                                                                  \
    case 0:                                                                                                                 \
        return NAME(function)(0, __VA_ARGS__);                                                                              \
    case 1:                                                                                                                 \
        return NAME(function)(1, __VA_ARGS__);                                                                              \
    case 2:                                                                                                                 \
        return NAME(function)(2, __VA_ARGS__);                                                                              \
    case 3:                                                                                                                 \
        return NAME(function)(3, __VA_ARGS__);                                                                              \
    default:                                                                                                                \
        return NAME(function)(4, __VA_ARGS__);                                                                              \
    }

typedef struct {
    double loss, share;
} NAME(sums);

/* Σ w_v φ(m_v) over v ≠ top, with m_v = s_v − log Σ_{u≠v} exp(s_u) and s relative to the largest score.

   `top` is the index of the largest score, `second` the second-largest score, and ratio = exp(second − largest score).
   e_v = exp(s_v − second), from the scores before the largest is subtracted, with e_top = 0, and rest = Σ_v ratio · e_v.
   The sum of exp(s_u) over all u ≠ v is then all = 1 + others with others = rest − ratio · e_v. Replaces s_v by slope =
   −w_v φ'(m_v), and writes share[v] = slope / all; both are 0 for v = top. The result has the loss and the sum of
   share[v]. */
INLINE NAME(sums)
    NAME(log_odds_base)(const int base, const NAME(phi) * phi, REAL *s, const REAL *w, const REAL *e, REAL *share, int32_t n,
                        int32_t top, REAL ratio, REAL rest) {
    NAME(sums) total = {0, 0};
    for (int32_t start = 0; start < n; start += SUM_BLOCK) {
        const int32_t stop = n - start < SUM_BLOCK ? n : start + SUM_BLOCK;
        REAL loss = 0, sum = 0;
#pragma omp simd reduction(+ : loss, sum)
        for (int32_t v = start; v < stop; v++) {
            const REAL others = rest - ratio * e[v], all = 1 + (others > 0 ? others : 0);
            const NAME(pair) term = NAME(evaluate)(base, phi, s[v] - LOG_ABOVE_ONE(all), 0);
            const REAL weight = v == top ? 0 : w[v];
            const REAL slope = weight * term.slope, part = slope / all;
            loss += weight * term.value;
            sum += part;
            s[v] = slope;
            share[v] = part;
        }
        total.loss += loss;
        total.share += sum;
    }
    return total;
}

INLINE NAME(sums)
    NAME(log_odds_sums)(const arguments *a, const NAME(phi) * phi, REAL *s, const REAL *w, const REAL *e, REAL *share,
                        int32_t n, int32_t top, REAL ratio, REAL rest) {
    BY_BASE(log_odds_base, phi, s, w, e, share, n, top, ratio, rest)
}

/* Σ_y w_y φ(s_y − logsumexp_{v≠y} s_v). For the class with the largest score,
   the logsumexp over the others is computed directly: subtracting the score from the full sum would lose precision. */
INLINE REAL NAME(log_odds)(const arguments *a, const NAME(phi) * phi, REAL *s, const REAL *w, int32_t n, REAL *g,
                           REAL *buffer) {
    REAL *e = buffer, *share = buffer + PADDED(n);
    REAL first = -INFINITY, second = -INFINITY;
#pragma omp simd reduction(max : first)
    for (int32_t v = 0; v < n; v++)
        first = s[v] > first ? s[v] : first;
    int32_t top = 0;
    while (s[top] < first)
        top++;
    s[top] = -INFINITY;
#pragma omp simd reduction(max : second)
    for (int32_t v = 0; v < n; v++)
        second = s[v] > second ? s[v] : second;
    double total = 0;
    for (int32_t start = 0; start < n; start += SUM_BLOCK) {
        const int32_t stop = n - start < SUM_BLOCK ? n : start + SUM_BLOCK;
        REAL part = 0;
#pragma omp simd reduction(+ : part)
        for (int32_t v = start; v < stop; v++) {
            const REAL x = EXP_NEGATIVE(s[v] - second);
            e[v] = x;
            s[v] -= first;
            part += x;
        }
        total += part;
    }
    s[top] = 0;
    const REAL sum = (REAL)total, ratio = EXP_NEGATIVE(second - first);
    const NAME(sums) others = NAME(log_odds_sums)(a, phi, s, w, e, share, n, top, ratio, ratio * sum);
    const NAME(pair) best = NAME(evaluate)((int)a->phi.base, phi, (first - second) - LOG(sum), 0);
    const REAL shared = (REAL)others.share, top_slope = w[top] * best.slope, top_share = top_slope / sum;
    if (g != NULL) {
#pragma omp simd
        for (int32_t v = 0; v < n; v++)
            g[v] = e[v] * (ratio * (shared - share[v]) + top_share) - s[v];
        g[top] = shared - top_slope;
    }
    return (REAL)(others.loss + (double)w[top] * best.value);
}

/* Σ_v (Σ_y w_y − w_v) φ(s̄ − s_v): the margin of v is the same for all labels y ≠ v. */
INLINE REAL NAME(centered_base)(const int base, const NAME(phi) * phi, const REAL *s, const REAL *w, int32_t n, REAL *g,
                                REAL scale, REAL *slopes) {
    double sum = 0, weight_sum = 0, loss = 0, slope_sum = 0;
#pragma omp simd reduction(+ : sum, weight_sum)
    for (int32_t v = 0; v < n; v++) {
        sum += s[v];
        weight_sum += w[v];
    }
    const REAL mean = (REAL)(sum / n), all = (REAL)weight_sum;
    for (int32_t start = 0; start < n; start += SUM_BLOCK) {
        const int32_t stop = n - start < SUM_BLOCK ? n : start + SUM_BLOCK;
        REAL part = 0, slope_part = 0;
#pragma omp simd reduction(+ : part, slope_part)
        for (int32_t v = start; v < stop; v++) {
            const NAME(pair) term = NAME(evaluate)(base, phi, mean, s[v]);
            const REAL weight = scale * (all - w[v]), slope = weight * term.slope;
            part += weight * term.value;
            slope_part += slope;
            slopes[v] = slope;
        }
        loss += part;
        slope_sum += slope_part;
    }
    const REAL average = (REAL)(slope_sum / n);
    if (g != NULL)
#pragma omp simd
        for (int32_t v = 0; v < n; v++)
            g[v] = slopes[v] - average;
    return (REAL)loss;
}

INLINE REAL NAME(centered)(const arguments *a, const NAME(phi) * phi, const REAL *s, const REAL *w, int32_t n, REAL *g,
                           REAL scale, REAL *buffer) {
    BY_BASE(centered_base, phi, s, w, n, g, scale, buffer)
}

/* Returns `weight` times the loss of label y, Σ_{v≠y} φ(s_y − s_v), and adds its gradient to `gradient`. */
INLINE double NAME(pairwise_base)(const int base, const NAME(phi) * phi, const REAL *s, int32_t n, int32_t y, REAL weight,
                                  double *gradient) {
    const REAL own = s[y];
    double loss = 0, slope_sum = 0;
    for (int32_t start = 0; start < n; start += SUM_BLOCK) {
        const int32_t stop = n - start < SUM_BLOCK ? n : start + SUM_BLOCK;
        REAL part = 0, slope_part = 0;
#pragma omp simd reduction(+ : part, slope_part)
        for (int32_t v = start; v < stop; v++) {
            const NAME(pair) term = NAME(evaluate)(base, phi, own, s[v]);
            const REAL slope = v == y ? 0 : weight * term.slope;
            part += v == y ? 0 : weight * term.value;
            slope_part += slope;
            gradient[v] += slope;
        }
        loss += part;
        slope_sum += slope_part;
    }
    gradient[y] -= slope_sum;
    return loss;
}

INLINE double NAME(pairwise_label)(const arguments *a, const NAME(phi) * phi, const REAL *s, int32_t n, int32_t y,
                                   REAL weight, double *gradient) {
    BY_BASE(pairwise_base, phi, s, n, y, weight, gradient)
}

/* Σ_y w_y Σ_{v≠y} φ(s_y − s_v), in time O(n²). Its gradient is a sum of n terms, so it is kept in double. */
INLINE REAL NAME(pairwise)(const arguments *a, const NAME(phi) * phi, const REAL *s, const REAL *w, int32_t n, REAL *g,
                           REAL scale, REAL *buffer) {
    double total = 0, *gradient = (double *)buffer;
    memset(gradient, 0, (size_t)n * sizeof(double));
    for (int32_t y = 0; y < n; y++)
        if (w[y] != 0)
            total += NAME(pairwise_label)(a, phi, s, n, y, scale * w[y], gradient);
    for (int32_t v = 0; v < n && g != NULL; v++)
        g[v] = (REAL)gradient[v];
    return (REAL)total;
}

/* Rows [first, last): losses and gradient. Returns 0 if a score or a loss is infinite or NaN, or memory is missing. */
VECTORIZED static int NAME(rows)(const arguments *a, int64_t first, int64_t last) {
    const int32_t n = (int32_t)a->num_classes, m = PADDED(n);
    const NAME(phi) phi = NAME(make_phi)(&a->phi);
    const REAL scale = a->is_mean_over_competitors ? 1 / (REAL)(n - 1) : 1;
    _Alignas(64) REAL small[4096], *s = small;
    int32_t not_finite = 0;
    if (4 * (int64_t)m > 4096 && (s = malloc(4 * (size_t)m * sizeof(REAL))) == NULL)
        return 0;
    for (int64_t i = first; i < last; i++) {
        const REAL *scores = (const REAL *)a->scores + i * n, *w = (const REAL *)a->weights + i * n;
        REAL *g = a->gradient == NULL ? NULL : (REAL *)a->gradient + i * n, *buffer = s + m;
#pragma omp simd reduction(| : not_finite)
        for (int32_t v = 0; v < n; v++) {
            s[v] = scores[v];
            not_finite |= !IS_FINITE(s[v]);
        }
        if (not_finite)
            break;
        const REAL loss = a->form == LOGODDS    ? NAME(log_odds)(a, &phi, s, w, n, g, buffer)
                          : a->form == CENTERED ? NAME(centered)(a, &phi, s, w, n, g, scale, buffer)
                                                : NAME(pairwise)(a, &phi, s, w, n, g, scale, buffer);
        not_finite |= !IS_FINITE(loss);
        ((REAL *)a->losses)[i] = loss;
    }
    if (s != small)
        free(s);
    return not_finite == 0;
}
#undef BY_BASE
