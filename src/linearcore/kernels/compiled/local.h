/* Losses of all positions of a chain given the neighbouring tags, for REAL in {float, double}. Included once for each.

       s_j(v) = emissions[j, v] + transitions[y_{j−1}, v] + transitions[v, y_{j+1}]

   The loss is (1 − w) · form(s_j) + w · form(emissions[j]). */

/* The loss of one row s of n finite scores; replaces s by its gradient times `scale`. */
INLINE REAL NAME(row_loss)(const arguments *a, const NAME(phi) * phi, REAL *s, int32_t n, int32_t y, REAL scale) {
    const NAME(outcome) row =
        a->form == LOGODDS ? NAME(log_odds)(a, phi, s, n, y, scale) : NAME(competitors)(a, phi, s, n, y, scale);
#pragma omp simd
    for (int32_t v = 0; v < n; v++)
        s[v] = s[v] * row.factor + row.shared;
    s[y] = row.label_gradient;
    return row.loss;
}

/* `row_loss` if some scores are −inf: these tags are no candidates. `s` has room for a copy behind it. Returns NaN if the label
   is one of them, or a score is +inf or NaN. */
INLINE REAL NAME(masked_row_loss)(const arguments *a, const NAME(phi) * phi, REAL *s, int32_t n, int32_t y, REAL scale) {
    REAL *kept = s + PADDED(n);
    int32_t count = 0, label = 0;
    for (int32_t v = 0; v < n; v++) {
        if (!(s[v] < INFINITY) || (v == y && s[v] == -INFINITY))
            return NAN;
        if (s[v] == -INFINITY)
            continue;
        label = v == y ? count : label;
        kept[count++] = s[v];
    }
    const REAL loss = count > 1 ? NAME(row_loss)(a, phi, kept, count, label, scale) : 0;
    if (count == 1)
        kept[0] = 0;
    for (int32_t v = n - 1; v >= 0; v--)
        s[v] = s[v] == -INFINITY ? 0 : kept[--count];
    return loss;
}

/* The loss of the emissions of a position alone; writes its gradient times `scale`. `s` has room for 2 m numbers. */
INLINE REAL NAME(unary_loss)(const arguments *a, const NAME(phi) * phi, const REAL *emissions, REAL *s, int32_t n, int32_t y,
                             REAL scale, REAL *gradient) {
    int32_t is_masked = 0;
#pragma omp simd reduction(| : is_masked)
    for (int32_t v = 0; v < n; v++) {
        s[v] = emissions[v];
        is_masked |= !IS_FINITE(s[v]);
    }
    const REAL loss =
        is_masked ? NAME(masked_row_loss)(a, phi, s, n, y, scale) : NAME(row_loss)(a, phi, s, n, y, scale);
    if (gradient != NULL)
        memcpy(gradient, s, (size_t)n * sizeof(REAL));
    return loss;
}

/* Losses and unit gradients of sequence b; 0 where masked. `s` has room for 2 m numbers. Returns 0 if a loss is infinite or NaN. */
VECTORIZED static int NAME(local_losses)(const local_call *call, const arguments *a, int64_t b, REAL *s) {
    const chain *c = &call->c;
    const int32_t n = (int32_t)c->num_tags;
    const NAME(phi) phi = NAME(make_phi)(&a->phi);
    const REAL *transitions = c->transitions, *columns = call->columns;
    const int32_t *positions = call->s.positions + b * c->length;
    const REAL unary = (REAL)call->unary, local = 1 - unary;
    REAL *losses = (REAL *)call->losses + b, *gradients = call->gradient, *unary_gradients = call->unary_gradient;
    int32_t not_finite = 0;
    int64_t k = 0, y = 0, before = -1;
    for (int64_t t = 0; t < c->length; t++) {
        const int64_t place = t * call->gradient_time_stride + b * call->gradient_batch_stride;
        REAL *gradient = gradients == NULL ? NULL : gradients + place;
        REAL *unary_gradient = unary_gradients == NULL ? NULL : unary_gradients + place;
        if (k == call->s.counts[b] || positions[k] != t) {
            losses[t * c->batch] = 0;
            if (gradient != NULL)
                memset(gradient, 0, (size_t)n * sizeof(REAL));
            if (unary_gradient != NULL)
                memset(unary_gradient, 0, (size_t)n * sizeof(REAL));
            continue;
        }
        before = k == 0 ? -1 : y;
        y = tag_at(c, t, b);
        const int64_t after = ++k < call->s.counts[b] ? tag_at(c, positions[k], b) : -1;
        const REAL *emissions = (const REAL *)c->emissions + t * c->time_stride + b * c->batch_stride;
        const REAL *left = before < 0 ? c->start : transitions + before * n;
        const REAL *right = after < 0 ? c->end : (columns != NULL ? columns + after * n : NULL);
        int32_t is_masked = 0;
        if (right != NULL) {
#pragma omp simd reduction(| : is_masked)
            for (int32_t v = 0; v < n; v++) {
                s[v] = emissions[v] + left[v] + right[v];
                is_masked |= !IS_FINITE(s[v]);
            }
        } else
            for (int32_t v = 0; v < n; v++) {
                s[v] = emissions[v] + left[v] + transitions[(int64_t)v * n + after];
                is_masked |= !IS_FINITE(s[v]);
            }
        REAL loss = is_masked ? NAME(masked_row_loss)(a, &phi, s, n, (int32_t)y, local)
                              : NAME(row_loss)(a, &phi, s, n, (int32_t)y, local);
        if (gradient != NULL)
            memcpy(gradient, s, (size_t)n * sizeof(REAL));
        if (unary > 0)
            loss = local * loss
                   + unary * NAME(unary_loss)(a, &phi, emissions, s, n, (int32_t)y, unary, unary_gradient);
        losses[t * c->batch] = loss;
        not_finite |= !IS_FINITE(loss);
    }
    return not_finite == 0;
}

