// Algorithm 1 for many ladders at once, between the recorded computations (local moves, drift, target). LANES threads, two
// coordinates each, for a replica or a journey, one warp for a ladder. D, CHAINS, LADDERS, KEY (the first row's, among those of all
// processes), STEPS (K), SEED and JITTER are
// defined before; P is the number of pairs proposed by each ladder in this half, FIRST the first of them. The formulas
// step_mean, step_log_ratio and log_weight are written from the library's own.

struct Ladders {
    // Replicas: points, and the target's log density and score there.
    double *x, *log_target, *score;
    int *chain_of, *replica_of, *direction, *leg;
    long long *round_trips;
    // Statistics, ladder by ladder.
    double *acceptance, *rejection, *weights;
    long long *bad, *accepted;
    unsigned long long *iteration;
    const double *betas, *step_size, *scale, *interpolation, *noise, *backward_noise, *along_score;
    // The local move: inputs and results.
    double *move_x, *move_beta, *move_step, *move_momentum, *move_log_target, *move_score;
    const double *end_x, *end_log_target, *end_score, *end_log_ratio;
};

struct Journeys {
    double *target_x;
    const double *target_log_density, *target_score;
    float *lower, *upper, *time, *drift_x;
    const float *drift;
    int *row;
    double *x, *before, *score, *start, *squares, *log_ratio, *log_weight, *log_target, *end_score;
};

#define LANES (D <= 2 ? 1 : D <= 4 ? 2 : D <= 8 ? 4 : D <= 16 ? 8 : D <= 32 ? 16 : 32)
#define ROW ((blockIdx.x * 128 + threadIdx.x) / LANES)
#define LANE (threadIdx.x % LANES)
#define HALF_LOG_TAU 0.91893853320467274178

// The threads of a row, among those of its warp, and a sum over them.
static __device__ __forceinline__ unsigned row_threads() {
    return (LANES == 32 ? 0xffffffffu : (1u << LANES % 32) - 1) << (threadIdx.x % 32 / LANES * LANES);
}
static __device__ __forceinline__ double row_total(double x) {
#pragma unroll
    for (int d = LANES / 2; d > 0; d >>= 1) x += __shfl_xor_sync(row_threads(), x, d);
    return x;
}

// What a score of this squared length is multiplied with, so that it is nowhere longer than STEEPEST, where there is such a bound.
static __device__ __forceinline__ double tamed(double squares) {
#ifdef STEEPEST
    return 1.0 / sqrt(1.0 + squares / (STEEPEST * STEEPEST));
#else
    return 1.0;
#endif
}

static __device__ __forceinline__ double interpolate(double beta, double log_reference, double log_target) {
    if (beta <= 0.0) return log_reference;
    return log_target < 1.0 / 0.0 ? path_log_density(beta, log_reference, log_target) : -1.0 / 0.0;
}

// Line 3: momenta and steps of local moves; chain 0 is drawn anew and stays there, its step being zero.
extern "C" __global__ void __launch_bounds__(128) begin(Ladders s, int move) {
    wait_for_kernel_before();
    const int row = ROW, lane = LANE;
    if (row >= LADDERS * CHAINS) return;
    const int chain = s.chain_of[row];
    const unsigned long long t = *s.iteration + 1;
    const double shorter = 1.0 - JITTER * unit(philox(SEED, t, KEY + row, (LOCAL + 3 * move) << 16).a);
    const double size = chain == 0 ? 0.0 : s.step_size[chain] * shorter;
    for (int b = lane; 2 * b < D; b += LANES) {
        double v[2], fresh[2];
        normal_pair(philox(SEED, t, KEY + row, (LOCAL + 3 * move + 1) << 16 | b), v[0], v[1]);
        const bool draw = chain == 0 && move == 0;
        if (draw) normal_pair(philox(SEED, t, KEY + row, REFERENCE << 16 | b), fresh[0], fresh[1]);
        for (int k = 0; k < 2 && 2 * b + k < D; k++) {
            const int at = row * D + 2 * b + k;
            s.move_x[at] = draw ? fresh[k] : s.x[at];
            s.move_momentum[at] = v[k];
            s.move_step[at] = size * s.scale[chain * D + 2 * b + k];
            // Chain 0 stays where it was drawn: no force moves it, whatever an earlier point had.
            s.move_score[at] = chain == 0 ? 0.0 : s.score[at];
        }
    }
    if (lane == 0) s.move_beta[row] = s.betas[chain], s.move_log_target[row] = s.log_target[row];
}

