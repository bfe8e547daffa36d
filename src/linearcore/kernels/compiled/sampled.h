/* Rows with sampled candidate classes, in REAL. Included once for each; `kernels/_sampled.py` has the formulas. */

INLINE REAL NAME(dot)(const REAL *a, const REAL *b, int64_t n) {
    REAL total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < n; i++)
        total += a[i] * b[i];
    return total;
}

INLINE void NAME(copy_or_zero)(REAL *to, const REAL *from, int64_t n, int is_zero) {
    if (is_zero)
        memset(to, 0, (size_t)n * sizeof(REAL));
    else
        memcpy(to, from, (size_t)n * sizeof(REAL));
}

#define ROW(table, stride, i) ((const REAL *)(table) + (i) * (stride))
#define VALUE(vector, i) ((vector) == NULL ? (REAL)0 : ((const REAL *)(vector))[i])

/* Looks up row n: a row of the batch for n < N, then the candidates. Returns 0 if a class is out of range. */
VECTORIZED static int NAME(gather_row)(const sampled_call *a, int64_t n, REAL *unused) {
    (void)unused;
    const int64_t size = a->size, rank = a->rank, columns = a->columns, width = columns + 2 * rank;
    const int64_t length = total_length(a), lead = a->sources != NULL ? size : 0;
    const int64_t label = n < size ? label_of(a, n) : a->candidates[n - size];
    if ((uint64_t)label >= (uint64_t)a->num_classes)
        return 0;
    a->index[lead + n] = label;
    if (lead)
        a->index[length + lead + n] = label;
    const REAL *class_row = ROW(a->weight, a->weight_stride, label);
    if (n >= size) {
        REAL *to = (REAL *)a->candidate_rows + (n - size) * width;
        memcpy(to, class_row, (size_t)columns * sizeof(REAL));
        if (rank) {
            memcpy(to + columns, ROW(a->targets, rank, label), (size_t)rank * sizeof(REAL));
            memcpy(to + columns + rank, ROW(a->sources, rank, label), (size_t)rank * sizeof(REAL));
        }
        return 1;
    }
    const REAL *x = ROW(a->hidden, a->hidden_stride, n);
    REAL score = NAME(dot)(x, class_row, columns) + VALUE(a->bias, label);
    ((REAL *)a->label_scores)[n] = score;
    if (!lead)
        return 1;
    const int is_first = is_end(a->first, n, n < a->width), is_last = is_end(a->last, n, n >= size - a->width);
    const int64_t before = a->before != NULL ? a->before[n] : is_first ? 0 : label_of(a, n - a->width);
    const int64_t after = a->after != NULL ? a->after[n] : is_last ? 0 : label_of(a, n + a->width);
    if ((uint64_t)before >= (uint64_t)a->num_classes || (uint64_t)after >= (uint64_t)a->num_classes)
        return 0;
    a->index[n] = after;
    a->index[length + n] = before;
    REAL *row = (REAL *)a->rows + n * width, *left = row + columns, *right = left + rank;
    memcpy(row, x, (size_t)columns * sizeof(REAL));
    NAME(copy_or_zero)(left, ROW(a->sources, rank, before), rank, is_first);
    NAME(copy_or_zero)(right, ROW(a->targets, rank, after), rank, is_last);
    score += NAME(dot)(left, ROW(a->targets, rank, label), rank) + NAME(dot)(right, ROW(a->sources, rank, label), rank);
    score += (is_first ? VALUE(a->start, label) : 0) + (is_last ? VALUE(a->end, label) : 0);
    ((REAL *)a->label_scores)[size + n] = score;
    return 1;
}

/* Copies the scores of row n to s and adds bias, start and end. Returns 0 if one is infinite or NaN. */
INLINE int NAME(add_offsets)(const sampled_call *a, int64_t n, const void *scores, int has_edges, REAL *s) {
    const int64_t count = a->num_candidates;
    const int is_first = has_edges && is_end(a->first, n, n < a->width);
    const int is_last = has_edges && is_end(a->last, n, n >= a->size - a->width);
    const REAL *from = ROW(scores, count, n);
    int not_finite = 0;
    for (int64_t k = 0; k < count; k++) {
        REAL score = from[k] + VALUE(a->bias, a->candidates[k]);
        if (is_first)
            score += VALUE(a->start, a->candidates[k]);
        if (is_last)
            score += VALUE(a->end, a->candidates[k]);
        not_finite |= !IS_FINITE(score);
        s[k] = score;
    }
    return !not_finite;
}

