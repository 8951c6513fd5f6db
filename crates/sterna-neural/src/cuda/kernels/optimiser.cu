// Length of the gradient, clipping, Adam and the average of the parameters. Settings are defined before.
// State: 0 steps, 1 updates, 2 skipped, 3 skipped in a row, 4 diverged, 5 shrink, 6 rate, 7 second scale, 8 past,
// 9 whether to apply, 10 length of the gradient, 11 the last loss.

extern "C" __global__ void __launch_bounds__(256)
    measure(const T *A, double *state, double *losses, double *partial, unsigned *ticket) {
    wait_for_kernel_before();
    __shared__ double sums[8];
    __shared__ bool last;
    const int t = threadIdx.x;
    double sum = 0.0;
#pragma unroll 8
    for (int i = blockIdx.x * 256 + t; i < COUNT; i += gridDim.x * 256) {
        const double g = A[GRADIENT + i];
        sum += g * g;
    }
    sum = warp_sum(sum);
    if ((t & 31) == 0) sums[t >> 5] = sum;
    __syncthreads();
    if (t == 0) {
        sum = 0.0;
        for (int k = 0; k < 8; k++) sum += sums[k];
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(ticket, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last || t >= 32) return;
    __threadfence();
    // In an order that does not depend on who came last.
    sum = 0.0;
    for (int k = t; k < gridDim.x; k += 32) sum += ((volatile double *)partial)[k];
    sum = warp_sum(sum);
    if (t > 0) return;
    *ticket = 0;
    const double norm = sqrt(sum), loss = A[LOSS], step = state[0];
    const bool good = isfinite(norm) && isfinite(loss) && state[4] == 0.0;
    state[10] = norm, state[11] = loss;
    losses[(long long)step % LOSSES] = loss;
    state[9] = good;
    if (state[4] != 0.0) return;
    state[0] = step + 1.0;
    if (!good) {
        state[2] += 1.0, state[3] += 1.0;
        if (state[3] > PATIENCE) state[4] = 1.0;
        return;
    }
    state[3] = 0.0, state[1] += 1.0;
    const double n = state[1];
    const double rising = WARM_UP > 0.0 ? fmin((step + 1.0) / WARM_UP, 1.0) : 1.0;
    double falling = 1.0;
    if (DECAY_STEPS > 0.0) {
        const double along = fmin(step / DECAY_STEPS, 1.0);
        falling = FLOOR + (1.0 - FLOOR) * 0.5 * (1.0 + cospi(along));
    }
    state[5] = norm > CLIP ? CLIP / norm : 1.0;
    state[6] = LEARNING_RATE * rising * falling / (1.0 - pow(FIRST, n));
    state[7] = 1.0 / sqrt(1.0 - pow(SECOND, n));
    state[8] = fmin(AVERAGE, (1.0 + n) / (10.0 + n));
}

extern "C" __global__ void __launch_bounds__(256) adam(T *A, const double *state, T *first, T *second, T *average) {
    wait_for_kernel_before();
    if (state[9] == 0.0) return;
    const T shrink = state[5], rate = state[6], scale = state[7], past = state[8];
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= COUNT) return;
    const T g = A[GRADIENT + i] * shrink;
    const T m = first[i] * T(FIRST) + g * T(1.0 - FIRST);
    const T v = second[i] * T(SECOND) + g * g * T(1.0 - SECOND);
    const T p = A[i] - rate * m / (f_sqrt(v) * scale + T(EPSILON));
    const T a = average[i];
    first[i] = m, second[i] = v, A[i] = p;
    average[i] = a + (T(1) - past) * (p - a);
}
