// Sums over the batch, all of a phase in one launch: Σ aᵀ·b by tiles, Σ of rows by columns. Tables say which.

struct Term {
    long long a, b; // where they begin; a < 0: no product
    int lda, ldb, rows, wide;
};
struct Sum {
    long long out;
    int m, n, first, count;
};
// Part `part` of `parts` of the terms' rows; `slot` is where the tile's parts meet.
struct Task {
    int sum, m0, n0, part, parts, slot;
};

extern "C" __global__ void __launch_bounds__(TILE_THREADS, 2)
    sums(T *A, const Task *tasks, const Sum *sums, const Term *terms, T *partial, unsigned *tickets) {
    wait_for_kernel_before();
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    T *shared = (T *)shared_bytes;
    const Task task = tasks[blockIdx.x];
    const Sum s = sums[task.sum];
    if (terms[s.first].a < 0) {
        // Eight columns a block, 64 threads a column.
        const int c = task.n0 + (threadIdx.x & 7), lane = threadIdx.x >> 3;
        T sum = T(0);
        if (c < s.n)
            for (int k = s.first; k < s.first + s.count; k++) {
                const Term t = terms[k];
#pragma unroll 8
                for (int r = lane; r < t.rows; r += TILE_THREADS / 8) sum += A[t.b + (I)r * t.ldb + c];
            }
        shared[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x < 8 && c < s.n) {
            T all = T(0);
            for (int k = 0; k < TILE_THREADS / 8; k++) all += shared[k * 8 + threadIdx.x];
            A[s.out + c] = all;
        }
        return;
    }
    typename TileOf<T, 64>::Type tile;
    tile.clear();
    for (int k = s.first; k < s.first + s.count; k++) {
        const Term t = terms[k];
        // Whole groups of 64 rows, so that a part's sums do not depend on how many parts there are elsewhere.
        const int groups = (t.rows + 63) / 64;
        const int from = groups * task.part / task.parts * 64;
        const int end = groups * (task.part + 1) / task.parts * 64, to = end < t.rows ? end : t.rows;
        const Side a{A + t.a + (I)from * t.lda + task.m0, t.lda, s.m - task.m0, t.wide & 1};
        const Side b{A + t.b + (I)from * t.ldb + task.n0, t.ldb, s.n - task.n0, t.wide & 2};
        if (to > from) tile.template add<false, false>(a, b, to - from, shared);
    }
    if (task.parts == 1) {
        tile.each(shared, [&](int m, int n, T value) {
            m += task.m0, n += task.n0;
            if (m < s.m && n < s.n) A[s.out + (I)m * s.n + n] = value;
        });
        return;
    }
    // The last part to come joins all of them, in their order.
    T *const tiles = partial + (I)task.slot * 4096;
    tile.each(shared, [&](int m, int n, T value) { tiles[task.part * 4096 + m * 64 + n] = value; });
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(tickets + task.slot, 1) == task.parts - 1;
        if (last) tickets[task.slot] = 0;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (int u = threadIdx.x; u < 4096; u += TILE_THREADS) {
        const int m = task.m0 + u / 64, n = task.n0 + u % 64;
        T sum = T(0);
        for (int part = 0; part < task.parts; part++) sum += __ldcg(tiles + part * 4096 + u);
        if (m < s.m && n < s.n) A[s.out + (I)m * s.n + n] = sum;
    }
}

// Transposed copies of weights, for products the other way; 32 × 32 numbers a block.
struct Turn {
    long long from, to;
    int rows, cols, r0, c0;
};

extern "C" __global__ void __launch_bounds__(256) turn(T *A, const Turn *turns) {
    wait_for_kernel_before();
    __shared__ T tile[32][33];
    const Turn t = turns[blockIdx.x];
    const int x = threadIdx.x & 31, y = threadIdx.x >> 5;
    for (int r = y; r < 32; r += 8)
        if (t.r0 + r < t.rows && t.c0 + x < t.cols) tile[r][x] = A[t.from + (I)(t.r0 + r) * t.cols + t.c0 + x];
    __syncthreads();
    for (int c = y; c < 32; c += 8)
        if (t.c0 + c < t.cols && t.r0 + x < t.rows) A[t.to + (I)(t.c0 + c) * t.rows + t.r0 + x] = tile[x][c];
}
