// Products of many rows with a weight matrix on Hopper's matrix units, where both factors lie in memory as those units
// want them in shared memory. A tile of R rows and 32 columns is one piece of R · 128 bytes: in a row the 16-byte chunks
// are exchanged by the row's number, so that no two lie in the same banks. So a whole tile, or eight of its rows, is one
// bulk copy. With TERMS = 3 each factor is two tiles, one after the other: the numbers rounded to TF32, and what rounding
// left over.
//
// A block has groups of four warps, each for 64 columns of the result; one thread fetches tiles ahead of all. The units see
// the result transposed, so that a block may have any multiple of eight rows. Values have tiles of TALL rows.

#define TILED_K 32
#define TALL_LEN (TALL * TILED_K)
#define PARTS (TERMS == 3 ? 2 : 1)

static __device__ __forceinline__ int tiled_place(int row, int col) {
    return row * TILED_K + (((col >> 2) ^ (row & 7)) << 2) + (col & 3);
}

// A weight matrix as tiles of `tall` rows; number (n, k) lies at from[n · along_n + k · along_k]. One block a tile.
struct Tiling {
    long long from, to;
    int k, n, along_k, along_n, tall;
};

extern "C" __global__ void __launch_bounds__(256) tile_weights(T *A, const Tiling *tilings, const int2 *tiles) {
    wait_for_kernel_before();
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

// Returns once all has been read, so that shared memory may be overwritten.
static __device__ __forceinline__ void bulk_store(float *to, const float *from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                 "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;"
        ::"l"(to), "r"(shared_at(from)), "r"(bytes) : "memory");
}

// Where rows come from that are no tiles: a value with few columns that all threads read.
struct PlainRows {
    const float *p;
    int ld, rows, cols;
};

