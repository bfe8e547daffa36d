/* Linear-chain CRF: log Z or the negative log-likelihood of all sequences of a batch, and the gradient. */
#include <float.h>

#include "chain.h"

/* `MAX_TAGS` of `_crf.py`, padded: the largest number of tags. */
#define MAX_PADDED_TAGS 256

/* One call of lc_crf or lc_crf_gradient; `_crf.py` packs all but the last two. */
typedef struct {
    chain c;
    void *work;             /* for the parts in crf.h; lc_crf fills it, lc_crf_gradient reads it */
    void *values;           /* (B,) */
    const void *upstream;   /* (B,) gradients of the values */
    void *emission_gradient;
    void *start_gradient, *transition_gradient, *end_gradient;
    int64_t gradient_time_stride, gradient_batch_stride;
    sites s;
    int64_t status;
} crf_call;

#include "as_float.h"
#define LOG_TINY -87.3f
#define TINY FLT_MIN
#define EPSILON FLT_EPSILON
#include "crf.h"
#undef LOG_TINY
#undef TINY
#undef EPSILON
#include "as_double.h"
#define LOG_TINY -708.3
#define TINY DBL_MIN
#define EPSILON DBL_EPSILON
#include "crf.h"

static void run_sequence(void *data, int64_t b) {
    crf_call *call = data;
    const chain *c = &call->c;
    const int32_t *positions = call->s.positions + b * c->length;
    const int64_t count = call->s.counts[b];
    const double value = count == 0     ? 0
                         : c->is_double ? sequence_f64(c, parts_of_f64(c, call->work), b, positions, count)
                                        : sequence_f32(c, parts_of_f32(c, call->work), b, positions, count);
    if (c->is_double)
        ((double *)call->values)[b] = value;
    else
        ((float *)call->values)[b] = (float)value;
    if (!isfinite(value))
        __atomic_store_n(&call->status, NOT_COMPUTED, __ATOMIC_RELAXED);
}

static void run_emission_gradient(void *data, int64_t b) {
    crf_call *call = data;
    if (call->c.is_double)
        emission_gradient_f64(call, parts_of_f64(&call->c, call->work), b);
    else
        emission_gradient_f32(call, parts_of_f32(&call->c, call->work), b);
}

static void run_transition_rows(void *data, int64_t block) {
    crf_call *call = data;
    if (call->c.is_double)
        transition_rows_f64(call, parts_of_f64(&call->c, call->work), 4 * (int32_t)block);
    else
        transition_rows_f32(call, parts_of_f32(&call->c, call->work), 4 * (int32_t)block);
}

/* Computes the values, and fills the work space for lc_crf_gradient. Returns NOT_COMPUTED if a value cannot be computed in
   this way: underflow, no allowed sequence, infinite or NaN scores, tags out of range. */
EXPORT int64_t lc_crf(const crf_call *arguments) {
    crf_call call = *arguments;
    const chain *c = &call.c;
    if ((c->tags != NULL && !tags_are_valid(c)) || (call.s = find_sites(c)).counts == NULL)
        return NOT_COMPUTED;
    call.status = COMPUTED;
    if (c->is_double)
        prepare_f64(c, parts_of_f64(c, call.work));
    else
        prepare_f32(c, parts_of_f32(c, call.work));
    run_chunks(run_sequence, &call, c->batch, threads_for(c, c->batch * c->length * c->num_tags * c->num_tags));
    free(call.s.counts);
    return call.status;
}

/* Computes the gradients from the work space of lc_crf. Those of start and end are zero on entry; the others may be NULL. */
EXPORT int64_t lc_crf_gradient(const crf_call *arguments) {
    crf_call call = *arguments;
    const chain *c = &call.c;
    if ((call.s = find_sites(c)).counts == NULL)
        return NOT_COMPUTED;
    const int threads = threads_for(c, c->batch * c->length * c->num_tags * c->num_tags);
    if (call.transition_gradient != NULL)
        run_chunks(run_transition_rows, &call, (c->num_tags + 3) / 4, threads);
    if (call.emission_gradient != NULL)
        run_chunks(run_emission_gradient, &call, c->batch, threads);
    if (c->is_double)
        edge_gradients_f64(&call, parts_of_f64(c, call.work));
    else
        edge_gradients_f32(&call, parts_of_f32(c, call.work));
    free(call.s.counts);
    return COMPUTED;
}
