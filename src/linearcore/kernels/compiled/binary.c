/* Binary losses t φ(h) + (1 − t) φ(−h) of scores h and targets t: forward and gradient in one pass. */
#include "common.h"

/* One call of lc_binary; `_binary.py` packs it. All fields have 8 bytes, so there is no padding. */
typedef struct {
    surrogate phi;
    const void *scores;  /* (N,) */
    const void *target;  /* (N,) */
    int64_t target_kind; /* 0: as the scores, 1: bytes, 2: int64 */
    int64_t size;
    int64_t dtype; /* 0: float, 1: double */
    double scale;  /* factor of loss and gradient, 1/N for the mean */
    void *loss;
    void *gradient; /* (N,) or NULL */
    int64_t num_threads;
} arguments;

typedef struct {
    arguments a;
    int64_t num_chunks;
    double totals[64];
} call;

#include "as_float.h"
#include "surrogate.h"
#include "elements.h"
#include "as_double.h"
#include "surrogate.h"
#include "elements.h"

static void run_chunk(void *data, int64_t chunk) {
    call *c = data;
    const int64_t n = c->a.size, first = n * chunk / c->num_chunks, last = n * (chunk + 1) / c->num_chunks;
    c->totals[chunk] = c->a.dtype == 0 ? elements_f32(&c->a, first, last) : elements_f64(&c->a, first, last);
}

/* Returns 0, or 2 if a score or a loss is infinite or NaN or a target out of range; outputs are then undefined. */
EXPORT int64_t lc_binary(const arguments *a) {
    call c;
    c.a = *a;
    c.num_chunks = num_chunks(a->size, 1, a->num_threads, (int64_t)(sizeof c.totals / sizeof *c.totals));
    run_chunks(run_chunk, &c, c.num_chunks, (int)a->num_threads);
    double total = 0;
    for (int64_t chunk = 0; chunk < c.num_chunks; chunk++)
        total += c.totals[chunk];
    if (!isfinite(total))
        return 2;
    if (a->dtype == 0)
        *(float *)a->loss = (float)(total * a->scale);
    else
        *(double *)a->loss = total * a->scale;
    return 0;
}
