/* REAL is float in what is included next. */
#undef REAL
#undef EXP
#undef EXP_NEGATIVE
#undef LOG1P
#undef LOG
#undef SQRT
#undef NAME
#undef IS_FINITE
#define REAL float
#define EXP exp_float
#define EXP_NEGATIVE exp_negative_float
#define LOG1P log1p_float
#define LOG logf
#define SQRT sqrtf
#define NAME(name) name##_f32
#define IS_FINITE(x) (__builtin_fabsf(x) <= 3.40282347e38f)
