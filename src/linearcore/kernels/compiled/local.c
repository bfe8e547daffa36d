/* Losses of the positions of linear chains, each over all changes of its tag: forward and gradients without local scores. */
#include "chain.h"

enum { LOGODDS, PAIRWISE, CENTERED };

/* What rows.h reads of a loss; `_dense.py` packs it. */
typedef struct {
    surrogate phi;
    int64_t form, is_mean_over_competitors;
    double radius, scale;
} arguments;

/* One call of lc_local or lc_local_gradient; `_local.py` packs all but columns, sites and status. */
typedef struct {
    surrogate phi;
    int64_t form, is_mean_over_competitors;
    double radius, scale;
    chain c;
    double unary;            /* w, the weight of a second loss, of the emissions alone */
    void *losses;            /* (L, B) */
    void *gradient;          /* (L, B, |Y|), rows contiguous, or NULL */
    void *unary_gradient;    /* likewise, of the second loss; NULL without one */
    int64_t gradient_time_stride, gradient_batch_stride;
    const void *upstream;    /* (L, B) gradients of the losses */
    int64_t upstream_time_stride, upstream_batch_stride;
    void *start_gradient, *transition_gradient, *end_gradient;
    void *columns;           /* transposed transitions, or their gradient; NULL for more tags than positions */
    sites s;
    int64_t status;
} local_call;

#define MIN_NORM 1e-3
#include "as_float.h"
#include "surrogate.h"
#include "rows.h"
#include "local.h"
#include "as_double.h"
#include "surrogate.h"
#include "rows.h"
#include "local.h"

static void run_losses(void *data, int64_t b) {
    local_call *call = data;
    arguments a = {.phi = call->phi, .form = call->form, .is_mean_over_competitors = call->is_mean_over_competitors};
    void *s = malloc(2 * PADDED((size_t)call->c.num_tags) * sizeof(double));
    const int is_computed = s == NULL           ? 0
                            : call->c.is_double ? local_losses_f64(call, &a, b, s)
                                                : local_losses_f32(call, &a, b, s);
    if (!is_computed)
        __atomic_store_n(&call->status, NOT_COMPUTED, __ATOMIC_RELAXED);
    free(s);
}

static void run_scaling(void *data, int64_t b) {
    local_call *call = data;
    if (call->c.is_double)
        scale_gradients_f64(call, b);
    else
        scale_gradients_f32(call, b);
}

static void run_addition(void *data, int64_t b) {
    local_call *call = data;
    if (call->c.is_double)
        add_unary_gradients_f64(call, b);
    else
        add_unary_gradients_f32(call, b);
}

#define COLUMN_BLOCK 256
#define ROW_BLOCK 16

static void run_columns(void *data, int64_t block) {
    local_call *call = data;
    const int64_t first = block * COLUMN_BLOCK, n = call->c.num_tags;
    const int64_t last = first + COLUMN_BLOCK < n ? first + COLUMN_BLOCK : n;
    if (call->c.is_double)
        add_columns_f64(call, first, last);
    else
        add_columns_f32(call, first, last);
}

static void run_rows(void *data, int64_t block) {
    local_call *call = data;
    const int64_t first = block * ROW_BLOCK, n = call->c.num_tags, last = first + ROW_BLOCK < n ? first + ROW_BLOCK : n;
    if (call->c.is_double)
        add_rows_f64(call, first, last);
    else
        add_rows_f32(call, first, last);
}

/* Finds the sites, and allocates a transposed matrix if there are as many positions as tags. Returns 0 without memory. */
static int prepare(local_call *call) {
    const chain *c = &call->c;
    const int is_transposed = c->num_tags <= c->length * c->batch;
    call->status = COMPUTED;
    call->s = find_sites(c);
    call->columns = is_transposed ? calloc((size_t)(c->num_tags * c->num_tags), c->is_double ? 8 : 4) : NULL;
    return call->s.counts != NULL && (call->columns != NULL || !is_transposed);
}

static int64_t finish(local_call *call, int64_t status) {
    free(call->s.counts);
    free(call->columns);
    return status;
}

/* Returns NOT_COMPUTED if a tag is out of range or forbidden, or a loss is infinite or NaN. */
EXPORT int64_t lc_local(const local_call *given) {
    local_call call = *given;
    const chain *c = &call.c;
    if (!tags_are_valid(c))
        return NOT_COMPUTED;
    if (!prepare(&call))
        return finish(&call, NOT_COMPUTED);
    if (call.columns != NULL && c->is_double)
        transpose_f64(c, call.columns);
    else if (call.columns != NULL)
        transpose_f32(c, call.columns);
    const int64_t work = call.unary > 0 ? 32 : 16;
    run_chunks(run_losses, &call, c->batch, threads_for(c, work * c->batch * c->length * c->num_tags));
    return finish(&call, call.status);
}

/* Multiplies the gradient rows of lc_local by the upstream gradients, in place, and adds them to the gradients of start,
   transitions and end, which are zero on entry. Then adds those of the second loss, which only the emissions have. */
EXPORT int64_t lc_local_gradient(const local_call *given) {
    local_call call = *given;
    const chain *c = &call.c;
    if (!prepare(&call))
        return finish(&call, NOT_COMPUTED);
    const int threads = threads_for(c, 4 * c->batch * c->length * c->num_tags);
    run_chunks(run_scaling, &call, c->batch, threads);
    if (call.transition_gradient != NULL) {
        run_chunks(run_columns, &call, (c->num_tags + COLUMN_BLOCK - 1) / COLUMN_BLOCK, threads);
        run_chunks(run_rows, &call, (c->num_tags + ROW_BLOCK - 1) / ROW_BLOCK, threads);
    }
    if (call.unary_gradient != NULL)
        run_chunks(run_addition, &call, c->batch, threads);
    return finish(&call, COMPUTED);
}
