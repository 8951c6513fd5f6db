// Products of many rows with a weight matrix on Hopper's matrix units, where both factors lie in memory as those units
// want them in shared memory. A tile of R rows and 32 columns is one piece of R · 128 bytes: in a row the 16-byte chunks
// are exchanged by the row's number, so that no two lie in the same banks. So a whole tile is one bulk copy. With TERMS = 3
// each factor is two tiles, one after the other: the numbers rounded to TF32, and what rounding left over.
//
// A block has two groups of four warps, each for 64 rows, and one warp that fetches tiles ahead of them.

#define TILED_ROWS 128
#define TILED_K 32
#define TILED_THREADS 288
#define PARTS (TERMS == 3 ? 2 : 1)

static __device__ __forceinline__ int tiled_place(int row, int col) {
    return row * TILED_K + (((col >> 2) ^ (row & 7)) << 2) + (col & 3);
}

static __device__ __forceinline__ float tf32(float x) {
    return __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
}

// A weight matrix as tiles of `tall` rows; number (n, k) lies at from[n · along_n + k · along_k]. One block a tile.
struct Tiling {
    long long from, to;
    int k, n, along_k, along_n, tall;
};

extern "C" __global__ void __launch_bounds__(256) tile_weights(T *A, const Tiling *tilings, const int2 *tiles) {
    const Tiling t = tilings[tiles[blockIdx.x].x];
    const int number = tiles[blockIdx.x].y, blocks = (t.k + TILED_K - 1) / TILED_K;
    const int n0 = number / blocks * t.tall, k0 = number % blocks * TILED_K, length = t.tall * TILED_K;
    T *const to = A + t.to + (I)number * (PARTS * length);
    for (int i = threadIdx.x; i < length; i += 256) {
        // Neighbouring threads read neighbouring numbers.
        const int row = t.along_k == 1 ? i / TILED_K : i % t.tall, col = t.along_k == 1 ? i % TILED_K : i / t.tall;
        const bool inside = n0 + row < t.n && k0 + col < t.k;
        const T x = inside ? A[t.from + (I)(n0 + row) * t.along_n + (I)(k0 + col) * t.along_k] : T(0);
        const T up = tf32(x);
        to[tiled_place(row, col)] = up;
        if (TERMS == 3) to[length + tiled_place(row, col)] = x - up;
    }
}

static __device__ __forceinline__ unsigned shared_at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

static __device__ __forceinline__ void wait_for(unsigned long long *barrier, unsigned parity) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra over;\nbra again;\nover:\n}"
        ::"r"(shared_at(barrier)), "r"(parity) : "memory");
}

static __device__ __forceinline__ void bulk_copy(float *to, const float *from, int bytes, unsigned long long *barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        ::"r"(shared_at(to)), "l"(from), "r"(bytes), "r"(shared_at(barrier)) : "memory");
}

static __device__ __forceinline__ unsigned long long describe(const float *p) {
    return (shared_at(p) & 0x3FFFF) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

// Where the first factor comes from: tiles, or rows of a value with few columns that all threads read.
struct PlainRows {
    const float *p;
    int ld, rows, cols;
};

// WIDTH columns of the result; MULTIPLY, with its WIDTH / 2 numbers of each thread, is written for that width.
template <int WIDTH, int STAGES, bool PLAIN> struct TiledProduct {
    static constexpr int A_LEN = TILED_ROWS * TILED_K, B_LEN = WIDTH * TILED_K, STAGE = PARTS * (A_LEN + B_LEN);
    float d[WIDTH / 2];

    static __device__ __forceinline__ void fill(float *shared, const PlainRows &a, int count) {
        constexpr int AT_ONCE = 8;
        const int all = TILED_ROWS * TILED_K * count;
        for (int i0 = threadIdx.x; i0 < all; i0 += AT_ONCE * TILED_THREADS) {
            float x[AT_ONCE];
#pragma unroll
            for (int e = 0; e < AT_ONCE; e++) {
                const int i = i0 + e * TILED_THREADS, col = i % (TILED_K * count), row = i / (TILED_K * count);
                x[e] = row < a.rows && col < a.cols && i < all ? a.p[(I)row * a.ld + col] : 0.f;
            }
#pragma unroll
            for (int e = 0; e < AT_ONCE; e++) {
                const int i = i0 + e * TILED_THREADS, col = i % (TILED_K * count), row = i / (TILED_K * count);
                if (i >= all) break;
                float *const to = shared + col / TILED_K * STAGE + tiled_place(row, col % TILED_K);
                const float up = tf32(x[e]);
                to[0] = up;
                if constexpr (TERMS == 3) to[A_LEN] = x[e] - up;
            }
        }
        asm volatile("fence.proxy.async.shared::cta;");
    }

    // `a` and `b` are the tiles of this block's rows and columns, `count` of each.
    __device__ __forceinline__ void run(const float *a, PlainRows plain, const float *b, int count, float *shared) {
        __shared__ unsigned long long full[STAGES], empty[STAGES];
        if (threadIdx.x == 0) {
            for (int s = 0; s < STAGES; s++) {
                asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_at(full + s)) : "memory");
                asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(shared_at(empty + s)) : "memory");
            }
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        }
        if constexpr (PLAIN) fill(shared, plain, count);
        __syncthreads();
        const int group = threadIdx.x >> 7;
        if (group == 2) {
            if (threadIdx.x == 256)
                for (int s = 0; s < count; s++) {
                    const int at = s % STAGES, turn = s / STAGES;
                    if (turn > 0) wait_for(empty + at, (turn - 1) & 1);
                    float *const to = shared + at * STAGE;
                    const int a_bytes = PLAIN ? 0 : PARTS * A_LEN * 4, b_bytes = PARTS * B_LEN * 4;
                    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                        ::"r"(shared_at(full + at)), "r"(a_bytes + b_bytes) : "memory");
                    if (!PLAIN) bulk_copy(to, a + (I)s * (PARTS * A_LEN), a_bytes, full + at);
                    bulk_copy(to + PARTS * A_LEN, b + (I)s * (PARTS * B_LEN), b_bytes, full + at);
                }
            return;
        }
