/* Viterbi and k-best search, for REAL in {float, double}. Included once for each. The additions are those of kernels/_viterbi.py
   and kernels/_kbest.py, in the same order, and ties go to the first tag, so the results are equal to the last bit. */

/* Copies the transitions and their transpose to rows of m numbers, with −inf in the padding. Returns 0 if one is +inf or NaN. */
VECTORIZED static int NAME(copy_transitions)(const chain *c, REAL *rows, REAL *columns) {
    const int32_t n = (int32_t)c->num_tags, m = PADDED(n);
    const REAL *transitions = c->transitions;
    int is_bad = 0;
    for (int32_t i = 0; i < n; i++) {
        REAL *row = rows + (int64_t)i * m;
#pragma omp simd reduction(| : is_bad)
        for (int32_t v = 0; v < n; v++) {
            row[v] = transitions[(int64_t)i * n + v];
            is_bad |= !(row[v] < INFINITY);
        }
        for (int32_t v = n; v < m; v++)
            row[v] = columns[(int64_t)i * m + v] = -INFINITY;
    }
    /* In square blocks, so that both matrices stay in the cache. */
    for (int32_t first = 0; first < n; first += 16)
        for (int32_t v = 0; v < n; v++)
            for (int32_t i = first; i < n && i < first + 16; i++)
                columns[(int64_t)v * m + i] = rows[(int64_t)i * m + v];
    return !is_bad;
}

/* Writes max_i (alpha_i + rows_i). */
INLINE void NAME(max_product)(const REAL *alpha, const REAL *rows, REAL *restrict out, int32_t n, int32_t m) {
    int32_t i = 0;
    for (int32_t v = 0; v < m; v++)
        out[v] = -INFINITY;
    for (; i + 4 <= n; i += 4) {
        const REAL a0 = alpha[i], a1 = alpha[i + 1], a2 = alpha[i + 2], a3 = alpha[i + 3];
        const REAL *r0 = rows + (int64_t)i * m, *r1 = r0 + m, *r2 = r1 + m, *r3 = r2 + m;
#pragma omp simd
        for (int32_t v = 0; v < m; v++) {
            const REAL x0 = a0 + r0[v], x1 = a1 + r1[v], x2 = a2 + r2[v], x3 = a3 + r3[v];
            const REAL y0 = x0 > x1 ? x0 : x1, y1 = x2 > x3 ? x2 : x3, y = y0 > y1 ? y0 : y1;
            out[v] = y > out[v] ? y : out[v];
        }
    }
    for (; i < n; i++) {
        const REAL a = alpha[i], *row = rows + (int64_t)i * m;
#pragma omp simd
        for (int32_t v = 0; v < m; v++)
            out[v] = a + row[v] > out[v] ? a + row[v] : out[v];
    }
}

/* alpha ← incoming + emissions, and −inf in the padding. Returns whether one is +inf or NaN. */
INLINE int NAME(add_emissions)(const REAL *incoming, const REAL *emissions, REAL *alpha, int32_t n, int32_t m) {
    int is_bad = 0;
#pragma omp simd reduction(| : is_bad)
    for (int32_t v = 0; v < n; v++) {
        alpha[v] = incoming[v] + emissions[v];
        is_bad |= !(alpha[v] < INFINITY);
    }
    for (int32_t v = n; v < m; v++)
        alpha[v] = -INFINITY;
    return is_bad;
}

/* The first i with the largest alpha_i + column_i, of the first n. */
INLINE int32_t NAME(best)(const REAL *alpha, const REAL *column, int32_t n, REAL *score) {
    REAL top = -INFINITY;
#pragma omp simd reduction(max : top)
    for (int32_t i = 0; i < n; i++)
        top = alpha[i] + column[i] > top ? alpha[i] + column[i] : top;
    *score = top;
    for (int32_t i = 0; i < n; i++)
        if (alpha[i] + column[i] == top)
            return i;
    return 0;
}

/* Sequence b: its best tags, and the score. `alpha` has room for (L, m). Returns 0 if a sum is +inf or NaN. */
VECTORIZED static int NAME(viterbi)(const search_call *call, int64_t b, const int32_t *positions, int64_t count, REAL *alpha) {
    const chain *c = &call->c;
    const int32_t n = (int32_t)c->num_tags, m = PADDED(n);
    const REAL *emissions = (const REAL *)c->emissions + b * c->batch_stride, *rows = call->rows, *columns = call->columns;
    int is_bad = 0;
    for (int64_t k = 0; k < count; k++) {
        REAL *row = alpha + k * m;
        if (k > 0)
            NAME(max_product)(row - m, rows, row, n, m);
        is_bad |= NAME(add_emissions)(k > 0 ? row : c->start, emissions + positions[k] * c->time_stride, row, n, m);
    }
    REAL score = 0;
    int32_t tag = count > 0 ? NAME(best)(alpha + (count - 1) * m, c->end, n, &score) : 0;
    ((REAL *)call->scores)[b] = score;
    const int has_path = score > -INFINITY;
    for (int64_t k = count - 1; k >= 0; k--) {
        REAL unused;
        call->tags[positions[k] * c->batch + b] = has_path ? tag : NO_TAG;
        if (k > 0)
            tag = NAME(best)(alpha + (k - 1) * m, columns + (int64_t)tag * m, n, &unused);
    }
    for (int32_t v = 0; v < n; v++)
        is_bad |= !(((const REAL *)c->end)[v] < INFINITY);
    return !is_bad && score < INFINITY;
}

