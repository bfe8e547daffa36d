/* Forward–backward of a linear-chain CRF, rescaled, for REAL in {float, double}. Included once for each.

       a_k = (a_{k−1} E) ⊙ x_k / z_k                 b_{k−1} = (E (x_k ⊙ b_k)) / z'_k

   k counts the unmasked positions of a sequence. E = exp(transitions − column maxima), x_k = exp(emissions + column maxima)
   divided by its maximum; the start scores are in x_0. z and z' are such that the largest entry of each a and b is 1. With
   n_k = a_k · b_k the marginals are P(y_k = v) = a_k(v) b_k(v) / n_k, and those of transitions
   P(y_{k−1} = i, y_k = v) = a_{k−1}(i) E(i, v) w_k(v) with the weights w_k = x_k ⊙ b_k / (z_k n_k). */

/* e^x for x ≤ 0; 0 if it underflows, in particular for −inf. */
INLINE REAL NAME(exp_or_zero)(REAL x) { return x > LOG_TINY ? EXP_NEGATIVE(x) : 0; }

/* Parts of the work space, rows padded to m numbers. */
typedef struct {
    REAL *forward, *backward; /* E and its transpose (|Y|, m) */
    REAL *column_max, *zeros; /* (m) */
    REAL *a, *marginals;      /* (B, L, m) */
    REAL *weights;            /* (B, L, m): x, then w */
    REAL *z;                  /* (B, L) */
} NAME(parts);

INLINE NAME(parts) NAME(parts_of)(const chain *c, REAL *work) {
    const int64_t m = PADDED(c->num_tags), square = c->num_tags * m, states = c->batch * c->length * m;
    REAL *const rows = work + 2 * square + 2 * m;
    const NAME(parts) p = {work, work + square, rows - 2 * m, rows - m, rows, rows + states, rows + 2 * states,
                           rows + 3 * states};
    return p;
}

/* Fills E, its transpose and the column maxima. If a transition is +inf or NaN, a maximum is NaN, so that `factors` is NaN. */
VECTORIZED static void NAME(prepare)(const chain *c, NAME(parts) p) {
    const int32_t n = (int32_t)c->num_tags, m = PADDED(n);
    const REAL *transitions = c->transitions;
    int is_bad = 0;
    for (int32_t v = 0; v < m; v++)
        p.column_max[v] = -INFINITY;
    for (int32_t i = 0; i < n; i++)
#pragma omp simd reduction(| : is_bad)
        for (int32_t v = 0; v < n; v++) {
            const REAL x = transitions[i * n + v];
            p.column_max[v] = x > p.column_max[v] ? x : p.column_max[v];
            is_bad |= !(x < INFINITY);
        }
    for (int32_t v = 0; v < m; v++) {
        p.column_max[v] = p.column_max[v] == -INFINITY ? 0 : p.column_max[v];
        p.zeros[v] = 0;
    }
    if (is_bad)
        p.column_max[0] = NAN;
    memset(p.backward, 0, (size_t)n * (size_t)m * sizeof(REAL));
    for (int32_t i = 0; i < n; i++) {
#pragma omp simd
        for (int32_t v = 0; v < n; v++)
            p.forward[i * m + v] = NAME(exp_or_zero)(transitions[i * n + v] - p.column_max[v]);
        for (int32_t v = n; v < m; v++)
            p.forward[i * m + v] = 0;
        for (int32_t v = 0; v < n; v++)
            p.backward[v * m + i] = p.forward[i * m + v];
    }
}

/* Writes Σ_i factors_i · matrix_i, for the rows of a matrix (n, m). */
INLINE void NAME(product)(const REAL *factors, const REAL *matrix, REAL *restrict out, int32_t n, int32_t m) {
    int32_t i = 0;
    memset(out, 0, (size_t)m * sizeof(REAL));
    for (; i + 4 <= n; i += 4) {
        const REAL f0 = factors[i], f1 = factors[i + 1], f2 = factors[i + 2], f3 = factors[i + 3];
        const REAL *r0 = matrix + (int64_t)i * m, *r1 = r0 + m, *r2 = r1 + m, *r3 = r2 + m;
#pragma omp simd
        for (int32_t v = 0; v < m; v++)
            out[v] += (f0 * r0[v] + f1 * r1[v]) + (f2 * r2[v] + f3 * r3[v]);
    }
    for (; i < n; i++) {
        const REAL f = factors[i], *row = matrix + (int64_t)i * m;
#pragma omp simd
        for (int32_t v = 0; v < m; v++)
            out[v] += f * row[v];
    }
}

INLINE REAL NAME(largest)(const REAL *x, int32_t m) {
    REAL top = x[0];
#pragma omp simd reduction(max : top)
    for (int32_t v = 0; v < m; v++)
        top = x[v] > top ? x[v] : top;
    return top;
}

INLINE REAL NAME(dot)(const REAL *x, const REAL *y, int32_t m) {
    REAL sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t v = 0; v < m; v++)
        sum += x[v] * y[v];
    return sum;
}

