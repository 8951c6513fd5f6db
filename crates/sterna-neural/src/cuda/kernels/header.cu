// What every generated source begins with: elementary functions, products, sums over columns.
// `T` (float or double), `TERMS` (parts of a TF32 product) and `I` (an index) are defined before it.

static __device__ __forceinline__ float f_exp(float x) { return expf(x); }
static __device__ __forceinline__ double f_exp(double x) { return exp(x); }
static __device__ __forceinline__ float f_log(float x) { return logf(x); }
static __device__ __forceinline__ double f_log(double x) { return log(x); }
static __device__ __forceinline__ float f_log1p(float x) { return log1pf(x); }
static __device__ __forceinline__ double f_log1p(double x) { return log1p(x); }
static __device__ __forceinline__ float f_tanh(float x) { return tanhf(x); }
static __device__ __forceinline__ double f_tanh(double x) { return tanh(x); }
static __device__ __forceinline__ float f_sqrt(float x) { return sqrtf(x); }
static __device__ __forceinline__ double f_sqrt(double x) { return sqrt(x); }
static __device__ __forceinline__ float f_sin(float x) { return sinf(x); }
static __device__ __forceinline__ double f_sin(double x) { return sin(x); }
static __device__ __forceinline__ float f_cos(float x) { return cosf(x); }
static __device__ __forceinline__ double f_cos(double x) { return cos(x); }
static __device__ __forceinline__ float f_fma(float a, float b, float c) { return fmaf(a, b, c); }
static __device__ __forceinline__ double f_fma(double a, double b, double c) { return fma(a, b, c); }
static __device__ __forceinline__ T f_abs(T x) { return x < T(0) ? -x : x; }
static __device__ __forceinline__ T f_max(T a, T b) { return a > b ? a : b; }
static __device__ __forceinline__ T f_recip(T x) { return T(1) / x; }
static __device__ __forceinline__ double f_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
static __device__ __forceinline__ float f_sigmoid(float x) {
    float y;
    if (TERMS == 1) { // where products round to 11 bits, 22 are enough
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(-1.442695041f * x));
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(1.f + y));
        return y;
    }
    // Newton's step makes up for what the quick reciprocal lacks; it wants a finite number.
    const float d = 1.f + fminf(expf(-x), 1e30f);
    asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(d));
    return fmaf(y, fmaf(-d, y, 1.f), y);
}
static __device__ __forceinline__ T f_silu(T x) { return x * f_sigmoid(x); }
static __device__ __forceinline__ T f_softplus(T x) { return f_max(x, T(0)) + f_log1p(f_exp(-f_abs(x))); }
static __device__ __forceinline__ T f_sign(T x) { return x > T(0) ? T(1) : (x < T(0) ? T(-1) : x); }
static __device__ __forceinline__ T f_step(T x) { return x > T(0) ? T(1) : T(0); }
static __device__ __forceinline__ T f_finite_or_zero(T x) { return f_abs(x) < T(1) / T(0) ? x : T(0); }

// The nearest number with TF32's eleven bits.
static __device__ __forceinline__ float tf32(float x) {
    return __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
}

// How Hopper's matrix units find eight rows of 128 bytes in shared memory, their 16-byte chunks exchanged by the row's
// number, so that no two lie in the same banks.
static __device__ __forceinline__ unsigned long long describe(const float *p) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(p);
    return (at & 0x3FFFF) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

// What every kernel begins with: it may be launched while the last blocks of the one before it still run.
static __device__ __forceinline__ void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <class V> static __device__ __forceinline__ V warp_sum(V x, int lanes = 32) {
#pragma unroll
    for (int d = lanes / 2; d > 0; d >>= 1) x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

static __device__ __forceinline__ T warp_max(T x, int lanes) {
#pragma unroll
    for (int d = lanes / 2; d > 0; d >>= 1) x = f_max(x, __shfl_xor_sync(0xffffffffu, x, d));
    return x;
}

// The sum of a row, and log Σ exp of one, by 32 neighbouring threads or fewer.
#define EACH_OF_ROW(c, cols) \
    _Pragma("unroll 8") for (int turn = 0, c = threadIdx.x % LANES; turn * LANES < cols; turn++, c += LANES) if (c < cols)

template <int LANES> static __device__ __forceinline__ T row_sum(const T *x, int cols) {
    T sum = T(0);
    EACH_OF_ROW(c, cols) sum += x[c];
    return warp_sum(sum, LANES);
}

template <int LANES> static __device__ __forceinline__ T row_log_sum_exp(const T *x, int cols) {
    T top = -T(1) / T(0);
    EACH_OF_ROW(c, cols) top = f_max(top, x[c]);
    top = warp_max(top, LANES);
    // All −∞: their sum is zero, and its logarithm −∞, not NaN.
    const T shift = top > -T(1) / T(0) ? top : T(0);
    T sum = T(0);
    EACH_OF_ROW(c, cols) sum += f_exp(x[c] - shift);
    return f_log(warp_sum(sum, LANES)) + shift;
}
