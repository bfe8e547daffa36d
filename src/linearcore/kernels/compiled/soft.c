/* Multi-class losses Σ_y w_y ℓ(s, y) of rows of scores with a weight for each class: forward and gradient. */
#include "common.h"

enum { LOGODDS, PAIRWISE, CENTERED };

/* One call of lc_soft; `_soft.py` packs it. All fields have 8 bytes, so there is no padding. */
typedef struct {
    surrogate phi;
    int64_t form, is_mean_over_competitors;
    const void *scores;  /* (N, C) in `dtype`, contiguous */
    const void *weights; /* (N, C) likewise */
    int64_t num_rows, num_classes;
    int64_t dtype;  /* 0: float, 1: double */
    void *losses;   /* (N,) */
    void *gradient; /* (N, C), or NULL */
    int64_t num_threads;
} arguments;

typedef struct {
    arguments a;
    int64_t num_chunks, is_not_finite;
} call;

#include "as_float.h"
#include "surrogate.h"
#define LOG_ABOVE_ONE log_above_one_float
#include "soft.h"
#undef LOG_ABOVE_ONE
#include "as_double.h"
#include "surrogate.h"
#define LOG_ABOVE_ONE log
#include "soft.h"

static void run_chunk(void *data, int64_t chunk) {
    call *c = data;
    const int64_t n = c->a.num_rows, first = n * chunk / c->num_chunks, last = n * (chunk + 1) / c->num_chunks;
    if (!(c->a.dtype == 0 ? rows_f32(&c->a, first, last) : rows_f64(&c->a, first, last)))
        __atomic_store_n(&c->is_not_finite, 1, __ATOMIC_RELAXED);
}

/* Returns 0, or 2 if a score or a loss is infinite or NaN; outputs are then undefined. */
EXPORT int64_t lc_soft(const arguments *a) {
    call c = {.a = *a};
    const int64_t row_size = a->form == PAIRWISE ? a->num_classes * a->num_classes : a->num_classes;
    c.num_chunks = num_chunks(a->num_rows, row_size, a->num_threads, 64);
    run_chunks(run_chunk, &c, c.num_chunks, (int)a->num_threads);
    return c.is_not_finite ? 2 : 0;
}
