// Random numbers keyed by (seed, phase, iteration, row), as in the library's streams (Philox4x32-10).

struct Words {
    unsigned long long a, b;
};

static __device__ __forceinline__ Words philox(
    unsigned long long seed, unsigned long long iteration, unsigned row, unsigned tagged_block) {
    unsigned c0 = (unsigned)iteration, c1 = (unsigned)(iteration >> 32), c2 = row, c3 = tagged_block;
    unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const unsigned a_low = 0xD2511F53u * c0, a_high = __umulhi(0xD2511F53u, c0);
        const unsigned b_low = 0xCD9E8D57u * c2, b_high = __umulhi(0xCD9E8D57u, c2);
        c0 = b_high ^ c1 ^ k0, c1 = b_low, c2 = a_high ^ c3 ^ k1, c3 = a_low;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    return {c0 | (unsigned long long)c1 << 32, c2 | (unsigned long long)c3 << 32};
}

// The middle of one of 2⁵² equal cells of (0, 1).
static __device__ __forceinline__ double unit(unsigned long long word) {
    return __longlong_as_double((long long)(word >> 12 | 0x3FF0000000000000ull)) - (1.0 - 1.1102230246251565e-16);
}

static __device__ __forceinline__ int below(unsigned long long word, int n) {
    return (int)__umul64hi(word, (unsigned long long)n);
}

// Box and Muller.
static __device__ __forceinline__ void normal_pair(Words w, double &first, double &second) {
    const double radius = sqrt(-2.0 * log(unit(w.a)));
    double s, c;
    sincospi(2.0 * unit(w.b), &s, &c);
    first = radius * c, second = radius * s;
}
