/* Rows of a dense loss, for STORED in {float, bfloat16, double} computed in REAL. Included once for each. */

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

/* Rows [first, last): losses or their sum, and the gradient. Returns 0 if a score or a loss is infinite or NaN. */
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
