// Products of large matrices, tile by tile. A block of 512 threads makes BM × 64 numbers of a result: sixteen
// warps, four for the places of the tile times four for parts of the sum, which are joined in order at the end.
// In f32 the matrix units multiply TF32 numbers; with TERMS = 3 each factor is split into two such numbers, which
// keeps f32's precision. In f64 plain multiply-adds.

#define TILE_THREADS 512
#define BN 64

static __device__ __forceinline__ void copy16(float *to, const float *from, int bytes) {
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes));
}
static __device__ __forceinline__ void copy4(float *to, const float *from, int bytes) {
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(bytes));
}

// The matrix units ignore the last 13 bits: adding half of what they ignore rounds to the nearest.
static __device__ __forceinline__ unsigned rounded(float x) { return __float_as_uint(x) + 0x1000u; }
// What rounding left over.
static __device__ __forceinline__ unsigned rest(float x, unsigned up) {
    return __float_as_uint(x - __uint_as_float(up & 0xffffe000u));
}

static __device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// One side of a product in memory: number (i, k) lies at p[i·ld + k] where k is contiguous, else at p[k·ld + i].
struct Side {
    const T *p;
    int ld;
    int extent; // valid i
    int wide;   // whether 16 bytes can be copied at once
};

template <int BM> struct FloatTile {
    static constexpr int KB = 64, STAGES = 3, MT = BM / 32, PARTS = 4;
    // Padded so that the matrix units' operands come from different banks.
    static constexpr int ALONG = KB + 4, ACROSS_M = BM + 8, ACROSS_N = BN + 8, OUT = BN + 4;
    static constexpr int A_LEN = BM * ALONG > KB * ACROSS_M ? BM * ALONG : KB * ACROSS_M;
    static constexpr int B_LEN = BN * ALONG > KB * ACROSS_N ? BN * ALONG : KB * ACROSS_N;
    float acc[MT][4][4];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < MT; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int k = 0; k < 4; k++) acc[i][j][k] = 0.f;
    }

    template <int EXTENT, int ACROSS, bool ALONG_K>
    static __device__ __forceinline__ void fetch(float *to, const Side &s, int k0, int K) {
        constexpr int LINES = ALONG_K ? EXTENT : KB, CHUNKS = (ALONG_K ? KB : EXTENT) / 4;
        constexpr int LD = ALONG_K ? ALONG : ACROSS, EACH = LINES * CHUNKS / TILE_THREADS;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int u = threadIdx.x + e * TILE_THREADS;
            const int line = u / CHUNKS, c = u % CHUNKS * 4;
            const int i = ALONG_K ? line : c, k = k0 + (ALONG_K ? c : line);
            const bool in = ALONG_K ? i < s.extent : k < K;
            int left = ALONG_K ? K - k : s.extent - i; // valid numbers of the four
            left = in ? (left < 0 ? 0 : (left > 4 ? 4 : left)) : 0;
            const float *from = s.p + (ALONG_K ? (I)i * s.ld + k : (I)k * s.ld + i);
            float *at = to + line * LD + c;
            if (s.wide) {
                copy16(at, left ? from : s.p, 4 * left);
            } else {
#pragma unroll
                for (int j = 0; j < 4; j++) copy4(at + j, j < left ? from + j : s.p, j < left ? 4 : 0);
            }
        }
    }

    // This warp's share of a stage: every fourth group of eight k.
    template <bool A_ALONG, bool B_ALONG> __device__ __forceinline__ void stage(const float *as, const float *bs) {
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, q = lane & 3;
        const int m0 = (warp & 1) * (BM / 2), n0 = (warp >> 1 & 1) * 32, part = warp >> 2;
        auto a_at = [&](int m, int k) { return A_ALONG ? as[m * ALONG + k] : as[k * ACROSS_M + m]; };
        auto b_at = [&](int n, int k) { return B_ALONG ? bs[n * ALONG + k] : bs[k * ACROSS_N + n]; };
#pragma unroll
        for (int step = 0; step < KB / 8 / PARTS; step++) {
            const int kk = (step * PARTS + part) * 8;
            float af[MT][4], bf[4][2];
#pragma unroll
            for (int i = 0; i < MT; i++) {
                const int m = m0 + 16 * i + g;
                af[i][0] = a_at(m, kk + q), af[i][1] = a_at(m + 8, kk + q);
                af[i][2] = a_at(m, kk + q + 4), af[i][3] = a_at(m + 8, kk + q + 4);
            }
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int n = n0 + 8 * j + g;
                bf[j][0] = b_at(n, kk + q), bf[j][1] = b_at(n, kk + q + 4);
            }
            unsigned b[4][2], bl[4][2];
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int e = 0; e < 2; e++) b[j][e] = rounded(bf[j][e]), bl[j][e] = rest(bf[j][e], b[j][e]);
#pragma unroll
            for (int i = 0; i < MT; i++) {
                unsigned a[4], al[4];
#pragma unroll
                for (int e = 0; e < 4; e++) a[e] = rounded(af[i][e]), al[e] = rest(af[i][e], a[e]);
                if constexpr (TERMS == 3) {
#pragma unroll
                    for (int j = 0; j < 4; j++) multiply(acc[i][j], al, b[j]);
#pragma unroll
                    for (int j = 0; j < 4; j++) multiply(acc[i][j], a, bl[j]);
                }
#pragma unroll
                for (int j = 0; j < 4; j++) multiply(acc[i][j], a, b[j]);
            }
        }
    }

    // Adds Σ_k A(m, k) B(n, k).
    template <bool A_ALONG, bool B_ALONG>
    __device__ __forceinline__ void add(const Side &a, const Side &b, int K, float *shared) {
        float *as = shared, *bs = shared + STAGES * A_LEN;
        const int count = (K + KB - 1) / KB;
        auto load = [&](int s, int at) {
            if (s < count) {
                fetch<BM, ACROSS_M, A_ALONG>(as + at * A_LEN, a, s * KB, K);
                fetch<BN, ACROSS_N, B_ALONG>(bs + at * B_LEN, b, s * KB, K);
            }
            asm volatile("cp.async.commit_group;");
        };
        __syncthreads();
#pragma unroll
        for (int s = 0; s < STAGES - 1; s++) load(s, s);
        int at = 0;
        for (int s = 0; s < count; s++) {
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
            __syncthreads();
            load(s + STAGES - 1, at == 0 ? STAGES - 1 : at - 1);
            stage<A_ALONG, B_ALONG>(as + at * A_LEN, bs + at * B_LEN);
            at = at + 1 == STAGES ? 0 : at + 1;
        }
        asm volatile("cp.async.wait_group 0;");
    }

    // Joins the parts of the sums; neighbouring threads get neighbouring columns.
    template <class F> __device__ __forceinline__ void each(float *shared, F f) {
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, q = lane & 3;
        const int m0 = (warp & 1) * (BM / 2), n0 = (warp >> 1 & 1) * 32;
        float *own = shared + (warp >> 2) * BM * OUT;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < MT; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    own[(m0 + 16 * i + g + (e >> 1) * 8) * OUT + n0 + 8 * j + 2 * q + (e & 1)] = acc[i][j][e];
        __syncthreads();
#pragma unroll
        for (int e = 0; e < BM * BN / TILE_THREADS; e++) {
            const int u = threadIdx.x + e * TILE_THREADS, m = u / BN, n = u % BN;
            float sum = 0.f;
#pragma unroll
            for (int part = 0; part < PARTS; part++) sum += shared[(part * BM + m) * OUT + n];
            f(m, n, sum);
        }
    }
};

