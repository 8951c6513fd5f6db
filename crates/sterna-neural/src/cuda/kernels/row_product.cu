// A product whose matrix is small, inside a kernel that takes a few rows through many steps. THREADS is defined before.

template <int BYTES> struct alignas(BYTES) Pack16 {
    T v[BYTES / sizeof(T)];
};
#define WIDE (16 / int(sizeof(T)))

// out[r][n] = Σ_k x[r][k] w[k·SK + n·SN] + init, for ROWS rows at a time and `rows` in all, by all threads of
// a block. Where there are fewer columns than threads, parts of the sum are shared out and joined in order.
template <int ROWS, int K, int N, int SK, int SN, bool VECTOR>
static __device__ __forceinline__ void row_product(
    int rows, const T *x, int lx, const T *w, const T *init, int li, T *out, int lo, T *scratch) {
    constexpr int MOST = N >= THREADS ? 1 : THREADS / N;
    constexpr int FEWEST = 8; // terms that are worth a part
    constexpr int PARTS = MOST < (K + FEWEST - 1) / FEWEST ? MOST : (K + FEWEST - 1) / FEWEST;
    constexpr int STEP = VECTOR ? WIDE : 1;
    constexpr int LEN = ((K + PARTS - 1) / PARTS + STEP - 1) / STEP * STEP;
    const int t = threadIdx.x;
    for (int r0 = 0; r0 < rows; r0 += ROWS) {
        const T *xs = x + r0 * lx;
        if (r0 > 0) __syncthreads();
        for (int u = t; u < (PARTS == 1 ? N : THREADS); u += THREADS) {
            const int part = PARTS == 1 ? 0 : u / N, n = PARTS == 1 ? u : u % N;
            if (part >= PARTS) break;
            T acc[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; r++) acc[r] = T(0);
            const int to = (part + 1) * LEN < K ? (part + 1) * LEN : K;
            if constexpr (VECTOR) {
#pragma unroll 8
                for (int k = part * LEN; k < to; k += WIDE) {
                    T ws[WIDE];
#pragma unroll
                    for (int j = 0; j < WIDE; j++) ws[j] = w[(k + j) * SK + n * SN];
#pragma unroll
                    for (int r = 0; r < ROWS; r++) {
                        const Pack16<16> p = *(const Pack16<16> *)(xs + r * lx + k);
#pragma unroll
                        for (int j = 0; j < WIDE; j++) acc[r] = f_fma(p.v[j], ws[j], acc[r]);
                    }
                }
            } else {
#pragma unroll 16
                for (int k = part * LEN; k < to; k++) {
                    const T wk = w[k * SK + n * SN];
#pragma unroll
                    for (int r = 0; r < ROWS; r++) acc[r] = f_fma(xs[r * lx + k], wk, acc[r]);
                }
            }
            if constexpr (PARTS == 1) {
#pragma unroll
                for (int r = 0; r < ROWS; r++)
                    out[(r0 + r) * lo + n] = acc[r] + (init ? init[(r0 + r) * li + n] : T(0));
            } else {
#pragma unroll
                for (int r = 0; r < ROWS; r++) scratch[(part * ROWS + r) * N + n] = acc[r];
            }
        }
        if constexpr (PARTS > 1) {
            __syncthreads();
            for (int i = t; i < ROWS * N; i += THREADS) {
                const int r = i / N, n = i % N;
                T sum = init ? init[(r0 + r) * li + n] : T(0);
#pragma unroll
                for (int part = 0; part < PARTS; part++) sum += scratch[part * ROWS * N + i];
                out[(r0 + r) * lo + n] = sum;
            }
        }
    }
}
