/* REAL is double in what is included next. */
#undef REAL
#undef EXP
#undef EXP_NEGATIVE
#undef LOG1P
#undef LOG
#undef SQRT
#undef NAME
#undef IS_FINITE
#define REAL double
#define EXP exp
#define EXP_NEGATIVE exp
#define LOG1P log1p
#define LOG log
#define SQRT sqrt
#define NAME(name) name##_f64
#define IS_FINITE(x) (__builtin_fabs(x) <= 1.7976931348623157e308)