template <int BM> struct DoubleTile {
    static constexpr int KB = 16, MT = BM / 32;
    double acc[MT][4];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < MT; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) acc[i][j] = 0.0;
    }

    template <bool A_ALONG, bool B_ALONG>
    __device__ __forceinline__ void add(const Side &a, const Side &b, int K, double *shared) {
        double *as = shared, *bs = shared + KB * (BM + 1);
        const int x = threadIdx.x % 16, y = threadIdx.x / 16;
        for (int k0 = 0; k0 < K; k0 += KB) {
            __syncthreads();
            for (int u = threadIdx.x; u < KB * BM; u += TILE_THREADS) {
                const int i = A_ALONG ? u / KB : u % BM, k = A_ALONG ? u % KB : u / BM;
                const bool in = i < a.extent && k0 + k < K;
                as[k * (BM + 1) + i] = in ? a.p[A_ALONG ? (I)i * a.ld + k0 + k : (I)(k0 + k) * a.ld + i] : 0.0;
            }
            for (int u = threadIdx.x; u < KB * BN; u += TILE_THREADS) {
                const int i = B_ALONG ? u / KB : u % BN, k = B_ALONG ? u % KB : u / BN;
                const bool in = i < b.extent && k0 + k < K;
                bs[k * (BN + 1) + i] = in ? b.p[B_ALONG ? (I)i * b.ld + k0 + k : (I)(k0 + k) * b.ld + i] : 0.0;
            }
            __syncthreads();
#pragma unroll 4
            for (int k = 0; k < KB; k++) {
                double av[MT], bv[4];
#pragma unroll
                for (int i = 0; i < MT; i++) av[i] = as[k * (BM + 1) + y + 32 * i];
#pragma unroll
                for (int j = 0; j < 4; j++) bv[j] = bs[k * (BN + 1) + x + 16 * j];
#pragma unroll
                for (int i = 0; i < MT; i++)
#pragma unroll
                    for (int j = 0; j < 4; j++) acc[i][j] = fma(av[i], bv[j], acc[i][j]);
            }
        }
    }

    template <class F> __device__ __forceinline__ void each(double *, F f) {
        const int x = threadIdx.x % 16, y = threadIdx.x / 16;
#pragma unroll
        for (int i = 0; i < MT; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) f(y + 32 * i, x + 16 * j, acc[i][j]);
    }
};

template <class N, int BM> struct TileOf {
    using Type = FloatTile<BM>;
};
template <int BM> struct TileOf<double, BM> {
    using Type = DoubleTile<BM>;
};
