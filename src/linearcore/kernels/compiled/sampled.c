/* Losses of rows with sampled candidate classes: look-ups, losses and gradients; the products between them are torch's. */
#include "common.h"

enum { LOGODDS, PAIRWISE };
enum { OK, NOT_COMPUTED };

/* One call of any function below; `_sampled.py` packs it. `kernels/_sampled.py` explains the tensors. */
typedef struct {
    surrogate phi;
    int64_t form, is_mean_over_competitors;
    double radius, loss_scale;
    int64_t size, num_candidates, num_classes, columns, rank, width, ignore_index, is_double, num_threads;
    double unary, scale;
    const void *hidden, *weight, *bias, *start, *end, *sources, *targets; /* NULL if there is none */
    int64_t hidden_stride, weight_stride;
    const int64_t *target, *candidates;
    const void *log_weight;
    int64_t log_weight_stride, log_weight_step;
    const int64_t *before, *after;
    const uint8_t *first, *last;
    void *rows, *candidate_rows, *label_scores; /* `rows` is `hidden` without edges */
    int64_t *index;
    const void *scores, *unary_scores;
    void *losses, *stats;
    int64_t has_unary;
    const void *grad_output;
    int64_t grad_stride;
    void *gradient, *edge_gradient, *sums;
    const void *grad_rows, *grad_candidates;
    void *grad_hidden, *weight_values, *edge_values, *vector_values;
} sampled_call;

/* The label of a row; ignored rows have class 0. */
INLINE int64_t label_of(const sampled_call *a, int64_t n) { return a->target[n] == a->ignore_index ? 0 : a->target[n]; }

/* Number of entries in each row of `index`. */
INLINE int64_t total_length(const sampled_call *a) { return a->size + a->num_candidates + (a->sources != NULL ? a->size : 0); }

/* Whether row n is at an end of its sequence; without flags all sequences have the same length. */
INLINE int is_end(const uint8_t *flags, int64_t n, int is_outside) {
    return flags == NULL ? is_outside : flags[n] != 0;
}

#include "as_float.h"
#include "surrogate.h"
#include "sampled.h"
#include "as_double.h"
#include "surrogate.h"
#include "sampled.h"

/* Functions of a row and of memory for `num_numbers` numbers. */
typedef struct {
    const sampled_call *a;
    int (*float_row)(const sampled_call *, int64_t, float *);
    int (*double_row)(const sampled_call *, int64_t, double *);
    int64_t num_rows, num_numbers, num_chunks, status;
} loop;

static void run_chunk(void *data, int64_t chunk) {
    loop *l = data;
    const int64_t first = l->num_rows * chunk / l->num_chunks, last = l->num_rows * (chunk + 1) / l->num_chunks;
    void *memory = malloc((size_t)l->num_numbers * sizeof(double) + 1);
    int is_computed = memory != NULL;
    for (int64_t n = first; n < last && is_computed; n++)
        is_computed = l->a->is_double ? l->double_row(l->a, n, memory) : l->float_row(l->a, n, memory);
    if (!is_computed)
        __atomic_store_n(&l->status, NOT_COMPUTED, __ATOMIC_RELAXED);
    free(memory);
}

static int64_t run(loop l, int64_t num_rows, int64_t row_size, int64_t num_numbers) {
    l.num_rows = num_rows;
    l.num_numbers = num_numbers;
    l.num_chunks = num_chunks(num_rows, row_size, l.a->num_threads, 64);
    run_chunks(run_chunk, &l, l.num_chunks, (int)l.a->num_threads);
    return l.status;
}

/* Returns NOT_COMPUTED if a class is out of range. */
EXPORT int64_t lc_sampled_gather(const sampled_call *a) {
    const loop l = {.a = a, .float_row = gather_row_f32, .double_row = gather_row_f64};
    return run(l, a->size + a->num_candidates, 2 * a->columns, 0);
}

/* Returns NOT_COMPUTED if a score or a loss is infinite or NaN. */
EXPORT int64_t lc_sampled_losses(const sampled_call *a) {
    const loop l = {.a = a, .float_row = row_loss_f32, .double_row = row_loss_f64};
    return run(l, a->size, 8 * a->num_candidates, 2 * a->num_candidates);
}

EXPORT int64_t lc_sampled_score_gradient(const sampled_call *a) {
    const loop l = {.a = a, .float_row = score_gradient_f32, .double_row = score_gradient_f64};
    const int64_t status = run(l, a->size, 8 * a->num_candidates, 2 * a->num_candidates);
    if (a->is_double)
        sum_rows_f64(a);
    else
        sum_rows_f32(a);
    return status;
}

EXPORT int64_t lc_sampled_table_gradients(const sampled_call *a) {
    const loop l = {.a = a, .float_row = table_gradient_f32, .double_row = table_gradient_f64};
    return run(l, a->size + a->num_candidates, 4 * a->columns, 0);
}
