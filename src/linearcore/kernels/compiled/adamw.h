/* AdamW on rows, in REAL. Included once for each; the formulas are those of `linearcore.optim.SparseAdamW`. */

/* Updates the row whose gradients are the rows order[first .. last) of `values`; `sum` has memory for a row. */
VECTORIZED static void NAME(update_row)(const adamw_call *a, const int64_t *order, int64_t first, int64_t last, REAL *sum) {
    const int64_t n = a->row_size, row = a->index[order[first]];
    const REAL *g = (const REAL *)a->values + order[first] * n;
    if (last - first > 1) {
        memcpy(sum, g, (size_t)n * sizeof(REAL));
        for (int64_t i = first + 1; i < last; i++) {
            const REAL *more = (const REAL *)a->values + order[i] * n;
            for (int64_t j = 0; j < n; j++)
                sum[j] += more[j];
        }
        g = sum;
    }
    REAL *p = (REAL *)a->parameter + row * n, *m = (REAL *)a->first + row * n, *v = (REAL *)a->second + row * n;
    REAL decay = 1;
    if (a->last_step != NULL) {
        decay = (REAL)pow(a->decay, (double)(a->step - a->last_step[row]));
        a->last_step[row] = (int32_t)a->step;
    }
    const REAL beta2 = (REAL)a->beta2, rest1 = (REAL)(1 - a->beta1), rest2 = (REAL)(1 - a->beta2);
    const REAL correction = (REAL)(1 / (1 - pow(a->beta2, (double)a->step))), eps = (REAL)a->eps;
    const REAL rate = (REAL)(a->lr / (1 - pow(a->beta1, (double)a->step)));
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        m[j] += rest1 * (g[j] - m[j]);
        v[j] = beta2 * v[j] + rest2 * g[j] * g[j];
        p[j] = decay * p[j] - rate * (m[j] / (SQRT(v[j] * correction) + eps));
    }
}
