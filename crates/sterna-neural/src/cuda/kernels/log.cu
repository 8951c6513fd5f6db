// What the host reads of ladders that write a log, and pairs that are swapped plainly. PAGE is the length of a page:
// sterna's `engine::Page` says where on it what stands. PLAIN lists, for each pair, whether it is swapped plainly.

struct Log {
    // A page of each ladder, iteration after iteration, from the one after *first on.
    double *pages;
    const unsigned long long *first;
    // The first bad proposal of each replica since the log was opened, and its iteration; 0 if there was none.
    double *bad_x;
    unsigned long long *bad_at;
};

// After each local move: a point at which the target answered NaN or +∞.
extern "C" __global__ void __launch_bounds__(128) witness(Ladders s, Log log) {
    wait_for_kernel_before();
    const int row = ROW, lane = LANE;
    if (row >= LADDERS * CHAINS) return;
    const double log_target = s.end_log_target[row];
    const bool bad = isnan(log_target) || log_target == 1.0 / 0.0;
    if (!bad || log.bad_at[row] > 0) return;
    for (int c = lane; c < D; c += LANES) log.bad_x[row * D + c] = s.end_x[row * D + c];
    __syncwarp(row_threads());
    if (lane == 0) log.bad_at[row] = *s.iteration + 1;
}

// At the end of an iteration: its page. The statistics hold this iteration alone, since they are cleared each time; a sum
// of one exponential is that exponential.
extern "C" __global__ void __launch_bounds__(128) note(Ladders s, Log log) {
    wait_for_kernel_before();
    const int ladder = blockIdx.x * 4 + (threadIdx.x >> 5), lane = threadIdx.x & 31;
    if (ladder >= LADDERS) return;
    double *page = log.pages + ((*s.iteration - 1 - *log.first) * LADDERS + ladder) * PAGE;
    for (int c = lane; c < CHAINS; c += 32) {
        const int place = ladder * CHAINS + c;
        page[c] = s.acceptance[place];
        // A fresh draw is evaluated once, though every local move meets it.
        page[CHAINS + c] = c == 0 ? s.bad[place] > 0 : s.bad[place];
        page[2 * CHAINS + c] = s.log_target[place];
        s.acceptance[place] = 0.0, s.bad[place] = 0;
    }
    for (int p = lane; p < P; p += 32) {
        const int place = ladder * (CHAINS - 1) + FIRST + 2 * p - 1;
        double *swap = page + 3 * CHAINS + 4 * p, *weights = s.weights + 4 * place;
        swap[0] = weights[0], swap[1] = -weights[2], swap[2] = s.rejection[place], swap[3] = s.accepted[place];
        weights[0] = weights[2] = -1.0 / 0.0, weights[1] = weights[3] = 0.0;
        s.rejection[place] = 0.0, s.accepted[place] = 0;
    }
    const int row = ladder * CHAINS + s.replica_of[ladder * CHAINS + CHAINS - 1];
    for (int c = lane; c < D; c += 32) page[PAGE - D + c] = s.x[row * D + c];
}

#if STEPS > 0
static __device__ const bool plain_pair[CHAINS] = {PLAIN};

// Before swaps are decided: journeys of plain pairs end where they began.
extern "C" __global__ void __launch_bounds__(128) stay(Ladders s, Journeys j) {
    wait_for_kernel_before();
    const int journey = ROW, lane = LANE;
    if (journey >= 2 * LADDERS * P) return;
    const bool forward = journey < LADDERS * P;
    const int pair = FIRST + 2 * (journey % (LADDERS * P) % P), row = j.row[journey];
    if (!plain_pair[pair - 1]) return;
    double squares = 0.0;
    for (int c = lane; c < D; c += LANES) {
        const double x = s.x[row * D + c];
        squares += x * x;
        j.x[journey * D + c] = x;
        j.end_score[journey * D + c] = s.score[row * D + c];
    }
    squares = row_total(squares);
    if (lane > 0) return;
    const double log_reference = -0.5 * squares - D * HALF_LOG_TAU, log_target = s.log_target[row];
    const double end = interpolate(s.betas[forward ? pair : pair - 1], log_reference, log_target);
    j.log_target[journey] = log_target;
    j.log_weight[journey] = log_weight(forward, j.start[journey], end);
}
#endif