/* Writes exp(emissions + offsets) divided by its maximum, and 0 in the padding; returns the logarithm of the maximum,
   NaN if a sum is +inf or NaN. */
INLINE REAL NAME(factors)(const REAL *emissions, const REAL *offsets, REAL *x, int32_t n, int32_t m) {
    REAL top = -INFINITY;
    int is_bad = 0;
#pragma omp simd reduction(max : top) reduction(| : is_bad)
    for (int32_t v = 0; v < n; v++) {
        x[v] = emissions[v] + offsets[v];
        top = x[v] > top ? x[v] : top;
        is_bad |= !(x[v] < INFINITY);
    }
#pragma omp simd
    for (int32_t v = 0; v < n; v++)
        x[v] = NAME(exp_or_zero)(x[v] - top);
    for (int32_t v = n; v < m; v++)
        x[v] = 0;
    return is_bad ? NAN : top;
}

/* The score of the true tags of a sequence. */
INLINE double NAME(true_score)(const chain *c, int64_t b, const int32_t *positions, int64_t count) {
    const REAL *emissions = c->emissions, *transitions = c->transitions;
    int64_t before = tag_at(c, positions[0], b);
    double score = ((const REAL *)c->start)[before];
    for (int64_t k = 0; k < count; k++) {
        const int64_t tag = tag_at(c, positions[k], b);
        score += emissions[positions[k] * c->time_stride + b * c->batch_stride + tag];
        score += k > 0 ? transitions[before * c->num_tags + tag] : 0;
        before = tag;
    }
    return score + ((const REAL *)c->end)[before];
}

/* Sequence b: fills its rows of a, marginals and weights. Returns log Z, minus the score of the true tags if there are tags;
   NaN if underflow could change the result by more than rounding (see `_underflow_is_negligible` in kernels/_partition.py), or
   a score is NaN or +inf. */
VECTORIZED static double NAME(sequence)(const chain *c, NAME(parts) p, int64_t b, const int32_t *positions, int64_t count) {
    const int32_t n = (int32_t)c->num_tags, m = PADDED(n);
    const REAL *emissions = (const REAL *)c->emissions + b * c->batch_stride, *end = c->end;
    REAL *a = p.a + b * c->length * m, *marginals = p.marginals + b * c->length * m, *x = p.weights + b * c->length * m;
    const REAL threshold = (REAL)(2.0 * (double)(count + 1) * (n + 1) * (4.0 * n + 5)) * 2 * (TINY / EPSILON);
    double scale = 0;
    REAL *z = p.z + b * c->length;
    int is_unsafe = 0;
    for (int64_t k = 0; k < count; k++, a += m, x += m) {
        scale += NAME(factors)(emissions + positions[k] * c->time_stride, k > 0 ? p.column_max : c->start, x, n, m);
        if (k == 0) {
            memcpy(a, x, (size_t)m * sizeof(REAL));
            z[k] = 1;
            continue;
        }
        NAME(product)(a - m, p.forward, a, n, m);
#pragma omp simd
        for (int32_t v = 0; v < m; v++)
            a[v] *= x[v];
        z[k] = NAME(largest)(a, m);
        const REAL inverse = 1 / z[k];
#pragma omp simd
        for (int32_t v = 0; v < m; v++)
            a[v] *= inverse;
        scale += log((double)z[k]);
    }
    REAL *b_k = marginals + (count - 1) * m, norm, step = 1;
    scale += NAME(factors)(end, p.zeros, b_k, n, m);
    for (int64_t k = count - 1; k >= 0; k--) {
        a -= m, x -= m, b_k = marginals + k * m;
        norm = NAME(dot)(a, b_k, m);
        if (k == count - 1)
            scale += log((double)norm);
        is_unsafe |= !(norm * z[k] >= threshold) | !(norm * step >= threshold);
        const REAL inverse = 1 / norm, factor = inverse / z[k];
#pragma omp simd
        for (int32_t v = 0; v < m; v++) {
            x[v] *= b_k[v];
            b_k[v] *= a[v] * inverse;
        }
        if (k == 0)
            break;
        NAME(product)(x, p.backward, b_k - m, n, m);
        step = NAME(largest)(b_k - m, m);
        const REAL inverse_step = 1 / step;
#pragma omp simd
        for (int32_t v = 0; v < m; v++) {
            x[v] *= factor;
            b_k[v - m] *= inverse_step;
        }
    }
    const double value = c->tags == NULL ? scale : scale - NAME(true_score)(c, b, positions, count);
    return is_unsafe == 0 && isfinite(value) ? value : NAN;
}

