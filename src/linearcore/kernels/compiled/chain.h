/* A batch of linear chains, as `_chain.py` packs it. All fields have 8 bytes, so there is no padding. */
#ifndef LINEARCORE_CHAIN_H
#define LINEARCORE_CHAIN_H

#include "common.h"

enum { COMPUTED, NOT_COMPUTED };

typedef struct {
    const void *emissions;                    /* (L, B, |Y|), rows contiguous */
    const void *start, *transitions, *end;    /* contiguous */
    const uint8_t *mask;                      /* (L, B), or NULL if no position is masked */
    const int64_t *tags;                      /* (L, B), or NULL */
    int64_t length, batch, num_tags;
    int64_t is_double;
    int64_t time_stride, batch_stride;        /* of the emissions, in numbers */
    int64_t mask_time_stride, mask_batch_stride;
    int64_t tag_time_stride, tag_batch_stride;
    int64_t num_threads;
} chain;

/* The unmasked positions of each sequence (B, L), and their number (B,). */
typedef struct {
    int64_t *counts;
    int32_t *positions;
} sites;

/* Returns NULL in counts, which the caller frees, if there is no memory. */
static inline sites find_sites(const chain *c) {
    sites s = {malloc((size_t)c->batch * (sizeof(int64_t) + (size_t)c->length * sizeof(int32_t))), NULL};
    if (s.counts == NULL)
        return s;
    s.positions = (int32_t *)(s.counts + c->batch);
    for (int64_t b = 0; b < c->batch; b++) {
        int64_t count = 0;
        for (int64_t t = 0; t < c->length; t++)
            if (c->mask == NULL || c->mask[t * c->mask_time_stride + b * c->mask_batch_stride])
                s.positions[b * c->length + count++] = (int32_t)t;
        s.counts[b] = count;
    }
    return s;
}

INLINE int64_t tag_at(const chain *c, int64_t t, int64_t b) {
    return c->tags[t * c->tag_time_stride + b * c->tag_batch_stride];
}

/* Returns whether all tags of unmasked positions are in range. */
static inline int tags_are_valid(const chain *c) {
    int is_bad = 0;
    for (int64_t t = 0; t < c->length; t++)
        for (int64_t b = 0; b < c->batch; b++)
            is_bad |= ((uint64_t)tag_at(c, t, b) >= (uint64_t)c->num_tags)
                      & (c->mask == NULL || c->mask[t * c->mask_time_stride + b * c->mask_batch_stride]);
    return !is_bad;
}

/* Threads for an amount of work in elementary operations: starting them takes as long as about 100,000. */
INLINE int threads_for(const chain *c, int64_t work) { return work < 200000 ? 1 : (int)c->num_threads; }

#endif
