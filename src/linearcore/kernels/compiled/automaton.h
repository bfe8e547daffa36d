/* Recursions over the states of an acyclic automaton, for REAL in {float, double}. Included once for each.

   LANES rows of the batch lie side by side: each arc and each state has a vector of LANES numbers. Arcs are in the order of their
   targets, so those into a state follow each other. */

/* As in memory of any alignment. */
typedef REAL NAME(lanes) __attribute__((vector_size(LANES * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));
typedef INTEGER NAME(flags) __attribute__((vector_size(LANES * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));

/* flag ? x : y in each lane. */
#define SELECT(flag, x, y) ((NAME(lanes))(((flag) & (NAME(flags))(x)) | (~(flag) & (NAME(flags))(y))))

INLINE NAME(lanes) NAME(every)(REAL x) { return x - (NAME(lanes)){0}; }

INLINE NAME(lanes) NAME(larger)(NAME(lanes) x, NAME(lanes) y) { return SELECT(x > y, x, y); }

/* e^x for x ≤ 0; 0 if it underflows, in particular for −inf. */
INLINE NAME(lanes) NAME(exp_lanes)(NAME(lanes) x) {
    const NAME(lanes) shifted = x * (REAL)1.4426950408889634 + ROUNDING; /* rounds to an integer, in the lowest bits */
    const NAME(lanes) n = shifted - ROUNDING, r = (x - n * LN2_HIGH) - n * LN2_LOW;
    NAME(lanes) p = NAME(every)(POLYNOMIAL[0]);
    for (size_t i = 1; i < sizeof POLYNOMIAL / sizeof POLYNOMIAL[0]; i++)
        p = p * r + POLYNOMIAL[i];
    p = p * (r * r) + (r + 1);
    const NAME(flags) power = ((NAME(flags))shifted << (INTEGER)(MANTISSA_BITS)) + ONE_BITS;
    return SELECT(x > LOG_TINY, p * (NAME(lanes))power, NAME(every)(0));
}

/* Whether arcs in a block have consecutive numbers below A. */
INLINE int NAME(is_run)(const automaton_call *call, int64_t i) {
    int32_t difference = 0;
    if (i + LANES > call->num_slots)
        return 0;
    for (int j = 0; j < LANES; j++)
        difference |= call->arc[i + j] - call->arc[i] - j;
    return difference == 0 && call->arc[i] + LANES <= call->num_arcs;
}

/* Transposes a square block by repeated interleaving of its halves. */
INLINE void NAME(transpose)(NAME(lanes) *block) {
    for (int step = 1; step < LANES; step *= 2) {
        NAME(lanes) next[LANES];
        for (int i = 0; i < LANES / 2; i++) {
            next[2 * i] = INTERLEAVE_LOW(block[i], block[i + LANES / 2]);
            next[2 * i + 1] = INTERLEAVE_HIGH(block[i], block[i + LANES / 2]);
        }
        memcpy(block, next, sizeof next);
    }
}

/* The scores of a row; lanes after the end of the batch repeat the last row, and are not written. */
INLINE const REAL *NAME(row_of)(const automaton_call *call, int64_t row) {
    return (const REAL *)call->scores + (row < call->batch ? row : call->batch - 1) * call->stride;
}

/* Copies the scores of the arcs to (slots, LANES); 0 for the arcs to the end. Returns 0 if one is +inf or NaN. */
VECTORIZED static int NAME(load)(const automaton_call *call, int64_t first_row, REAL *restrict slots) {
    const REAL *rows[LANES];
    int is_bad = 0;
    for (int l = 0; l < LANES; l++) {
        const REAL *row = rows[l] = NAME(row_of)(call, first_row + l);
#pragma omp simd reduction(| : is_bad)
        for (int64_t a = 0; a < call->num_arcs; a++)
            is_bad |= !(row[a] < INFINITY);
    }
    for (int64_t i = 0; i < call->num_slots; i++) {
        const int32_t arc = call->arc[i];
        if (NAME(is_run)(call, i)) {
            NAME(lanes) *block = (NAME(lanes) *)slots + i;
            for (int l = 0; l < LANES; l++)
                block[l] = *(const NAME(lanes) *)(rows[l] + arc);
            NAME(transpose)(block);
            i += LANES - 1;
        } else
            for (int l = 0; l < LANES; l++)
                slots[i * LANES + l] = arc < call->num_arcs ? rows[l][arc] : 0;
    }
    return !is_bad;
}

/* Returns the largest score of the paths to the state whose arcs are first to last. Four arcs at a time: a maximum waits for the
   one before it. */
INLINE NAME(lanes) NAME(maximum)(const NAME(lanes) *slots, const NAME(lanes) *values, const int32_t *source, int32_t first,
                                 int32_t last) {
    NAME(lanes) top = NAME(every)(-INFINITY);
    int32_t i = first;
    for (; i + 4 <= last; i += 4) {
        const NAME(lanes) x0 = slots[i] + values[source[i]], x1 = slots[i + 1] + values[source[i + 1]];
        const NAME(lanes) x2 = slots[i + 2] + values[source[i + 2]], x3 = slots[i + 3] + values[source[i + 3]];
        top = NAME(larger)(NAME(larger)(NAME(larger)(x0, x1), NAME(larger)(x2, x3)), top);
    }
    for (; i < last; i++)
        top = NAME(larger)(slots[i] + values[source[i]], top);
    return top;
}

INLINE int NAME(are_below_infinity)(NAME(lanes) x) {
    int is_good = 1;
    for (int l = 0; l < LANES; l++)
        is_good &= x[l] < INFINITY;
    return is_good;
}

/* Writes the logsumexp of the paths from the start to each state. Replaces the scores by P(arc | its target) divided by the
   `inverse` of the target; it is 0 if no path is allowed. Returns 0 if a sum of scores is +inf. */
VECTORIZED static int NAME(sums)(const automaton_call *call, NAME(lanes) *slots, NAME(lanes) *values, NAME(lanes) *inverse) {
    const int32_t *source = call->source;
    int is_good = 1;
    values[0] = NAME(every)(0);
    for (int64_t t = 1; t < call->num_states; t++) {
        const int32_t first = call->first[t], last = call->first[t + 1];
        /* If all are −inf, the exponentials are 0. */
        const NAME(lanes) peak = NAME(larger)(NAME(maximum)(slots, values, source, first, last), NAME(every)(-LARGEST));
        NAME(lanes) total = NAME(every)(0), value;
        for (int32_t i = first; i < last; i++) {
            slots[i] = NAME(exp_lanes)(slots[i] + values[source[i]] - peak);
            total += slots[i];
        }
        for (int l = 0; l < LANES; l++)
            value[l] = total[l] > 0 ? peak[l] + LOG_ABOVE_ONE(total[l]) : -INFINITY;
        values[t] = value;
        is_good &= NAME(are_below_infinity)(peak);
        inverse[t] = 1 / NAME(larger)(total, NAME(every)(1)); /* The sum is at least 1, or 0. */
    }
    return is_good;
}

/* Replaces what `sums` left by the probability that a path contains the arc. `reached` is that of the states. */
VECTORIZED static void NAME(probabilities)(const automaton_call *call, NAME(lanes) *slots, const NAME(lanes) *inverse,
                                           NAME(lanes) *reached) {
    const int64_t end = call->num_states - 1;
    memset(reached, 0, (size_t)end * sizeof *reached);
    reached[end] = NAME(every)(1);
    for (int64_t t = end; t > 0; t--) {
        const NAME(lanes) factor = reached[t] * inverse[t];
        for (int32_t i = call->first[t]; i < call->first[t + 1]; i++) {
            slots[i] *= factor;
            reached[call->source[i]] += slots[i];
        }
    }
}

/* Writes the rows of the gradient. */
VECTORIZED static void NAME(store)(const automaton_call *call, int64_t first_row, const REAL *restrict slots) {
    const int64_t size = call->num_arcs, count = call->batch - first_row < LANES ? call->batch - first_row : LANES;
    REAL *out = (REAL *)call->gradient + first_row * size;
    for (int64_t i = 0; i < call->num_slots; i++) {
        const int32_t arc = call->arc[i];
        if (NAME(is_run)(call, i)) {
            NAME(lanes) block[LANES];
            memcpy(block, slots + i * LANES, sizeof block);
            NAME(transpose)(block);
            for (int l = 0; l < count; l++)
                *(NAME(lanes) *)(out + l * size + arc) = block[l];
            i += LANES - 1;
        } else
            for (int l = 0; l < count && arc < size; l++)
                out[l * size + arc] = slots[i * LANES + l];
    }
}

/* Writes the largest score of the paths from the start to each state. Returns 0 if a sum of scores is +inf. */
VECTORIZED static int NAME(largest)(const automaton_call *call, const NAME(lanes) *slots, NAME(lanes) *values) {
    int is_good = 1;
    values[0] = NAME(every)(0);
    for (int64_t t = 1; t < call->num_states; t++) {
        values[t] = NAME(maximum)(slots, values, call->source, call->first[t], call->first[t + 1]);
        is_good &= NAME(are_below_infinity)(values[t]);
    }
    return is_good;
}

/* Writes the arcs of the best path of a row, −100 after its end. Additions are those of `largest`, so the first arc that has
   the maximum is found by equality; ties go to it, as in the reference. */
static void NAME(trace_back)(const automaton_call *call, int64_t row, const REAL *values, int lane) {
    const REAL *scores = NAME(row_of)(call, row);
    int64_t *out = call->path + row * call->max_length, length = 0, state = call->num_states - 1;
    for (int64_t j = 0; j < call->max_length; j++)
        out[j] = NO_ARC;
    if (!(values[state * LANES + lane] > -INFINITY))
        return;
    while (state > 0) {
        const REAL top = values[state * LANES + lane];
        int32_t i = call->first[state];
        for (; i < call->first[state + 1] - 1; i++) {
            const REAL score = call->arc[i] < call->num_arcs ? scores[call->arc[i]] : 0;
            if (score + values[(int64_t)call->source[i] * LANES + lane] == top)
                break;
        }
        if (call->arc[i] < call->num_arcs) /* Not an arc to the end. */
            out[length++] = call->arc[i];
        state = call->source[i];
    }
    for (int64_t j = 0; j < length / 2; j++) {
        const int64_t other = out[j];
        out[j] = out[length - 1 - j];
        out[length - 1 - j] = other;
    }
}

/* A tile: LANES rows. Returns 0 if a score or a sum of scores is +inf or NaN, or there is no memory. */
static int NAME(tile)(const automaton_call *call, int64_t tile) {
    const int64_t first_row = tile * LANES;
    void *memory = malloc((size_t)(call->num_slots + 3 * call->num_states) * sizeof(NAME(lanes)) + 64);
    if (memory == NULL)
        return 0;
    REAL *numbers = (REAL *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
    NAME(lanes) *slots = (NAME(lanes) *)numbers, *values = slots + call->num_slots, *inverse = values + call->num_states,
                *reached = inverse + call->num_states;
    const REAL *last = (const REAL *)(inverse - 1);
    int is_computed = NAME(load)(call, first_row, numbers);
    if (is_computed)
        is_computed = call->path != NULL ? NAME(largest)(call, slots, values) : NAME(sums)(call, slots, values, inverse);
    for (int l = 0; is_computed && l < LANES && first_row + l < call->batch; l++) {
        ((REAL *)call->values)[first_row + l] = last[l];
        if (call->path != NULL)
            NAME(trace_back)(call, first_row + l, (const REAL *)values, l);
    }
    if (is_computed && call->gradient != NULL) {
        NAME(probabilities)(call, slots, inverse, reached);
        NAME(store)(call, first_row, numbers);
    }
    free(memory);
    return is_computed;
}
#undef SELECT
