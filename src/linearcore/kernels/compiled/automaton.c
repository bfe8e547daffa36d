/* Log-partition function with its gradient, and best path, of an acyclic automaton. */
#include <float.h>

#include "common.h"

/* Functions that return vectors are all inlined, so it does not matter how a vector would be returned without AVX. */
#pragma GCC diagnostic ignored "-Wpsabi"

enum { COMPUTED, NOT_COMPUTED };

/* Numbers in a vector: rows of the batch that are computed side by side. */
#define FLOAT_LANES 8
#define DOUBLE_LANES 4
/* `PADDING` of structures/automata/_sweep.py. */
#define NO_ARC (-100)

/* One call of lc_automaton; `_automaton.py` packs all but the last. Arcs to the end have the numbers from A on. */
typedef struct {
    const void *scores;             /* (B, A), rows contiguous */
    const int32_t *arc, *source;    /* (slots): the arcs in the order of their targets, and the states where they start */
    const int32_t *first;           /* (states + 1): the place of the first arc into each state */
    int64_t batch, num_arcs, num_slots, num_states, max_length;
    int64_t stride;                 /* of the rows of scores, in numbers */
    int64_t is_double;
    void *values;                   /* (B,) log Z, or the best score if there is `path` */
    void *gradient;                 /* (B, A) of log Z, or NULL */
    int64_t *path;                  /* (B, M), or NULL */
    int64_t num_threads;
    int64_t status;
} automaton_call;

/* The numbers of two vectors in another order. */
#ifdef __clang__
#define SHUFFLE __builtin_shufflevector
#else
#define SHUFFLE(x, y, ...) __builtin_shuffle(x, y, (NAME(flags)){__VA_ARGS__})
#endif

/* (e^r − 1 − r) / r² for |r| ≤ log(2) / 2, highest power first: those of expf in the Cephes library, and
   Taylor's series. */
static const float FLOAT_POLYNOMIAL[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                         4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
static const double DOUBLE_POLYNOMIAL[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                                           1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
                                           1.0 / 120,        1.0 / 24,        1.0 / 6,        1.0 / 2};

#include "as_float.h"
#define LANES FLOAT_LANES
#define INTEGER int32_t
#define INTERLEAVE_LOW(x, y) SHUFFLE(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define INTERLEAVE_HIGH(x, y) SHUFFLE(x, y, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOG_TINY -87.3f
#define LARGEST FLT_MAX
#define LOG_ABOVE_ONE log_above_one_float
#define POLYNOMIAL FLOAT_POLYNOMIAL
#define ROUNDING 12582912.0f /* 1.5 · 2^23 */
#define LN2_HIGH 0.693359375f
#define LN2_LOW -2.12194440e-4f
#define MANTISSA_BITS 23
#define ONE_BITS 0x3f800000
#include "automaton.h"
#undef LANES
#undef INTEGER
#undef INTERLEAVE_LOW
#undef INTERLEAVE_HIGH
#undef LOG_TINY
#undef LARGEST
#undef LOG_ABOVE_ONE
#undef POLYNOMIAL
#undef ROUNDING
#undef LN2_HIGH
#undef LN2_LOW
#undef MANTISSA_BITS
#undef ONE_BITS
#include "as_double.h"
#define LANES DOUBLE_LANES
#define INTEGER int64_t
#define INTERLEAVE_LOW(x, y) SHUFFLE(x, y, 0, 4, 1, 5)
#define INTERLEAVE_HIGH(x, y) SHUFFLE(x, y, 2, 6, 3, 7)
#define LOG_TINY -708.3
#define LARGEST DBL_MAX
#define LOG_ABOVE_ONE log
#define POLYNOMIAL DOUBLE_POLYNOMIAL
#define ROUNDING 6755399441055744.0 /* 1.5 · 2^52 */
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10
#define MANTISSA_BITS 52
#define ONE_BITS 0x3ff0000000000000
#include "automaton.h"

static void run_tile(void *data, int64_t tile) {
    automaton_call *call = data;
    if (!(call->is_double ? tile_f64(call, tile) : tile_f32(call, tile)))
        __atomic_store_n(&call->status, NOT_COMPUTED, __ATOMIC_RELAXED);
}

/* Returns NOT_COMPUTED if a score or a sum of scores is +inf or NaN; outputs are then undefined. */
EXPORT int64_t lc_automaton(const automaton_call *arguments) {
    automaton_call call = *arguments;
    const int64_t lanes = call.is_double ? DOUBLE_LANES : FLOAT_LANES;
    call.status = COMPUTED;
    /* Starting threads takes as long as about 100,000 operations. */
    const int threads = call.batch * call.num_slots < 50000 ? 1 : (int)call.num_threads;
    run_chunks(run_tile, &call, (call.batch + lanes - 1) / lanes, threads);
    return call.status;
}
