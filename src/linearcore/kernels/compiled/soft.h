/* The loss Σ_y w_y ℓ(s, y) of one row with a weight for each class. Included twice, with REAL = float and REAL = double.

   s and w have m = PADDED(n) numbers; what is in their padding does not matter. The functions return the loss, replace s by
   its gradient and may overwrite w. `buffer` has 2 m numbers. `evaluate(base, phi, a, b)` returns φ(a − b) and the slope
   −φ'(a − b), the derivative with respect to the score b of the competitor. */

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

   top is the class with the largest score; its w is 0 here. e_v = exp(s_v − second), with the second-largest score and
   e_top = 0. ratio = exp(second − largest), and rest = Σ_v ratio · e_v. The sum of exp(s_u) over all u ≠ v is then
   all = 1 + others with others = rest − ratio · e_v. Replaces s_v by slope = −w_v φ'(m_v), and writes share[v] = slope / all;
   both are 0 for v = top. The result has the loss and the sum of share[v]. */
INLINE NAME(sums)
    NAME(log_odds_base)(const int base, const NAME(phi) * phi, REAL *s, const REAL *w, const REAL *e, REAL *share, int32_t n,
                        REAL ratio, REAL rest) {
    const int32_t m = PADDED(n);
    NAME(sums) total = {0, 0};
    for (int32_t start = 0; start < m; start += SUM_BLOCK) {
        const int32_t stop = m - start < SUM_BLOCK ? m : start + SUM_BLOCK;
        REAL loss = 0, sum = 0;
#pragma omp simd reduction(+ : loss, sum)
        for (int32_t v = start; v < stop; v++) {
            const REAL others = rest - ratio * e[v], all = 1 + (others > 0 ? others : 0);
            const NAME(pair) term = NAME(evaluate)(base, phi, s[v] - LOG_ABOVE_ONE(all), 0);
            const REAL slope = w[v] * term.slope, part = slope / all;
            loss += w[v] * term.value;
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
                        int32_t n, REAL ratio, REAL rest) {
    BY_BASE(log_odds_base, phi, s, w, e, share, n, ratio, rest)
}

/* Σ_y w_y φ(s_y − logsumexp_{v≠y} s_v). For the class with the largest score, the logsumexp over the others is computed
   directly: subtracting the score from the full sum would lose precision. */
INLINE REAL NAME(soft_log_odds)(const arguments *a, const NAME(phi) * phi, REAL *s, REAL *w, int32_t n, REAL *buffer) {
    const int32_t m = PADDED(n);
    REAL *e = buffer, *share = buffer + m;
    REAL first = -INFINITY, second = -INFINITY;
    for (int32_t v = n; v < m; v++)
        s[v] = -INFINITY;
#pragma omp simd reduction(max : first)
    for (int32_t v = 0; v < m; v++)
        first = s[v] > first ? s[v] : first;
    int32_t top = 0;
    while (s[top] < first)
        top++;
    s[top] = -INFINITY;
#pragma omp simd reduction(max : second)
    for (int32_t v = 0; v < m; v++)
        second = s[v] > second ? s[v] : second;
    double total = 0;
    for (int32_t start = 0; start < m; start += SUM_BLOCK) {
        const int32_t stop = m - start < SUM_BLOCK ? m : start + SUM_BLOCK;
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
    const REAL top_weight = w[top];
    s[top] = w[top] = 0;
    for (int32_t v = n; v < m; v++)
        s[v] = w[v] = 0;
    const REAL sum = (REAL)total, ratio = EXP_NEGATIVE(second - first);
    const NAME(sums) others = NAME(log_odds_sums)(a, phi, s, w, e, share, n, ratio, ratio * sum);
    const NAME(pair) best = NAME(evaluate)((int)a->phi.base, phi, (first - second) - LOG(sum), 0);
    const REAL shared = (REAL)others.share, top_slope = top_weight * best.slope, top_share = top_slope / sum;
#pragma omp simd
    for (int32_t v = 0; v < m; v++)
        s[v] = e[v] * (ratio * (shared - share[v]) + top_share) - s[v];
    s[top] = shared - top_slope;
    return (REAL)(others.loss + (double)top_weight * best.value);
}

/* Σ_v (Σ_y w_y − w_v) φ(s̄ − s_v): the margin of v is the same for all labels y ≠ v. */
INLINE REAL NAME(centered_base)(const int base, const NAME(phi) * phi, REAL *s, const REAL *w, int32_t n, double average) {
    const int32_t m = PADDED(n);
    double sum = 0, weight_sum = 0, loss = 0, slope_sum = 0;
#pragma omp simd reduction(+ : sum, weight_sum)
    for (int32_t v = 0; v < n; v++) {
        sum += s[v];
        weight_sum += w[v];
    }
    const REAL mean = (REAL)(sum / n), all = (REAL)weight_sum;
    for (int32_t start = 0; start < m; start += SUM_BLOCK) {
        const int32_t stop = m - start < SUM_BLOCK ? m : start + SUM_BLOCK;
        REAL part = 0, slope_part = 0;
#pragma omp simd reduction(+ : part, slope_part)
        for (int32_t v = start; v < stop; v++) {
            const NAME(pair) term = NAME(evaluate)(base, phi, mean, s[v]);
            const REAL slope = v < n ? (all - w[v]) * term.slope : 0;
            part += v < n ? (all - w[v]) * term.value : 0;
            slope_part += slope;
            s[v] = slope;
        }
        loss += part;
        slope_sum += slope_part;
    }
    const REAL mean_slope = (REAL)(slope_sum / n), factor = (REAL)average;
#pragma omp simd
    for (int32_t v = 0; v < m; v++)
        s[v] = factor * (s[v] - mean_slope);
    /* A sum of huge scores overflows; φ(∞) may be 0, so the loss would look right. */
    return IS_FINITE(mean) ? (REAL)(average * loss) : (REAL)NAN;
}

INLINE REAL NAME(soft_centered)(const arguments *a, const NAME(phi) * phi, REAL *s, const REAL *w, int32_t n, double average) {
    BY_BASE(centered_base, phi, s, w, n, average)
}

/* Returns `weight` times the loss of label y, Σ_{v≠y} φ(s_y − s_v), and adds its gradient to `gradient`. */
INLINE double NAME(pairwise_base)(const int base, const NAME(phi) * phi, const REAL *s, int32_t n, int32_t y, REAL weight,
                                  double *gradient) {
    const int32_t m = PADDED(n);
    const REAL own = s[y];
    double loss = 0, slope_sum = 0;
    for (int32_t start = 0; start < m; start += SUM_BLOCK) {
        const int32_t stop = m - start < SUM_BLOCK ? m : start + SUM_BLOCK;
        REAL part = 0, slope_part = 0;
#pragma omp simd reduction(+ : part, slope_part)
        for (int32_t v = start; v < stop; v++) {
            const NAME(pair) term = NAME(evaluate)(base, phi, own, s[v]);
            const int is_competitor = (v != y) & (v < n);
            const REAL slope = is_competitor ? weight * term.slope : 0;
            part += is_competitor ? term.value : 0;
            slope_part += slope;
            gradient[v] += slope;
        }
        loss += part;
        slope_sum += slope_part;
    }
    gradient[y] -= slope_sum;
    return weight * loss;
}

INLINE double NAME(pairwise_label)(const arguments *a, const NAME(phi) * phi, const REAL *s, int32_t n, int32_t y,
                                   REAL weight, double *gradient) {
    BY_BASE(pairwise_base, phi, s, n, y, weight, gradient)
}

/* Σ_y w_y Σ_{v≠y} φ(s_y − s_v), in time O(n²). Its gradient is a sum of n terms, so it is kept in double. */
INLINE REAL NAME(soft_pairwise)(const arguments *a, const NAME(phi) * phi, REAL *s, const REAL *w, int32_t n, double average,
                                REAL *buffer) {
    const int32_t m = PADDED(n);
    double total = 0, *gradient = (double *)buffer;
    memset(gradient, 0, (size_t)m * sizeof(double));
    for (int32_t y = 0; y < n; y++)
        if (w[y] != 0)
            total += NAME(pairwise_label)(a, phi, s, n, y, w[y], gradient);
    for (int32_t v = 0; v < m; v++)
        s[v] = (REAL)(average * gradient[v]);
    return (REAL)(average * total);
}

INLINE NAME(outcome) NAME(soft_row)(const arguments *a, const NAME(phi) * phi, REAL *s, REAL *w, int32_t n, int32_t y,
                                    REAL scale, REAL *buffer) {
    const double average = a->is_mean_over_competitors ? 1.0 / (n - 1) : 1;
    const REAL loss = a->form == LOGODDS    ? NAME(soft_log_odds)(a, phi, s, w, n, buffer)
                      : a->form == CENTERED ? NAME(soft_centered)(a, phi, s, w, n, average)
                                            : NAME(soft_pairwise)(a, phi, s, w, n, average, buffer);
    const NAME(outcome) result = {loss, scale, 0, scale * s[y]};
    return result;
}
#undef BY_BASE
