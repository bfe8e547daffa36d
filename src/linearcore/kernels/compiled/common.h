/* Shared by the compiled kernels: instruction sets, threads, and fast elementary functions of one float. */
#ifndef LINEARCORE_COMMON_H
#define LINEARCORE_COMMON_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* One copy of a function for each instruction set; the loader of the operating system picks one. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define VECTORIZED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTORIZED
#endif
#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#define INLINE static inline __attribute__((always_inline))

/* Rows are padded to a multiple of this many numbers, so that vectorised loops have no remainder. */
#define PADDED(n) (((n) + 15) & ~15)
/* Numbers that are summed in one go; the sums of such blocks are added in double. */
#define SUM_BLOCK 256

/* The Python side packs pointers and integers of 8 bytes. */
_Static_assert(sizeof(void *) == 8, "the kernels are for 64-bit platforms");

/* Calls work(data, chunk) for all chunks, in up to `threads` threads of torch's own pool. Each chunk is computed by one
   thread, so results do not depend on the schedule. */
typedef void (*chunk_function)(void *data, int64_t chunk);
void run_chunks(chunk_function work, void *data, int64_t num_chunks, int threads);

/* Number of chunks of rows: one for each 16,384 elements, at most `most` and one for each row. */
INLINE int64_t num_chunks(int64_t num_rows, int64_t row_size, int64_t threads, int64_t most) {
    int64_t chunks = threads <= 1 ? 1 : num_rows * row_size / 16384;
    chunks = chunks < most ? chunks : most;
    chunks = chunks < num_rows ? chunks : num_rows;
    return chunks > 1 ? chunks : 1;
}

/* e^x for x ≤ 0 within 2 ulp; 0 below −87.7, where the power of two below is 2^−127, whose bits are 0. Has no branches, so that
   loops over it are vectorised. */
INLINE float exp_negative_float(float x) {
    const float clamped = x > -88.03f ? x : -88.03f;
    const union {
        float number;
        int32_t bits;
    } shifted = {clamped * 1.44269504f + 12582912.0f}; /* 1.5 · 2^23: rounds to an integer, in the lowest bits */
    const float n = shifted.number - 12582912.0f;
    const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + (r + 1.0f);
    const union {
        int32_t bits;
        float number;
    } power = {(int32_t)((uint32_t)shifted.bits << 23) + 0x3f800000};
    return p * power.number;
}

/* e^x; inf above 87.3. */
INLINE float exp_float(float x) {
    const float small = exp_negative_float(x > 0 ? -x : x);
    return x > 87.3f ? INFINITY : (x > 0 ? 1.0f / small : small);
}

/* log(1 + x) for 0 ≤ x ≤ 1 within 2 ulp: x times a minimax polynomial of log(1 + x) / x. */
INLINE float log1p_float(float x) {
    float p = -3.17605701e-3f;
    p = p * x + 1.95425265e-2f;
    p = p * x - 5.63736111e-2f;
    p = p * x + 1.05436236e-1f;
    p = p * x - 1.52696669e-1f;
    p = p * x + 1.96632743e-1f;
    p = p * x - 2.49516159e-1f;
    p = p * x + 3.33297104e-1f;
    p = p * x - 4.99998927e-1f;
    p = p * x + 1.0f;
    return p * x;
}

/* log(x) for finite x ≥ 1, within an absolute error of 1e-7 below 2. */
INLINE float log_above_one_float(float x) {
    const union {
        float number;
        int32_t bits;
    } given = {x};
    const union {
        int32_t bits;
        float number;
    } mantissa = {(given.bits & 0x007fffff) | 0x3f800000};
    const float exponent = (float)((given.bits >> 23) - 127);
    return exponent * 0.693147181f + log1p_float(mantissa.number - 1.0f);
}

INLINE float float_from_bfloat16(uint16_t x) {
    const uint32_t bits = (uint32_t)x << 16;
    float result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

/* Rounds to nearest even. Infinities stay, NaN does not occur: kernels report such rows instead. */
INLINE uint16_t bfloat16_from_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* `linearcore.surrogates.KernelIdentity`; `surrogate.h` evaluates it. */
typedef struct {
    int64_t base;
    double tau, width, sharpness, tail_scale, factor;
    double parameter[2];
} surrogate;

#endif
