// Products of many rows on Hopper's matrix units, which read both factors from shared memory. A block of 128 · GROUPS
// threads makes 64 · GROUPS × 64 numbers. Both factors are contiguous along k, and their rows begin at 16-byte borders.

#define HOPPER_BN 64

static __device__ __forceinline__ void multiply_group(float (&d)[32], unsigned long long a, unsigned long long b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, 1, 1, 1;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(a), "l"(b));
}

template <int GROUPS> struct HopperTile {
    static constexpr int THREADS_OF_TILE = 128 * GROUPS, BM = 64 * GROUPS, KB = 32, STAGES = 4;
    static constexpr int A_LEN = BM * KB, B_LEN = HOPPER_BN * KB, STAGE = A_LEN + B_LEN;
    float d[32];

    static __device__ __forceinline__ int place(int row, int chunk) { return row * KB + ((chunk ^ (row & 7)) << 2); }

    template <int ROWS> static __device__ __forceinline__ void fetch(float *to, const Side &s, int k0, int K) {
#pragma unroll
        for (int e = 0; e < ROWS * 8 / THREADS_OF_TILE; e++) {
            const int u = threadIdx.x + e * THREADS_OF_TILE, row = u >> 3, chunk = u & 7, k = k0 + 4 * chunk;
            int left = row < s.extent ? K - k : 0;
            left = left < 0 ? 0 : (left > 4 ? 4 : left);
            copy16(to + place(row, chunk), left ? s.p + (I)row * s.ld + k : s.p, 4 * left);
        }
    }

    // Each thread splits the numbers that it fetched itself: the rounded ones stay, what is left goes elsewhere.
    static __device__ __forceinline__ void split(float *at, float *left) {
#pragma unroll
        for (int e = 0; e < STAGE / 4 / THREADS_OF_TILE; e++) {
            // Chunks of A, then of B, as they were fetched.
            const int u = threadIdx.x + e * THREADS_OF_TILE;
            const int where = u < A_LEN / 4 ? place(u >> 3, u & 7) : A_LEN + place((u - A_LEN / 4) >> 3, u & 7);
            float4 x = *(float4 *)(at + where), y;
            auto part = [](float &x, float &y) {
                const float up = tf32(x);
                y = x - up, x = up;
            };
            part(x.x, y.x), part(x.y, y.y), part(x.z, y.z), part(x.w, y.w);
            *(float4 *)(at + where) = x;
            *(float4 *)(left + where) = y;
        }
    }

    __device__ __forceinline__ void run(const Side &a, const Side &b, int K, float *shared) {
        const int group = threadIdx.x >> 7, count = (K + KB - 1) / KB;
        float *const lefts = shared + STAGES * STAGE;
#pragma unroll
        for (int i = 0; i < 32; i++) d[i] = 0.f;
        auto load = [&](int s, int at) {
            if (s < count) {
                fetch<BM>(shared + at * STAGE, a, s * KB, K);
                fetch<HOPPER_BN>(shared + at * STAGE + A_LEN, b, s * KB, K);
            }
            asm volatile("cp.async.commit_group;");
        };
        load(0, 0), load(1, 1);
        int third = 0;
        for (int s = 0; s < count; s++) {
            float *const stage = shared + (s & 3) * STAGE, *const left = lefts + third * STAGE;
            third = third == 2 ? 0 : third + 1;
            asm volatile("cp.async.wait_group 1;");
            if constexpr (TERMS == 3) split(stage, left);
            asm volatile("fence.proxy.async.shared::cta;");
            __syncthreads();
            asm volatile("wgmma.fence.sync.aligned;");
#pragma unroll
            for (int k = 0; k < KB; k += 8) {
                const unsigned long long x = describe(stage + group * 64 * KB + k), y = describe(stage + A_LEN + k);
                if constexpr (TERMS == 3) {
                    multiply_group(d, describe(left + group * 64 * KB + k), y);
                    multiply_group(d, x, describe(left + A_LEN + k));
                }
                multiply_group(d, x, y);
            }
            asm volatile("wgmma.commit_group.sync.aligned;");
            // The product before the last is done in all groups, since all came past the barrier; it read the stage that
            // is overwritten now. The last one may still run.
            load(s + 2, (s + 2) & 3);
            asm volatile("wgmma.wait_group.sync.aligned 1;");
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;");
#pragma unroll
        for (int i = 0; i < 32; i++) asm volatile("" : "+f"(d[i])::"memory");
        asm volatile("cp.async.wait_group 0;");
    }

    template <class F> __device__ __forceinline__ void each(F f) {
        const int lane = threadIdx.x & 31, m0 = (threadIdx.x >> 5) * 16 + (lane >> 2), n0 = 2 * (lane & 3);
#pragma unroll
        for (int i = 0; i < 32; i++) f(m0 + (i >> 1 & 1) * 8, n0 + (i >> 2) * 8 + (i & 1), d[i]);
    }
};