/* grad_b · marginals at the emissions of sequence b, minus grad_b at the true tags; 0 where masked. */
VECTORIZED static void NAME(emission_gradient)(const crf_call *call, NAME(parts) p, int64_t b) {
    const chain *c = &call->c;
    const int32_t n = (int32_t)c->num_tags, m = PADDED(n);
    const REAL grad = ((const REAL *)call->upstream)[b], *marginals = p.marginals + b * c->length * m;
    const int32_t *positions = call->s.positions + b * c->length;
    int64_t k = 0;
    for (int64_t t = 0; t < c->length; t++) {
        REAL *out = (REAL *)call->emission_gradient + t * call->gradient_time_stride + b * call->gradient_batch_stride;
        if (k < call->s.counts[b] && positions[k] == t) {
#pragma omp simd
            for (int32_t v = 0; v < n; v++)
                out[v] = grad * marginals[k * m + v];
            if (c->tags != NULL)
                out[tag_at(c, t, b)] -= grad;
            k++;
        } else
            memset(out, 0, (size_t)n * sizeof(REAL));
    }
}

/* Rows [first, first + 4) of Σ grad_b · P(y_{k−1} = i, y_k = v) over positions and sequences, without the true tags.
   Four rows and four positions at a time, so that most operands are in registers. */
VECTORIZED static void NAME(transition_rows)(const crf_call *call, NAME(parts) p, int32_t first) {
    const chain *c = &call->c;
    const int32_t n = (int32_t)c->num_tags, m = PADDED(n), rows = n - first < 4 ? n - first : 4;
    REAL sums[4 * MAX_PADDED_TAGS];
    REAL *s0 = sums, *s1 = sums + m, *s2 = s1 + m, *s3 = s2 + m;
    memset(sums, 0, 4 * (size_t)m * sizeof(REAL));
    for (int64_t b = 0; b < c->batch; b++) {
        const REAL grad = ((const REAL *)call->upstream)[b];
        const REAL *a = p.a + b * c->length * m + first, *w = p.weights + b * c->length * m + m;
        int64_t k = 0;
        for (; k + 4 < call->s.counts[b]; k += 4, a += 4 * m, w += 4 * m) {
            REAL f[4][4];
            for (int j = 0; j < 4; j++)
                for (int i = 0; i < 4; i++)
                    f[j][i] = grad * a[j * m + i];
#pragma omp simd
            for (int32_t v = 0; v < m; v++) {
                const REAL w0 = w[v], w1 = w[m + v], w2 = w[2 * m + v], w3 = w[3 * m + v];
                s0[v] += (f[0][0] * w0 + f[1][0] * w1) + (f[2][0] * w2 + f[3][0] * w3);
                s1[v] += (f[0][1] * w0 + f[1][1] * w1) + (f[2][1] * w2 + f[3][1] * w3);
                s2[v] += (f[0][2] * w0 + f[1][2] * w1) + (f[2][2] * w2 + f[3][2] * w3);
                s3[v] += (f[0][3] * w0 + f[1][3] * w1) + (f[2][3] * w2 + f[3][3] * w3);
            }
        }
        for (; k + 1 < call->s.counts[b]; k++, a += m, w += m) {
            const REAL f0 = grad * a[0], f1 = grad * a[1], f2 = grad * a[2], f3 = grad * a[3];
#pragma omp simd
            for (int32_t v = 0; v < m; v++) {
                s0[v] += f0 * w[v];
                s1[v] += f1 * w[v];
                s2[v] += f2 * w[v];
                s3[v] += f3 * w[v];
            }
        }
    }
    for (int32_t i = 0; i < rows; i++) {
        const REAL *e = p.forward + (int64_t)(first + i) * m, *s = sums + (int64_t)i * m;
        REAL *out = (REAL *)call->transition_gradient + (int64_t)(first + i) * n;
#pragma omp simd
        for (int32_t v = 0; v < n; v++)
            out[v] = s[v] * e[v];
    }
}

/* Gradients of start and end, and the true tags in that of the transitions. */
VECTORIZED static void NAME(edge_gradients)(const crf_call *call, NAME(parts) p) {
    const chain *c = &call->c;
    const int32_t n = (int32_t)c->num_tags, m = PADDED(n);
    REAL *start = call->start_gradient, *end = call->end_gradient, *transitions = call->transition_gradient;
    for (int64_t b = 0; b < c->batch; b++) {
        const REAL grad = ((const REAL *)call->upstream)[b], *marginals = p.marginals + b * c->length * m;
        const int32_t *positions = call->s.positions + b * c->length;
        const int64_t count = call->s.counts[b];
        if (count == 0)
            continue;
        const REAL *last = marginals + (count - 1) * m;
#pragma omp simd
        for (int32_t v = 0; v < n; v++) {
            start[v] += grad * marginals[v];
            end[v] += grad * last[v];
        }
        if (c->tags == NULL)
            continue;
        start[tag_at(c, positions[0], b)] -= grad;
        end[tag_at(c, positions[count - 1], b)] -= grad;
        for (int64_t k = 1; k < count && transitions != NULL; k++)
            transitions[tag_at(c, positions[k - 1], b) * n + tag_at(c, positions[k], b)] -= grad;
    }
}