typedef struct {
    REAL loss, center, share, derivative;
} NAME(row_result);

/* Σ_k weight_k φ(label − s_k). */
INLINE NAME(row_result) NAME(sum_base)(const int base, const NAME(phi) * phi, REAL label, const REAL *s, const REAL *w, int64_t n, REAL scale) {
    REAL total = 0, slopes = 0;
#pragma omp simd reduction(+ : total, slopes)
    for (int64_t k = 0; k < n; k++) {
        const NAME(pair) term = NAME(evaluate)(base, phi, label, s[k]);
        total += w[k] > 0 ? w[k] * term.value : 0;
        slopes += w[k] > 0 ? w[k] * term.slope : 0;
    }
    const NAME(row_result) result = {total * scale, label, scale, -slopes * scale};
    return result;
}

/* φ(label − log Σ_k e^{s_k}) for s with the log weights added; φ(∞) without candidates. */
INLINE NAME(row_result) NAME(log_odds_row)(const sampled_call *a, const NAME(phi) * phi, REAL label, const REAL *s, int64_t n) {
    REAL top = -INFINITY, total = 0;
#pragma omp simd reduction(max : top)
    for (int64_t k = 0; k < n; k++)
        top = s[k] > top ? s[k] : top;
    const int is_alone = top == -INFINITY;
    if (is_alone)
        top = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t k = 0; k < n; k++)
        total += EXP_NEGATIVE(s[k] - top);
    const REAL margin = is_alone ? INFINITY : (label - top) - LOG(total);
    const NAME(pair) term = NAME(evaluate)((int)a->phi.base, phi, margin, 0);
    const NAME(row_result) result = {term.value, top, is_alone ? 0 : term.slope / total, -term.slope};
    return result;
}

INLINE NAME(row_result) NAME(loss_row)(const sampled_call *a, const NAME(phi) * phi, REAL label, REAL *s, const REAL *w) {
    const int64_t n = a->num_candidates;
    const REAL scale = (REAL)a->scale;
    if (a->form == LOGODDS) {
        for (int64_t k = 0; k < n; k++)
            s[k] += w[k];
        return NAME(log_odds_row)(a, phi, label, s, n);
    }
    switch (a->phi.base) { /* A constant base in each case, so that each has a loop of its own. */
    case 0:
        return NAME(sum_base)(0, phi, label, s, w, n, scale);
    case 1:
        return NAME(sum_base)(1, phi, label, s, w, n, scale);
    case 2:
        return NAME(sum_base)(2, phi, label, s, w, n, scale);
    case 3:
        return NAME(sum_base)(3, phi, label, s, w, n, scale);
    default:
        return NAME(sum_base)(4, phi, label, s, w, n, scale);
    }
}

/* Copies the log weights of row n to w, as weights for `pairwise`; the label is ignored. Returns 0 if one is NaN or +inf. */
INLINE int NAME(load_weights)(const sampled_call *a, int64_t n, REAL *w) {
    const REAL *from = ROW(a->log_weight, a->log_weight_stride, n);
    const int64_t label = label_of(a, n);
    int is_bad = 0;
    for (int64_t k = 0; k < a->num_candidates; k++) {
        const REAL x = from[k * a->log_weight_step];
        is_bad |= !(x < INFINITY);
        w[k] = a->candidates[k] == label ? -INFINITY : x;
    }
    if (a->form != LOGODDS)
        for (int64_t k = 0; k < a->num_candidates; k++)
            w[k] = w[k] == -INFINITY ? 0 : EXP(w[k]);
    return !is_bad;
}

INLINE void NAME(store_stats)(REAL *stats, int64_t size, int64_t n, NAME(row_result) r) {
    stats[n] = r.center;
    stats[size + n] = r.share;
    stats[2 * size + n] = r.derivative;
}