/* Inserts a score and where it comes from in a list of k, best first, behind equal scores. */
INLINE void NAME(insert)(REAL *scores, int32_t *sources, int32_t k, REAL score, int32_t source) {
    int32_t r = k - 1;
    for (; r > 0 && scores[r - 1] < score; r--) {
        scores[r] = scores[r - 1];
        sources[r] = sources[r - 1];
    }
    scores[r] = score;
    sources[r] = source;
}

/* The k best of alpha_i[r] + column_i over tags i and ranks r; best first, filled up with −inf. `heads` are the best scores
   alpha_i[0]. */
INLINE void NAME(k_best)(const REAL *alpha, const REAL *heads, const REAL *column, REAL *scores, int32_t *sources, int32_t n, int32_t k) {
    for (int32_t r = 0; r < k; r++) {
        scores[r] = -INFINITY;
        sources[r] = 0;
    }
    for (int32_t first = 0; first < n; first += 16) {
        const int32_t last = first + 16 < n ? first + 16 : n;
        REAL top = -INFINITY;
#pragma omp simd reduction(max : top)
        for (int32_t i = first; i < last; i++)
            top = heads[i] + column[i] > top ? heads[i] + column[i] : top;
        if (!(top > scores[k - 1]))
            continue;
        for (int32_t i = first; i < last; i++)
            /* The ranks of a tag are in order, so the first that is not among the best ends them. */
            for (int32_t r = 0; r < k; r++) {
                const REAL score = alpha[(int64_t)i * k + r] + column[i];
                if (!(score > scores[k - 1]))
                    break;
                NAME(insert)(scores, sources, k, score, i * k + r);
            }
    }
}

/* Sequence b: the k best tag sequences and their scores. `work` has room for 2 |Y| k + k + m numbers, `sources` for
   (L |Y| + 1) k. Returns 0 if a sum is +inf or NaN. */
VECTORIZED static int NAME(kbest)(const search_call *call, int64_t b, const int32_t *positions, int64_t count, REAL *work, int32_t *sources) {
    const chain *c = &call->c;
    const int32_t n = (int32_t)c->num_tags, m = PADDED(n), k = (int32_t)call->k;
    const int64_t size = (int64_t)n * k;
    const REAL *emissions = (const REAL *)c->emissions + b * c->batch_stride, *columns = call->columns, *end = c->end;
    REAL *alpha = work, *next = work + size, *scores = work + 2 * size, *heads = scores + k;
    int32_t *last = sources + c->length * size;
    int is_bad = 0;
    for (int64_t j = 0; j < count; j++) {
        const REAL *row = emissions + positions[j] * c->time_stride;
        for (int32_t v = 0; v < n; v++) {
            REAL *list = next + (int64_t)v * k;
            if (j > 0)
                NAME(k_best)(alpha, heads, columns + (int64_t)v * m, list, sources + j * size + (int64_t)v * k, n, k);
            else
                for (int32_t r = 0; r < k; r++)
                    list[r] = r == 0 ? ((const REAL *)c->start)[v] : -INFINITY;
            for (int32_t r = 0; r < k; r++) {
                list[r] += row[v];
                is_bad |= !(list[r] < INFINITY);
            }
        }
        REAL *const swap = alpha;
        alpha = next;
        next = swap;
        for (int32_t v = 0; v < n; v++)
            heads[v] = alpha[(int64_t)v * k];
    }
    if (count > 0)
        NAME(k_best)(alpha, heads, end, scores, last, n, k);
    for (int32_t v = 0; v < n; v++)
        is_bad |= !(end[v] < INFINITY);
    for (int32_t r = 0; r < k; r++) {
        const REAL score = count > 0 ? scores[r] : (r == 0 ? 0 : -INFINITY);
        ((REAL *)call->scores)[r * c->batch + b] = score;
        is_bad |= !(score < INFINITY);
        int32_t source = count > 0 ? last[r] : 0;
        for (int64_t j = count - 1; j >= 0; j--) {
            const int32_t tag = source / k;
            call->tags[(r * c->length + positions[j]) * c->batch + b] = score > -INFINITY ? tag : NO_TAG;
            source = sources[j * size + source];
        }
    }
    return !is_bad;
}