/* Multiplies the gradients of sequence b by the upstream gradients. */
VECTORIZED static void NAME(scale_gradients)(const local_call *call, int64_t b) {
    const chain *c = &call->c;
    for (int64_t t = 0; t < c->length; t++) {
        REAL *gradient = (REAL *)call->gradient + t * call->gradient_time_stride + b * call->gradient_batch_stride;
        const REAL factor = ((const REAL *)call->upstream)[t * call->upstream_time_stride + b * call->upstream_batch_stride];
#pragma omp simd
        for (int64_t v = 0; v < c->num_tags; v++)
            gradient[v] *= factor;
    }
}

/* Adds the gradients of the second loss of sequence b, multiplied by the upstream gradients. */
VECTORIZED static void NAME(add_unary_gradients)(const local_call *call, int64_t b) {
    const chain *c = &call->c;
    for (int64_t t = 0; t < c->length; t++) {
        const int64_t place = t * call->gradient_time_stride + b * call->gradient_batch_stride;
        REAL *gradient = (REAL *)call->gradient + place;
        const REAL *more = (const REAL *)call->unary_gradient + place;
        const REAL factor = ((const REAL *)call->upstream)[t * call->upstream_time_stride + b * call->upstream_batch_stride];
#pragma omp simd
        for (int64_t v = 0; v < c->num_tags; v++)
            gradient[v] += factor * more[v];
    }
}

/* Adds columns [first, last) of the gradients of all positions to those of start, end and the rows of the transitions, and to
   the rows of `columns`, the transposed gradient of the transitions to the next tag, if there is one. */
VECTORIZED static void NAME(add_columns)(const local_call *call, int64_t first, int64_t last) {
    const chain *c = &call->c;
    const int64_t n = c->num_tags;
    REAL *start = call->start_gradient, *end = call->end_gradient, *rows = call->transition_gradient, *columns = call->columns;
    for (int64_t b = 0; b < c->batch; b++) {
        const int32_t *positions = call->s.positions + b * c->length;
        for (int64_t k = 0; k < call->s.counts[b]; k++) {
            const REAL *gradient =
                (const REAL *)call->gradient + positions[k] * call->gradient_time_stride + b * call->gradient_batch_stride;
            REAL *left = k == 0 ? start : rows + tag_at(c, positions[k - 1], b) * n;
            REAL *right = k + 1 == call->s.counts[b] ? end
                          : columns == NULL          ? NULL
                                                     : columns + tag_at(c, positions[k + 1], b) * n;
#pragma omp simd
            for (int64_t v = first; v < last; v++)
                left[v] += gradient[v];
            if (right != NULL)
#pragma omp simd
                for (int64_t v = first; v < last; v++)
                    right[v] += gradient[v];
        }
    }
}

/* Adds rows [first, last) of the gradient of the transitions to the next tag. */
static void NAME(add_rows)(const local_call *call, int64_t first, int64_t last) {
    const chain *c = &call->c;
    const int64_t n = c->num_tags;
    REAL *rows = call->transition_gradient, *columns = call->columns;
    if (columns != NULL) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t v = first; v < last; v++)
                rows[v * n + i] += columns[i * n + v];
        return;
    }
    for (int64_t b = 0; b < c->batch; b++) {
        const int32_t *positions = call->s.positions + b * c->length;
        for (int64_t k = 0; k + 1 < call->s.counts[b]; k++) {
            const REAL *gradient =
                (const REAL *)call->gradient + positions[k] * call->gradient_time_stride + b * call->gradient_batch_stride;
            const int64_t after = tag_at(c, positions[k + 1], b);
            for (int64_t v = first; v < last; v++)
                rows[v * n + after] += gradient[v];
        }
    }
}

/* Transposes the transitions. */
static void NAME(transpose)(const chain *c, REAL *columns) {
    const int64_t n = c->num_tags;
    for (int64_t first = 0; first < n; first += 16)
        for (int64_t v = 0; v < n; v++)
            for (int64_t i = first; i < n && i < first + 16; i++)
                columns[v * n + i] = ((const REAL *)c->transitions)[i * n + v];
}