/* Loss of row n, with 2K numbers of memory. Returns 0 if it is infinite or NaN. */
VECTORIZED static int NAME(row_loss)(const sampled_call *a, int64_t n, REAL *memory) {
    const NAME(phi) phi = NAME(make_phi)(&a->phi);
    const int64_t size = a->size;
    const int has_edges = a->sources != NULL;
    REAL *s = memory, *w = memory + a->num_candidates, *stats = a->stats;
    NAME(row_result) result = {0, 0, 0, 0}, second = result;
    if (a->target[n] != a->ignore_index) {
        const REAL unary = (REAL)a->unary, *label_scores = a->label_scores;
        const REAL label = label_scores[has_edges ? size + n : n];
        if (!IS_FINITE(label) || !NAME(load_weights)(a, n, w) || !NAME(add_offsets)(a, n, a->scores, has_edges, s))
            return 0;
        result = NAME(loss_row)(a, &phi, label, s, w);
        if (a->unary_scores != NULL) {
            if (!NAME(add_offsets)(a, n, a->unary_scores, 0, s))
                return 0;
            second = NAME(loss_row)(a, &phi, label_scores[n], s, w);
        }
        ((REAL *)a->losses)[n] = a->unary_scores == NULL ? result.loss : (1 - unary) * result.loss + unary * second.loss;
    } else
        ((REAL *)a->losses)[n] = 0;
    NAME(store_stats)(stats, size, n, result);
    if (a->unary_scores != NULL)
        NAME(store_stats)(stats + 3 * size, size, n, second);
    return IS_FINITE(((REAL *)a->losses)[n]);
}

INLINE void NAME(slopes_base)(const int base, const NAME(phi) * phi, REAL label, REAL *s, const REAL *w, int64_t n, REAL factor) {
#pragma omp simd
    for (int64_t k = 0; k < n; k++) {
        const NAME(pair) term = NAME(evaluate)(base, phi, label, s[k]);
        s[k] = w[k] > 0 ? factor * w[k] * term.slope : 0;
    }
}

/* Replaces the scores s by the gradient of the loss times `upstream`. */
INLINE void NAME(gradient_row)(const sampled_call *a, const NAME(phi) * phi, const REAL *stats, int64_t i, REAL *s, const REAL *w, REAL upstream) {
    const int64_t n = a->num_candidates, size = a->size;
    const REAL center = stats[i], factor = upstream * stats[size + i];
    if (stats[size + i] == 0) {
        memset(s, 0, (size_t)n * sizeof(REAL));
    } else if (a->form == LOGODDS) {
#pragma omp simd
        for (int64_t k = 0; k < n; k++)
            s[k] = factor * EXP_NEGATIVE((s[k] + w[k]) - center);
    } else {
        switch (a->phi.base) {
        case 0:
            NAME(slopes_base)(0, phi, center, s, w, n, factor);
            break;
        case 1:
            NAME(slopes_base)(1, phi, center, s, w, n, factor);
            break;
        case 2:
            NAME(slopes_base)(2, phi, center, s, w, n, factor);
            break;
        case 3:
            NAME(slopes_base)(3, phi, center, s, w, n, factor);
            break;
        default:
            NAME(slopes_base)(4, phi, center, s, w, n, factor);
        }
    }
}

/* Gradients of the scores of row n, with 2K numbers of memory. */
VECTORIZED static int NAME(score_gradient)(const sampled_call *a, int64_t n, REAL *memory) {
    const NAME(phi) phi = NAME(make_phi)(&a->phi);
    const int64_t count = a->num_candidates;
    const REAL upstream = ((const REAL *)a->grad_output)[n * a->grad_stride], *stats = a->stats, unary = (REAL)a->unary;
    REAL *w = memory + count, *total = (REAL *)a->gradient + n * count, *edges = (REAL *)a->edge_gradient + n * count;
    NAME(load_weights)(a, n, w);
    NAME(add_offsets)(a, n, a->scores, a->sources != NULL, edges);
    if (a->unary_scores == NULL) {
        NAME(gradient_row)(a, &phi, stats, n, edges, w, upstream);
        return 1; /* `gradient` and `edge_gradient` are the same. */
    }
    NAME(gradient_row)(a, &phi, stats, n, edges, w, (1 - unary) * upstream);
    NAME(add_offsets)(a, n, a->unary_scores, 0, total);
    NAME(gradient_row)(a, &phi, stats + 3 * a->size, n, total, w, unary * upstream);
    for (int64_t k = 0; k < count; k++)
        total[k] += edges[k];
    return 1;
}