// 64 · GROUPS columns and ROWS rows of the result; MULTIPLY, with its ROWS / 2 numbers of each thread, is written for that.
template <int GROUPS, int ROWS, int STAGES, bool PLAIN> struct TiledProduct {
    static constexpr int THREADS_OF_BLOCK = 128 * GROUPS;
    // Groups that share a tile of the weights, and tiles of them.
    static constexpr int SHARING = GROUPS < 2 ? 1 : 2, W_TILES = GROUPS / SHARING;
    static constexpr int W_LEN = 64 * SHARING * TILED_K, R_LEN = ROWS * TILED_K;
    static constexpr int ROWS_AT = PARTS * W_LEN * W_TILES, STAGE = ROWS_AT + PARTS * R_LEN;
    float d[ROWS / 2];

    static __device__ __forceinline__ void fill(float *shared, const PlainRows &a, int count) {
        constexpr int AT_ONCE = 8;
        const int all = R_LEN * count;
        for (int i0 = threadIdx.x; i0 < all; i0 += AT_ONCE * THREADS_OF_BLOCK) {
            float x[AT_ONCE];
#pragma unroll
            for (int e = 0; e < AT_ONCE; e++) {
                const int i = i0 + e * THREADS_OF_BLOCK, col = i % (TILED_K * count), row = i / (TILED_K * count);
                x[e] = row < a.rows && col < a.cols && i < all ? a.p[(I)row * a.ld + col] : 0.f;
            }
#pragma unroll
            for (int e = 0; e < AT_ONCE; e++) {
                const int i = i0 + e * THREADS_OF_BLOCK, col = i % (TILED_K * count), row = i / (TILED_K * count);
                if (i >= all) break;
                float *const to = shared + col / TILED_K * STAGE + ROWS_AT + tiled_place(row, col % TILED_K);
                const float up = tf32(x[e]);
                to[0] = up;
                if constexpr (TERMS == 3) to[R_LEN] = x[e] - up;
            }
        }
        asm volatile("fence.proxy.async.shared::cta;");
    }

    // Fetches tile `s` of each factor.
    static __device__ __forceinline__ void fetch(
        const float *weights, const float *rows, int s, int count, float *shared, unsigned long long *full) {
        float *const to = shared + s % STAGES * STAGE;
        unsigned long long *const here = full + s % STAGES;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
            ::"r"(shared_at(here)), "r"((PLAIN ? ROWS_AT : STAGE) * 4) : "memory");
        constexpr int LEN = PARTS * W_LEN;
        for (int tile = 0; tile < W_TILES; tile++)
            bulk_copy(to + tile * LEN, weights + ((I)tile * count + s) * LEN, LEN * 4, here);
        for (int part = 0; part < PARTS && !PLAIN; part++)
            bulk_copy(to + ROWS_AT + part * R_LEN, rows + ((I)s * PARTS + part) * TALL_LEN, R_LEN * 4, here);
    }

    // `weights` and `rows` are the tiles of this block's columns and rows, `count` of each.
    __device__ __forceinline__ void run(const float *weights, const float *rows, PlainRows plain, int count, float *shared) {
        __shared__ unsigned long long full[STAGES], empty[STAGES];
        if (threadIdx.x == 0) {
            for (int s = 0; s < STAGES; s++) {
                asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_at(full + s)) : "memory");
                asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_at(empty + s)), "n"(GROUPS) : "memory");
            }
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        }
        wait_for_kernel_before();
        if (threadIdx.x == 0)
            for (int s = 0; s < STAGES && s < count; s++) fetch(weights, rows, s, count, shared, full);
        if constexpr (PLAIN) fill(shared, plain, count);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ROWS / 2; i++) d[i] = 0.f;
        const int group = threadIdx.x >> 7;
        for (int s = 0; s < count; s++) {
            const int at = s % STAGES;
            wait_for(full + at, s / STAGES & 1);
            const float *const w = shared + at * STAGE + group / SHARING * (PARTS * W_LEN) + group % SHARING * 64 * TILED_K;
            const float *const x = shared + at * STAGE + ROWS_AT;
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int k = 0; k < TILED_K; k += 8) {
                if constexpr (TERMS == 3) {
                    MULTIPLY(d, describe(w + k), describe(x + R_LEN + k));
                    MULTIPLY(d, describe(w + W_LEN + k), describe(x + k));
                }
                MULTIPLY(d, describe(w + k), describe(x + k));
            }
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            // The product before this one is done: once all groups say so, its stage is filled again.
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            const int before = s - 1, next = before + STAGES;
            if (before < 0 || next >= count) continue;
            if ((threadIdx.x & 127) == 0)
                asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_at(empty + before % STAGES)) : "memory");
            if (threadIdx.x == 0) {
                wait_for(empty + before % STAGES, before / STAGES & 1);
                fetch(weights, rows, next, count, shared, full);
            }
            __syncwarp();
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
        for (int i = 0; i < ROWS / 2; i++) asm volatile("" : "+f"(d[i])::"memory");
    }

    // A thread's numbers: column of the block of number i, less 8 · (i >> 1 & 1), and row, less 8 · (i >> 2) + (i & 1).
    static __device__ __forceinline__ int first_col() { return (threadIdx.x >> 5) * 16 + (threadIdx.x >> 2 & 7); }
    static __device__ __forceinline__ int first_row() { return 2 * (threadIdx.x & 3); }

    // Each number of a thread becomes f(row, column, number). Places are 64 bits wide: what is the same in all of them is
    // then computed once.
    template <class F> __device__ __forceinline__ void each(int m0, int n0, F f) {
        const long long row = m0 + first_row(), col = n0 + first_col();
#pragma unroll
        for (int i = 0; i < ROWS / 2; i++) d[i] = f(row + (i >> 2) * 8 + (i & 1), col + (i >> 1 & 1) * 8, d[i]);
    }

    // Stores all numbers as tiles of a value with `cols` columns, a multiple of 32, by way of shared memory; `to` are the
    // tiles of this block's rows, all of which there is room for.
    __device__ __forceinline__ void store(float *to, int n0, int cols, float *shared) {
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            __syncthreads();
#pragma unroll
            for (int i = 0; i < ROWS / 2; i++) {
                const int row = first_row() + (i & 1), col = first_col() + (i >> 1 & 1) * 8, below = (i >> 2) * 8;
                const float number = part == 0 ? tf32(d[i]) : d[i];
                shared[col / TILED_K * R_LEN + tiled_place(row, col % TILED_K) + below * TILED_K] = number;
                d[i] -= number;
            }
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncthreads();
            const int tile = threadIdx.x, column = n0 / TILED_K + tile;
            if (tile < 2 * GROUPS && column * TILED_K < cols)
                bulk_store(to + ((I)column * PARTS + part) * TALL_LEN, shared + tile * R_LEN, R_LEN * 4);
        }
    }
};
