/* Search for the best tag sequences of a batch of linear chains. */
#include "chain.h"

/* `NO_TAG` of kernels/_viterbi.py. */
#define NO_TAG (-100)

/* One call of lc_search; `_search.py` packs all but the fields from rows on. */
typedef struct {
    chain c;
    int64_t k;              /* number of sequences; 0 for Viterbi */
    int64_t *tags;          /* (L, B) or (k, L, B) */
    void *scores;           /* (B,) or (k, B) */
    void *rows, *columns;   /* transitions and their transpose, padded */
    sites s;
    int64_t status;
} search_call;

#include "as_float.h"
#include "search.h"
#include "as_double.h"
#include "search.h"

static void run_sequence(void *data, int64_t b) {
    search_call *call = data;
    const chain *c = &call->c;
    const int64_t n = c->num_tags, m = PADDED(n), k = call->k, real = c->is_double ? 8 : 4;
    const int64_t num_reals = k == 0 ? c->length * m : 2 * n * k + k + m;
    const int64_t num_sources = k == 0 ? 0 : (c->length * n + 1) * k;
    char *work = malloc((size_t)(num_reals * real + num_sources * (int64_t)sizeof(int32_t)));
    int is_computed = 0;
    if (work != NULL) {
        int32_t *sources = (int32_t *)(work + num_reals * real);
        const int32_t *positions = call->s.positions + b * c->length;
        const int64_t count = call->s.counts[b];
        for (int64_t row = 0; row < c->length * (k == 0 ? 1 : k); row++)
            call->tags[row * c->batch + b] = NO_TAG;
        is_computed = k == 0 && c->is_double ? viterbi_f64(call, b, positions, count, (double *)work)
                      : k == 0               ? viterbi_f32(call, b, positions, count, (float *)work)
                      : c->is_double         ? kbest_f64(call, b, positions, count, (double *)work, sources)
                                             : kbest_f32(call, b, positions, count, (float *)work, sources);
    }
    if (!is_computed)
        __atomic_store_n(&call->status, NOT_COMPUTED, __ATOMIC_RELAXED);
    free(work);
}

/* Returns NOT_COMPUTED if a score or a sum of scores is +inf or NaN. */
EXPORT int64_t lc_search(const search_call *arguments) {
    search_call call = *arguments;
    const chain *c = &call.c;
    const int64_t square = c->num_tags * PADDED(c->num_tags);
    call.rows = malloc(2 * (size_t)square * (c->is_double ? 8 : 4));
    call.s = find_sites(c);
    if (call.rows == NULL || call.s.counts == NULL) {
        free(call.rows);
        free(call.s.counts);
        return NOT_COMPUTED;
    }
    call.columns = (char *)call.rows + square * (c->is_double ? 8 : 4);
    const int is_valid = c->is_double ? copy_transitions_f64(c, call.rows, call.columns)
                                      : copy_transitions_f32(c, call.rows, call.columns);
    call.status = is_valid ? COMPUTED : NOT_COMPUTED;
    if (is_valid)
        run_chunks(run_sequence, &call, c->batch,
                   threads_for(c, c->batch * c->length * c->num_tags * (c->num_tags + 8 * call.k)));
    free(call.rows);
    free(call.s.counts);
    return call.status;
}