/* Sums the gradients of the candidates over all rows, first rows and last rows. */
VECTORIZED static void NAME(sum_rows)(const sampled_call *a) {
    const int64_t size = a->size, count = a->num_candidates;
    REAL *sums = a->sums;
    memset(sums, 0, (size_t)(count * (a->sources != NULL ? 3 : 1)) * sizeof(REAL));
    for (int64_t n = 0; n < size; n++) {
        const REAL *row = ROW(a->gradient, count, n), *edges = ROW(a->edge_gradient, count, n);
        for (int64_t k = 0; k < count; k++)
            sums[k] += row[k];
        if (a->sources != NULL && is_end(a->first, n, n < a->width))
            for (int64_t k = 0; k < count; k++)
                sums[count + k] += edges[k];
        if (a->sources != NULL && is_end(a->last, n, n >= size - a->width))
            for (int64_t k = 0; k < count; k++)
                sums[2 * count + k] += edges[k];
    }
}

/* Writes the gradients of candidate k. */
INLINE void NAME(candidate_gradient)(const sampled_call *a, int64_t k) {
    const int64_t size = a->size, count = a->num_candidates, columns = a->columns, rank = a->rank, n = size + k;
    const REAL *from = ROW(a->grad_candidates, columns + 2 * rank, k), *sums = a->sums;
    REAL *values = a->vector_values;
    for (int part = 0; part < (a->sources != NULL ? 3 : 1); part++)
        values[part * (size + count) + n] = sums[part * count + k];
    if (a->weight_values != NULL)
        memcpy((REAL *)a->weight_values + n * columns, from, (size_t)columns * sizeof(REAL));
    for (int part = 0; part < 2 && a->edge_values != NULL; part++)
        memcpy((REAL *)a->edge_values + (part * total_length(a) + size + n) * rank, from + columns + part * rank, (size_t)rank * sizeof(REAL));
}

/* Writes the gradients of row n, those of the label's score included, or of a candidate for n ≥ N. */
VECTORIZED static int NAME(table_gradient)(const sampled_call *a, int64_t n, REAL *unused) {
    (void)unused;
    const int64_t size = a->size, columns = a->columns, rank = a->rank, length = size + a->num_candidates;
    if (n >= size) {
        NAME(candidate_gradient)(a, n - size);
        return 1;
    }
    const int has_edges = a->sources != NULL;
    const REAL upstream = ((const REAL *)a->grad_output)[n * a->grad_stride], *stats = a->stats, unary = (REAL)a->unary;
    const REAL slope = upstream * stats[2 * size + n] * (a->has_unary ? 1 - unary : 1);
    const REAL total = a->has_unary ? slope + unary * upstream * stats[5 * size + n] : slope;
    const int64_t label = label_of(a, n);
    const REAL *x = ROW(a->hidden, a->hidden_stride, n), *w = ROW(a->weight, a->weight_stride, label);
    const REAL *row = ROW(a->grad_rows, columns + 2 * rank, n);
    REAL *values = a->vector_values;
    values[n] = total;
    if (a->weight_values != NULL) {
        REAL *to = (REAL *)a->weight_values + n * columns;
        for (int64_t h = 0; h < columns; h++)
            to[h] = total * x[h];
    }
    if (a->grad_hidden != NULL) {
        REAL *to = (REAL *)a->grad_hidden + n * columns;
        for (int64_t h = 0; h < columns; h++)
            to[h] = row[h] + total * w[h];
    }
    if (!has_edges)
        return 1;
    const int is_first = is_end(a->first, n, n < a->width), is_last = is_end(a->last, n, n >= size - a->width);
    values[length + n] = is_first ? slope : 0;
    values[2 * length + n] = is_last ? slope : 0;
    const REAL *edges = ROW(a->rows, columns + 2 * rank, n) + columns;
    for (int part = 0; part < 2 && a->edge_values != NULL; part++) { /* of targets, then of sources */
        REAL *to = (REAL *)a->edge_values + (part * total_length(a) + n) * rank, *own = to + size * rank;
        const REAL *table = ROW(part ? a->targets : a->sources, rank, label), *from = row + columns + (1 - part) * rank;
        const int is_none = part ? is_first : is_last;
        for (int64_t i = 0; i < rank; i++) {
            to[i] = is_none ? 0 : from[i] + slope * table[i];
            own[i] = slope * edges[part * rank + i];
        }
    }
    return 1;
}
#undef ROW
#undef VALUE
