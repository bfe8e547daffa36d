/* Multi-class losses of rows of scores: forward and gradient in one pass over the scores. */
#include "common.h"

enum { LOGODDS, PAIRWISE, CENTERED };
enum { OK, BAD_LABEL, NOT_FINITE };

/* One call of lc_dense; `_dense.py` packs it. All fields have 8 bytes, so there is no padding. */
typedef struct {
    surrogate phi;
    int64_t form, is_mean_over_competitors;
    double radius;       /* of the sphere that scores are normalised to, or 0 */
    double scale;        /* factor of the loss */
    const void *scores;  /* (N, C), contiguous */
    const int64_t *target;     /* (N,) labels, or NULL */
    const void *probabilities; /* (N, C) target probabilities in float or double, or NULL */
    int64_t num_rows, num_classes, ignore_index;
    int64_t dtype;       /* 0: float, 1: double, 2: bfloat16 */
    int64_t reduction;   /* 0: none, 1: sum, 2: mean */
    void *losses;        /* (N,) in float or double for none, otherwise a scalar in `dtype` */
    void *gradient;      /* (N, C) in `dtype`, or NULL */
    int64_t num_threads;
    const void *class_weights; /* (C,) in float or double, or NULL */
    const void *row_weights;   /* (N,) likewise */
    double smoothing;          /* of the labels */
} arguments;

/* Whether a row has a weight for each class instead of one label. */
#define HAS_SOFT_LABELS(a) ((a)->target == NULL || (a)->smoothing != 0)

typedef struct {
    arguments a;
    double row_scale;
    int64_t num_chunks, status;
    double totals[64];
} call;

/* `MIN_NORM` of `losses/_robust.py`. */
#define MIN_NORM 1e-3

#include "as_float.h"
#include "surrogate.h"
#include "rows.h"
#define LOG_ABOVE_ONE log_above_one_float
#include "soft.h"
#undef LOG_ABOVE_ONE
#define STORED float
#define LOAD(x) (x)
#define STORE(x) (x)
#define ROWS(name) name##_f32
#include "rows.h"
#undef STORED
#undef LOAD
#undef STORE
#undef ROWS
#define STORED uint16_t
#define LOAD float_from_bfloat16
#define STORE bfloat16_from_float
#define ROWS(name) name##_bf16
#include "rows.h"
#undef STORED
#undef LOAD
#undef STORE
#undef ROWS
#include "as_double.h"
#include "surrogate.h"
#include "rows.h"
#define LOG_ABOVE_ONE log
#include "soft.h"
#define STORED double
#define LOAD(x) (x)
#define STORE(x) (x)
#define ROWS(name) name##_f64
#include "rows.h"

static void run_chunk(void *data, int64_t chunk) {
    call *c = data;
    const int64_t n = c->a.num_rows, first = n * chunk / c->num_chunks, last = n * (chunk + 1) / c->num_chunks;
    static int (*const rows[3][2])(const arguments *, double, int64_t, int64_t, double *) = {
        {hard_rows_f32, soft_rows_f32}, {hard_rows_f64, soft_rows_f64}, {hard_rows_bf16, soft_rows_bf16}};
    if (!rows[c->a.dtype][HAS_SOFT_LABELS(&c->a)](&c->a, c->row_scale, first, last, &c->totals[chunk]))
        __atomic_store_n(&c->status, NOT_FINITE, __ATOMIC_RELAXED);
}

/* Sum of the weights of all rows that count; the classes of probability targets have no part in it. */
static double sum_of_weights(const arguments *a) {
    double sum = 0;
    for (int64_t i = 0; i < a->num_rows; i++)
        if (a->target == NULL || a->target[i] != a->ignore_index)
            sum += a->dtype == 1 ? label_weight_f64(a, i) * row_weight_f64(a, i) : label_weight_f32(a, i) * row_weight_f32(a, i);
    return sum;
}

/* Returns OK, BAD_LABEL, or NOT_FINITE: a score or a loss is infinite or NaN, or no row counts, or the mean would divide by a
   sum of weights that is negative or extreme; outputs are then undefined. */
EXPORT int64_t lc_dense(const arguments *a) {
    int64_t num_counted = a->target == NULL ? a->num_rows : 0, is_bad = 0;
    for (int64_t i = 0; i < a->num_rows && a->target != NULL; i++) {
        const int is_counted = a->target[i] != a->ignore_index;
        num_counted += is_counted;
        is_bad |= is_counted & ((uint64_t)a->target[i] >= (uint64_t)a->num_classes);
    }
    if (is_bad)
        return BAD_LABEL;
    if (num_counted == 0)
        return NOT_FINITE;
    const int has_weights = a->class_weights != NULL || a->row_weights != NULL;
    const double divisor = a->reduction != 2 ? 1 : has_weights ? sum_of_weights(a) : (double)num_counted;
    if (!(divisor >= 1e-30 && divisor <= 1e30)) /* The factor of the gradient is a float. */
        return NOT_FINITE;
    call c = {.a = *a};
    c.row_scale = 1.0 / divisor;
    /* With soft labels a class takes about three times as long, and in pairwise each class is a label. */
    const int64_t work = !HAS_SOFT_LABELS(a) ? 1 : a->form == PAIRWISE ? a->num_classes : 3, row_size = work * a->num_classes;
    c.num_chunks = num_chunks(a->num_rows, row_size, a->num_threads, (int64_t)(sizeof c.totals / sizeof *c.totals));
    run_chunks(run_chunk, &c, c.num_chunks, (int)a->num_threads);
    double total = 0;
    for (int64_t chunk = 0; chunk < c.num_chunks; chunk++)
        total += c.totals[chunk];
    total *= c.row_scale;
    if (!isfinite(total))
        return NOT_FINITE;
    if (a->reduction != 0 && a->dtype == 0)
        *(float *)a->losses = (float)total;
    else if (a->reduction != 0 && a->dtype == 1)
        *(double *)a->losses = total;
    else if (a->reduction != 0)
        *(uint16_t *)a->losses = bfloat16_from_float((float)total);
    return c.status;
}