extern "C" __global__ void __launch_bounds__(128) settle(Ladders s, int move) {
    wait_for_kernel_before();
    const int row = ROW, lane = LANE;
    if (row >= LADDERS * CHAINS) return;
    const int chain = s.chain_of[row], place = row / CHAINS * CHAINS + chain;
    const unsigned long long t = *s.iteration + 1;
    const double ratio = s.end_log_ratio[row], log_target = s.end_log_target[row];
    const bool bad = isnan(log_target) || log_target == 1.0 / 0.0;
    const double u = unit(philox(SEED, t, KEY + row, (LOCAL + 3 * move + 2) << 16).a);
    const bool accept = chain == 0 || (!bad && ratio - log(u) > 0.0); // false for NaN
    if (accept) {
        for (int c = lane; c < D; c += LANES) s.x[row * D + c] = s.end_x[row * D + c], s.score[row * D + c] = s.end_score[row * D + c];
        if (lane == 0) s.log_target[row] = log_target;
    }
    if (lane == 0) {
        if (chain > 0) s.acceptance[place] += isnan(ratio) ? 0.0 : exp(fmin(ratio, 0.0));
        s.bad[place] += bad;
    }
}

// Line 4 and the start of lines 5–10: forward journeys first, then backward ones.
extern "C" __global__ void __launch_bounds__(128) depart(Ladders s, Journeys j) {
    wait_for_kernel_before();
    const int journey = ROW, lane = LANE;
    // Nothing else here asks for the iteration's number: from now on it counts as begun.
    if (blockIdx.x == 0 && threadIdx.x == 0) *s.iteration += 1;
    if (journey >= 2 * LADDERS * P) return;
    const bool forward = journey < LADDERS * P;
    const int q = journey % (LADDERS * P), ladder = q / P, pair = FIRST + 2 * (q % P);
    const int row = ladder * CHAINS + s.replica_of[ladder * CHAINS + (forward ? pair - 1 : pair)];
    const double low = s.betas[pair - 1], high = s.betas[pair], beta = forward ? low : high;
    double squares = 0.0, steep = 0.0;
    for (int c = lane; c < D; c += LANES) {
        const double x = s.x[row * D + c], score = s.score[row * D + c];
        const double mixed = beta > 0.0 ? path_score(beta, x, score) : -x;
        squares += x * x, steep += mixed * mixed;
        j.x[journey * D + c] = x;
        j.score[journey * D + c] = mixed;
        j.end_score[journey * D + c] = score;
        if (STEPS > 0) j.drift_x[journey * D + c] = (float)x;
    }
    squares = row_total(squares);
    if (STEPS > 0) {
        const double by = tamed(row_total(steep));
        for (int c = lane; c < D; c += LANES) j.score[journey * D + c] *= by;
    }
    if (lane > 0) return;
    const double log_reference = -0.5 * squares - D * HALF_LOG_TAU, log_target = s.log_target[row];
    j.row[journey] = row;
    j.start[journey] = interpolate(beta, log_reference, log_target);
    j.log_target[journey] = log_target;
    j.log_ratio[journey] = 0.0;
    if (STEPS > 0) {
        j.lower[journey] = low, j.upper[journey] = high, j.time[journey] = forward ? 0.0f : 1.0f;
        return;
    }
    const double end = interpolate(forward ? high : low, log_reference, log_target);
    j.log_weight[journey] = log_weight(forward, j.start[journey], end);
}

#if STEPS > 0
// Variances of the n-th step walked and of the one that returns.
static __device__ __forceinline__ void variances(const Ladders &s, bool forward, int pair, int k, double &there, double &back) {
    const double p = 2.0 * s.noise[(pair - 1) * STEPS + k - 1] / STEPS;
    const double q = 2.0 * s.backward_noise[(pair - 1) * STEPS + k - 1] / STEPS;
    there = forward ? p : q, back = forward ? q : p;
}