#pragma unroll
        for (int i = 0; i < WIDTH / 2; i++) d[i] = 0.f;
        const bool leader = (threadIdx.x & 127) == 0;
        for (int s = 0; s < count; s++) {
            const int at = s % STAGES;
            wait_for(full + at, s / STAGES & 1);
            const float *const x = shared + at * STAGE + group * 64 * TILED_K, *const y = shared + at * STAGE + PARTS * A_LEN;
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int k = 0; k < TILED_K; k += 8) {
                if constexpr (TERMS == 3) {
                    MULTIPLY(d, describe(x + A_LEN + k), describe(y + k));
                    MULTIPLY(d, describe(x + k), describe(y + B_LEN + k));
                }
                MULTIPLY(d, describe(x + k), describe(y + k));
            }
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            // The product before this one is done: its stage may be filled again.
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            if (leader && s > 0)
                asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_at(empty + (s - 1) % STAGES)) : "memory");
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
        for (int i = 0; i < WIDTH / 2; i++) asm volatile("" : "+f"(d[i])::"memory");
    }

    // Each number of a thread becomes f(row, column, number). Places are 64 bits wide: what is the same in all of them is
    // then computed once.
    template <class F> __device__ __forceinline__ void each(int m0, int n0, F f) {
        if (threadIdx.x >= 256) return;
        const int lane = threadIdx.x & 31;
        const long long row = m0 + (threadIdx.x >> 5) * 16 + (lane >> 2), col = n0 + 2 * (lane & 3);
#pragma unroll
        for (int i = 0; i < WIDTH / 2; i++) d[i] = f(row + (i >> 1 & 1) * 8, col + (i >> 2) * 8 + (i & 1), d[i]);
    }

    // Stores all numbers as tiles of a value with `rows` rows and `cols` columns, a multiple of 32; `to` are the tiles of
    // this block's rows.
    __device__ __forceinline__ void store(float *to, int m0, int n0, int rows, int cols) {
        if (threadIdx.x >= 256) return;
        const int lane = threadIdx.x & 31, row = (threadIdx.x >> 5) * 16 + (lane >> 2);
        // Rows eight apart have their chunks in the same places.
        float *const at = to + n0 / TILED_K * (PARTS * A_LEN) + row * TILED_K + 2 * (lane & 1);
        const int chunk = (lane >> 1 & 1) ^ (row & 7);
#pragma unroll
        for (int i = 0; i < WIDTH / 2; i += 2) {
            const int j = i >> 2, below = (i >> 1 & 1) * 8;
            if (rows % TILED_ROWS && m0 + row + below >= rows) continue;
            if (cols % WIDTH && n0 + j * 8 >= cols) continue;
            float *const place = at + j / 4 * (PARTS * A_LEN) + below * TILED_K + ((2 * (j % 4) ^ chunk) << 2);
            const float2 up = {tf32(d[i]), tf32(d[i + 1])};
            *(float2 *)place = up;
            if constexpr (TERMS == 3) *(float2 *)(place + A_LEN) = {d[i] - up.x, d[i + 1] - up.y};
        }
    }
};
