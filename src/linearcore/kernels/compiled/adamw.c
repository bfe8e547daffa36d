/* A step of AdamW for a sparse gradient, whose indices may repeat: only the rows in the gradient are read and written. */
#include "common.h"

enum { OK, NOT_COMPUTED };

/* One call of lc_sparse_adamw; `_adamw.py` packs it. */
typedef struct {
    void *parameter, *first, *second; /* (rows, row_size), contiguous */
    int32_t *last_step;               /* (rows,) steps of the last update, or NULL without weight decay */
    const int64_t *index;             /* (count,) */
    const void *values;               /* (count, row_size), contiguous */
    int64_t num_rows, row_size, count, step, is_double, num_threads;
    double lr, beta1, beta2, eps, decay;
} adamw_call;

#include "as_float.h"
#include "adamw.h"
#include "as_double.h"
#include "adamw.h"

typedef struct {
    const adamw_call *a;
    const int64_t *order;
    int64_t num_chunks, status;
} loop;

/* The first place of a chunk, moved on to where a new row begins. */
static int64_t boundary(const loop *l, int64_t chunk) {
    const int64_t count = l->a->count;
    int64_t place = count * chunk / l->num_chunks;
    while (place > 0 && place < count && l->a->index[l->order[place]] == l->a->index[l->order[place - 1]])
        place++;
    return place;
}

static void run_chunk(void *data, int64_t chunk) {
    loop *l = data;
    const adamw_call *a = l->a;
    const int64_t stop = boundary(l, chunk + 1);
    void *sum = malloc((size_t)a->row_size * sizeof(double) + 1);
    if (sum == NULL)
        __atomic_store_n(&l->status, NOT_COMPUTED, __ATOMIC_RELAXED);
    for (int64_t first = boundary(l, chunk), last; first < stop && sum != NULL; first = last) {
        for (last = first + 1; last < stop && a->index[l->order[last]] == a->index[l->order[first]];)
            last++;
        if (a->is_double)
            update_row_f64(a, l->order, first, last, sum);
        else
            update_row_f32(a, l->order, first, last, sum);
    }
    free(sum);
}

#define DIGIT_BITS 11
#define NUM_DIGITS (1 << DIGIT_BITS)

/* Sorts the places 0 .. count − 1 by index; places with the same index stay in order. `spare` has memory for as many. */
static int64_t *sorted_places(const adamw_call *a, int64_t *order, int64_t *spare) {
    for (int64_t i = 0; i < a->count; i++)
        order[i] = i;
    for (int shift = 0; shift < 63 && (a->num_rows - 1) >> shift > 0; shift += DIGIT_BITS) {
        int64_t starts[NUM_DIGITS + 1] = {0};
        for (int64_t i = 0; i < a->count; i++)
            starts[((a->index[i] >> shift) & (NUM_DIGITS - 1)) + 1]++;
        for (int digit = 0; digit < NUM_DIGITS; digit++)
            starts[digit + 1] += starts[digit];
        for (int64_t i = 0; i < a->count; i++)
            spare[starts[(a->index[order[i]] >> shift) & (NUM_DIGITS - 1)]++] = order[i];
        int64_t *swapped = order;
        order = spare;
        spare = swapped;
    }
    return order;
}

/* Returns NOT_COMPUTED, with nothing changed, if an index is out of range or memory is missing. */
EXPORT int64_t lc_sparse_adamw(const adamw_call *a) {
    for (int64_t i = 0; i < a->count; i++)
        if ((uint64_t)a->index[i] >= (uint64_t)a->num_rows)
            return NOT_COMPUTED;
    int64_t *memory = malloc(2 * (size_t)a->count * sizeof *memory + 1);
    if (memory == NULL)
        return NOT_COMPUTED;
    loop l = {.a = a, .order = sorted_places(a, memory, memory + a->count)};
    l.num_chunks = num_chunks(a->count, 4 * a->row_size, a->num_threads, 64);
    run_chunks(run_chunk, &l, l.num_chunks, (int)a->num_threads);
    free(memory);
    return l.status;
}