// How much of the score the drift has besides its network's part, at path time k/K.
static __device__ __forceinline__ double along_score(const Ladders &s, int pair, int k) {
    return s.along_score[(pair - 1) * (STEPS + 1) + k];
}

extern "C" __global__ void __launch_bounds__(128) walk(Ladders s, Journeys j, int n) {
    wait_for_kernel_before();
    const int journey = ROW, lane = LANE;
    if (journey >= 2 * LADDERS * P) return;
    const bool forward = journey < LADDERS * P;
    const int pair = FIRST + 2 * (journey % (LADDERS * P) % P);
    const int k = forward ? n : STEPS + 1 - n, to = forward ? n : STEPS - n;
    double there, back;
    variances(s, forward, pair, k, there, back);
    const double root = sqrt(there), step = (forward ? 1.0 : -1.0) / STEPS;
    const double share = along_score(s, pair, forward ? n - 1 : STEPS + 1 - n);
    const unsigned long long t = *s.iteration;
    const unsigned phase = (forward ? FORWARD : BACKWARD) + k;
    double squares = 0.0;
    for (int b = lane; 2 * b < D; b += LANES) {
        double z[2];
        normal_pair(philox(SEED, t, KEY + j.row[journey], phase << 16 | b), z[0], z[1]);
        for (int e = 0; e < 2 && 2 * b + e < D; e++) {
            const int at = journey * D + 2 * b + e;
            const double x = j.x[at], score = j.score[at], drift = (double)j.drift[at] + share * score;
            const double y = step_mean(x, there, score, step * drift) + root * z[e];
            squares += z[e] * z[e];
            j.before[at] = x, j.x[at] = y, j.target_x[at] = y, j.drift_x[at] = (float)y;
        }
    }
    squares = row_total(squares);
    if (lane == 0) j.squares[journey] = squares, j.time[journey] = (float)((double)to / STEPS);
}

extern "C" __global__ void __launch_bounds__(128) weigh(Ladders s, Journeys j, int n) {
    wait_for_kernel_before();
    const int journey = ROW, lane = LANE;
    if (journey >= 2 * LADDERS * P) return;
    const bool forward = journey < LADDERS * P;
    const int pair = FIRST + 2 * (journey % (LADDERS * P) % P);
    const int k = forward ? n : STEPS + 1 - n, to = forward ? n : STEPS - n;
    double there, back;
    variances(s, forward, pair, k, there, back);
    const double step = (forward ? 1.0 : -1.0) / STEPS, low = s.betas[pair - 1], high = s.betas[pair];
    const double beta = to == 0 ? low : to == STEPS ? high : low + s.interpolation[(pair - 1) * (STEPS + 1) + to] * (high - low);
    const double share = along_score(s, pair, to);
    double misses = 0.0, norm = 0.0, steep = 0.0;
    for (int c = lane; c < D; c += LANES) {
        const int at = journey * D + c;
        const double x = j.x[at], target = j.target_score[at];
        const double score = beta > 0.0 ? path_score(beta, x, target) : -x;
        j.score[at] = score, steep += score * score;
    }
    const double by = tamed(row_total(steep));
    for (int c = lane; c < D; c += LANES) {
        const int at = journey * D + c;
        const double x = j.x[at], target = j.target_score[at], score = by * j.score[at];
        const double drift = (double)j.drift[at] + share * score;
        const double miss = j.before[at] - step_mean(x, back, score, -step * drift);
        misses += miss * miss, norm += x * x;
        j.score[at] = score, j.end_score[at] = target;
    }
    misses = row_total(misses), norm = row_total(norm);
    if (lane > 0) return;
    const double ratio = j.log_ratio[journey] + step_log_ratio(j.squares[journey], misses, there, back);
    j.log_ratio[journey] = ratio;
    if (n < STEPS) return;
    const double log_target = j.target_log_density[journey], start = j.start[journey];
    const double end = interpolate(beta, -0.5 * norm - D * HALF_LOG_TAU, log_target) + ratio;
    j.log_target[journey] = log_target;
    j.log_weight[journey] = log_weight(forward, start, end);
}
#endif

