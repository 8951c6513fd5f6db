// Sums over the batch, all of a phase in one launch: Σ aᵀ·b by tiles, Σ of rows by columns. Tables say which.

struct Term {
    long long a, b; // where they begin; a < 0: no product
    int lda, ldb, rows, wide;
};
struct Sum {
    long long out;
    int m, n, first, count;
};
struct Task {
    int sum, m0, n0, unused;
};

extern "C" __global__ void __launch_bounds__(TILE_THREADS, 2)
    sums(T *A, const Task *tasks, const Sum *sums, const Term *terms) {
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
        const Side a{A + t.a + task.m0, t.lda, s.m - task.m0, t.wide & 1};
        const Side b{A + t.b + task.n0, t.ldb, s.n - task.n0, t.wide & 2};
        tile.template add<false, false>(a, b, t.rows, shared);
    }
    tile.each(shared, [&](int m, int n, T value) {
        m += task.m0, n += task.n0;
        if (m < s.m && n < s.n) A[s.out + (I)m * s.n + n] = value;
    });
}

// Transposed copies of weights, for products the other way; 32 × 32 numbers a block.
struct Turn {
    long long from, to;
    int rows, cols, r0, c0;
};

extern "C" __global__ void __launch_bounds__(256) turn(T *A, const Turn *turns) {
    __shared__ T tile[32][33];
    const Turn t = turns[blockIdx.x];
    const int x = threadIdx.x & 31, y = threadIdx.x >> 5;
    for (int r = y; r < 32; r += 8)
        if (t.r0 + r < t.rows && t.c0 + x < t.cols) tile[r][x] = A[t.from + (I)(t.r0 + r) * t.cols + t.c0 + x];
    __syncthreads();
    for (int c = y; c < 32; c += 8)
        if (t.c0 + c < t.cols && t.r0 + x < t.rows) A[t.to + (I)(t.c0 + c) * t.rows + t.r0 + x] = tile[x][c];
}
