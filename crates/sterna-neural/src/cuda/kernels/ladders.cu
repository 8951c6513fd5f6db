// Algorithm 1 for many ladders at once, between the recorded computations (local moves, drift, target). One warp
// a replica, a journey or a ladder. D, CHAINS, LADDERS, STEPS (K), SEED and JITTER are defined before; P is the
// number of pairs proposed by each ladder in this half, FIRST the first of them. The formulas step_mean,
// step_log_ratio and log_weight are written from the library's own.

struct Ladders {
    // Replicas: points, and the target's log density and score there.
    double *x, *log_target, *score;
    int *chain_of, *replica_of, *direction, *leg;
    long long *round_trips;
    // Statistics, ladder by ladder.
    double *acceptance, *rejection, *weights;
    long long *bad, *accepted;
    unsigned long long *iteration;
    const double *betas, *step_size, *scale, *interpolation, *noise, *backward_noise;
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

#define ROW (blockIdx.x * 4 + (threadIdx.x >> 5))
#define LANE (threadIdx.x & 31)
#define HALF_LOG_TAU 0.91893853320467274178

static __device__ __forceinline__ double interpolate(double beta, double log_reference, double log_target) {
    if (beta <= 0.0) return log_reference;
    return log_target < 1.0 / 0.0 ? (1.0 - beta) * log_reference + beta * log_target : -1.0 / 0.0;
}

// Line 3: momenta and steps of local moves; chain 0 is drawn anew and stays there, its step being zero.
extern "C" __global__ void __launch_bounds__(128) begin(Ladders s, int move) {
    const int row = ROW, lane = LANE;
    if (row >= LADDERS * CHAINS) return;
    const int chain = s.chain_of[row];
    const unsigned long long t = *s.iteration + 1;
    const double shorter = 1.0 - JITTER * unit(philox(SEED, t, row, (LOCAL + 3 * move) << 16).a);
    const double size = chain == 0 ? 0.0 : s.step_size[chain] * shorter;
    for (int b = lane; 2 * b < D; b += 32) {
        double v[2], fresh[2];
        normal_pair(philox(SEED, t, row, (LOCAL + 3 * move + 1) << 16 | b), v[0], v[1]);
        const bool draw = chain == 0 && move == 0;
        if (draw) normal_pair(philox(SEED, t, row, REFERENCE << 16 | b), fresh[0], fresh[1]);
        for (int k = 0; k < 2 && 2 * b + k < D; k++) {
            const int at = row * D + 2 * b + k;
            s.move_x[at] = draw ? fresh[k] : s.x[at];
            s.move_momentum[at] = v[k];
            s.move_step[at] = size * s.scale[chain * D + 2 * b + k];
            s.move_score[at] = s.score[at];
        }
    }
    if (lane == 0) s.move_beta[row] = s.betas[chain], s.move_log_target[row] = s.log_target[row];
}

extern "C" __global__ void __launch_bounds__(128) settle(Ladders s, int move) {
    const int row = ROW, lane = LANE;
    if (row >= LADDERS * CHAINS) return;
    const int chain = s.chain_of[row], place = row / CHAINS * CHAINS + chain;
    const unsigned long long t = *s.iteration + 1;
    const double ratio = s.end_log_ratio[row], log_target = s.end_log_target[row];
    const bool bad = isnan(log_target) || log_target == 1.0 / 0.0;
    const double u = unit(philox(SEED, t, row, (LOCAL + 3 * move + 2) << 16).a);
    const bool accept = chain == 0 || (!bad && ratio - log(u) > 0.0); // false for NaN
    if (accept) {
        for (int c = lane; c < D; c += 32) s.x[row * D + c] = s.end_x[row * D + c], s.score[row * D + c] = s.end_score[row * D + c];
        if (lane == 0) s.log_target[row] = log_target;
    }
    if (lane == 0) {
        if (chain > 0) s.acceptance[place] += isnan(ratio) ? 0.0 : exp(fmin(ratio, 0.0));
        s.bad[place] += bad;
    }
}

// Line 4 and the start of lines 5–10: forward journeys first, then backward ones.
extern "C" __global__ void __launch_bounds__(128) depart(Ladders s, Journeys j) {
    const int journey = ROW, lane = LANE;
    if (journey >= 2 * LADDERS * P) return;
    const bool forward = journey < LADDERS * P;
    const int q = journey % (LADDERS * P), ladder = q / P, pair = FIRST + 2 * (q % P);
    const int row = ladder * CHAINS + s.replica_of[ladder * CHAINS + (forward ? pair - 1 : pair)];
    const double low = s.betas[pair - 1], high = s.betas[pair], beta = forward ? low : high;
    double squares = 0.0;
    for (int c = lane; c < D; c += 32) {
        const double x = s.x[row * D + c], score = s.score[row * D + c];
        squares += x * x;
        j.x[journey * D + c] = x;
        j.score[journey * D + c] = (beta > 0.0 ? beta * score : 0.0) + (beta - 1.0) * x;
        j.end_score[journey * D + c] = score;
        if (STEPS > 0) j.drift_x[journey * D + c] = (float)x;
    }
    squares = warp_sum(squares);
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

extern "C" __global__ void __launch_bounds__(128) walk(Ladders s, Journeys j, int n) {
    const int journey = ROW, lane = LANE;
    if (journey >= 2 * LADDERS * P) return;
    const bool forward = journey < LADDERS * P;
    const int pair = FIRST + 2 * (journey % (LADDERS * P) % P);
    const int k = forward ? n : STEPS + 1 - n, to = forward ? n : STEPS - n;
    double there, back;
    variances(s, forward, pair, k, there, back);
    const double root = sqrt(there), step = (forward ? 1.0 : -1.0) / STEPS;
    const unsigned long long t = *s.iteration + 1;
    const unsigned phase = (forward ? FORWARD : BACKWARD) + k;
    double squares = 0.0;
    for (int b = lane; 2 * b < D; b += 32) {
        double z[2];
        normal_pair(philox(SEED, t, j.row[journey], phase << 16 | b), z[0], z[1]);
        for (int e = 0; e < 2 && 2 * b + e < D; e++) {
            const int at = journey * D + 2 * b + e;
            const double x = j.x[at], y = step_mean(x, there, j.score[at], step * (double)j.drift[at]) + root * z[e];
            squares += z[e] * z[e];
            j.before[at] = x, j.x[at] = y, j.target_x[at] = y, j.drift_x[at] = (float)y;
        }
    }
    squares = warp_sum(squares);
    if (lane == 0) j.squares[journey] = squares, j.time[journey] = (float)((double)to / STEPS);
}

extern "C" __global__ void __launch_bounds__(128) weigh(Ladders s, Journeys j, int n) {
    const int journey = ROW, lane = LANE;
    if (journey >= 2 * LADDERS * P) return;
    const bool forward = journey < LADDERS * P;
    const int pair = FIRST + 2 * (journey % (LADDERS * P) % P);
    const int k = forward ? n : STEPS + 1 - n, to = forward ? n : STEPS - n;
    double there, back;
    variances(s, forward, pair, k, there, back);
    const double step = (forward ? 1.0 : -1.0) / STEPS, low = s.betas[pair - 1], high = s.betas[pair];
    const double beta = to == 0 ? low : to == STEPS ? high : low + s.interpolation[(pair - 1) * (STEPS + 1) + to] * (high - low);
    double misses = 0.0, norm = 0.0;
    for (int c = lane; c < D; c += 32) {
        const int at = journey * D + c;
        const double x = j.x[at], target = j.target_score[at];
        const double score = (beta > 0.0 ? beta * target : 0.0) + (beta - 1.0) * x;
        const double miss = j.before[at] - step_mean(x, back, score, -step * (double)j.drift[at]);
        misses += miss * miss, norm += x * x;
        j.score[at] = score, j.end_score[at] = target;
    }
    misses = warp_sum(misses), norm = warp_sum(norm);
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

// Adds e^value to a sum kept as (largest exponent, sum relative to it).
static __device__ __forceinline__ void add_exp(double *sum, double value) {
    if (!(value > -1.0 / 0.0)) return;
    if (value <= sum[0]) {
        sum[1] += exp(value - sum[0]);
    } else {
        sum[1] = sum[1] * exp(sum[0] - value) + 1.0;
        sum[0] = value;
    }
}

// Lines 11–13: one warp a ladder.
extern "C" __global__ void __launch_bounds__(128) decide(Ladders s, Journeys j) {
    const int ladder = ROW, lane = LANE;
    if (ladder >= LADDERS) return;
    const unsigned long long t = *s.iteration + 1;
    int *chain_of = s.chain_of + ladder * CHAINS, *replica_of = s.replica_of + ladder * CHAINS;
    int *direction = s.direction + ladder * CHAINS, *leg = s.leg + ladder * CHAINS;
    // A replica that does not move turns round; the accepted pairs turn back below.
    for (int m = lane; m < CHAINS; m += 32) direction[m] = -direction[m];
    __syncwarp();
    for (int p = lane; p < P; p += 32) {
        const int pair = FIRST + 2 * p, up = ladder * P + p, down = up + LADDERS * P;
        const int place = ladder * (CHAINS - 1) + pair - 1;
        double forward = j.log_weight[up], backward = j.log_weight[down];
        if (isnan(forward)) forward = -1.0 / 0.0;
        if (isnan(backward)) backward = 1.0 / 0.0;
        if (j.start[down] == -1.0 / 0.0) backward = -1.0 / 0.0;
        const double delta = forward - backward;
        const double u = unit(philox(SEED, t, ladder * CHAINS + pair, SWAP << 16).a);
        const bool accepted = log(u) < delta;
        s.rejection[place] += isnan(delta) ? 1.0 : fabs(tanh(0.5 * delta));
        s.accepted[place] += accepted;
        add_exp(s.weights + 4 * place, forward);
        add_exp(s.weights + 4 * place + 2, -backward);
        if (!accepted) continue;
        const int a = replica_of[pair - 1], b = replica_of[pair];
        replica_of[pair - 1] = b, replica_of[pair] = a;
        chain_of[a] = pair, chain_of[b] = pair - 1;
        direction[a] = -direction[a], direction[b] = -direction[b];
        for (int way = 0; way < 2; way++) {
            const int journey = way ? down : up, row = j.row[journey];
            s.log_target[row] = j.log_target[journey];
            for (int c = 0; c < D; c++) {
                s.x[row * D + c] = j.x[journey * D + c];
                s.score[row * D + c] = j.end_score[journey * D + c];
            }
        }
    }
    __syncwarp();
    if (lane > 0) return;
    // Legs: 0 before the first arrival at the reference, 1 going up, 2 going down.
    const int first = replica_of[0], last = replica_of[CHAINS - 1];
    if (direction[first] == -1) {
        if (leg[first] == 2) s.round_trips[ladder] += 1;
        if (leg[first] != 1) leg[first] = 1;
    }
    if (direction[last] == 1 && leg[last] == 1) leg[last] = 2;
}

extern "C" __global__ void tick(Ladders s) { *s.iteration += 1; }