// e^value added to a sum kept as (largest exponent, sum relative to it).
static __device__ __forceinline__ double2 plus_exp(double2 sum, double value) {
    if (!(value > -1.0 / 0.0)) return sum;
    if (value <= sum.x) return {sum.x, sum.y + exp(value - sum.x)};
    return {value, sum.y * exp(sum.x - value) + 1.0};
}

// Whether a pair swaps, counted.
static __device__ bool accepts(const Ladders &s, const Journeys &j, int ladder, int p) {
    const int pair = FIRST + 2 * p, up = ladder * P + p, down = up + LADDERS * P;
    const int place = ladder * (CHAINS - 1) + pair - 1;
    // Everything is read before anything is written.
    double forward = j.log_weight[up], backward = j.log_weight[down];
    const double start = j.start[down], rejected = s.rejection[place];
    double2 *const sums = (double2 *)(s.weights + 4 * place), up_sum = sums[0], down_sum = sums[1];
    const long long before = s.accepted[place];
    const double u = unit(philox(SEED, *s.iteration, KEY + ladder * CHAINS + pair, SWAP << 16).a);
    if (isnan(forward)) forward = -1.0 / 0.0;
    if (isnan(backward)) backward = 1.0 / 0.0;
    if (start == -1.0 / 0.0) backward = -1.0 / 0.0;
    const double delta = forward - backward;
    const bool accepted = log(u) < delta;
    s.rejection[place] = rejected + (isnan(delta) ? 1.0 : fabs(tanh(0.5 * delta)));
    s.accepted[place] = before + accepted;
    sums[0] = plus_exp(up_sum, forward), sums[1] = plus_exp(down_sum, -backward);
    return accepted;
}

// A replica after the swaps, its pair having swapped or not: chain, direction and leg.
static __device__ void go_on(const Ladders &s, int ladder, int replica, int chain, bool swapped) {
    const int row = ladder * CHAINS + replica, leg = s.leg[row];
    // A replica that does not move turns round.
    const int direction = swapped ? s.direction[row] : -s.direction[row];
    if (swapped) chain += chain % 2 == FIRST % 2 ? -1 : 1;
    s.direction[row] = direction, s.chain_of[row] = chain, s.replica_of[ladder * CHAINS + chain] = replica;
    // Legs: 0 before the first arrival at the reference, 1 going up, 2 going down.
    if (chain == 0 && direction == -1) {
        if (leg == 2) s.round_trips[ladder] += 1;
        s.leg[row] = 1;
    }
    if (chain == CHAINS - 1 && direction == 1 && leg == 1) s.leg[row] = 2;
}

// Lines 11–13: one warp a ladder.
extern "C" __global__ void __launch_bounds__(128) decide(Ladders s, Journeys j) {
    wait_for_kernel_before();
    const int ladder = blockIdx.x * 4 + (threadIdx.x >> 5), lane = threadIdx.x & 31;
    if (ladder >= LADDERS) return;
    // Pairs that swap, 32 in a word.
    __shared__ unsigned words[4][P / 32 + 1];
    unsigned *const swap = words[threadIdx.x >> 5];
    for (int p0 = 0; p0 < P; p0 += 32) {
        const int p = p0 + lane;
        const unsigned moved = __ballot_sync(0xffffffffu, p < P && accepts(s, j, ladder, p));
        if (lane == 0) swap[p0 / 32] = moved;
        // The end points of accepted pairs, by all threads.
        const int here = P - p0 < 32 ? P - p0 : 32;
        for (int e = lane; e < 2 * here * (D + 1); e += 32) {
            const int way = e / (here * (D + 1)), q = e / (D + 1) % here, c = e % (D + 1);
            if (!(moved >> q & 1)) continue;
            const int journey = ladder * P + p0 + q + way * LADDERS * P, row = j.row[journey];
            if (c == D) {
                s.log_target[row] = j.log_target[journey];
            } else {
                s.x[row * D + c] = j.x[journey * D + c];
                s.score[row * D + c] = j.end_score[journey * D + c];
            }
        }
    }
    __syncwarp();
    for (int m = lane; m < CHAINS; m += 32) {
        const int chain = s.chain_of[ladder * CHAINS + m], p = (chain - FIRST + 1) >> 1;
        go_on(s, ladder, m, chain, p >= 0 && p < P && (swap[p / 32] >> p % 32 & 1));
    }
}
