/* Threads: those of torch. Its OpenMP runtime is found when the library is loaded; without one everything runs in one thread. */
#include "common.h"

/* `source_hash` of `build.py`, which the loader compares: old code must not read arguments that new Python packs. */
EXPORT int64_t lc_source_hash(void) { return LC_SOURCE_HASH; }

typedef void (*parallel_function)(void (*work)(void *), void *data, unsigned num_threads, unsigned flags);

static parallel_function parallel = NULL;

/* Sets GOMP_parallel of the OpenMP runtime that torch has loaded. */
EXPORT void lc_set_parallel(parallel_function function) { parallel = function; }

typedef struct {
    chunk_function work;
    void *data;
    int64_t num_chunks;
    int64_t next;
} queue;

static void drain(void *argument) {
    queue *chunks = argument;
    int64_t chunk;
    while ((chunk = __atomic_fetch_add(&chunks->next, 1, __ATOMIC_RELAXED)) < chunks->num_chunks)
        chunks->work(chunks->data, chunk);
}

void run_chunks(chunk_function work, void *data, int64_t num_chunks, int threads) {
    queue chunks = {work, data, num_chunks, 0};
    if (parallel == NULL || threads <= 1 || num_chunks <= 1)
        drain(&chunks);
    else
        parallel(drain, &chunks, (unsigned)(threads < num_chunks ? threads : num_chunks), 0);
}
