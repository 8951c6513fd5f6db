/* A normal whose every evaluation takes STERNA_SLEEP_US microseconds, spread by STERNA_SPREAD of that (uniform, by point): asleep, or with
 * STERNA_BUSY=1 at work. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

size_t sterna_dim(void) {
    return 4;
}

static double setting(const char *name) {
    const char *text = getenv(name);
    return text ? atof(text) : 0.0;
}

/* A number in (−1, 1) that hangs on the point alone. */
static double scatter(const double *x) {
    uint64_t bits;
    memcpy(&bits, x, sizeof bits);
    bits *= 0x9E3779B97F4A7C15u;
    return (double)(bits >> 11) / (double)(1ull << 52) - 1.0;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int sterna_evaluate(size_t rows, size_t dim, const double *points, double *log_density, double *score) {
    double sleep = setting("STERNA_SLEEP_US"), spread = setting("STERNA_SPREAD");
    for (size_t i = 0; i < rows; i++) {
        const double *x = points + i * dim;
        log_density[i] = 0.0;
        for (size_t j = 0; j < dim; j++) {
            log_density[i] -= 2.0 * x[j] * x[j];
            score[i * dim + j] = -4.0 * x[j];
        }
        /* √3: a uniform number in (−1, 1) has a standard deviation of 1/√3. */
        double seconds = 1e-6 * sleep * (1.0 + 1.7320508 * spread * scatter(x));
        if (seconds > 0.0 && setting("STERNA_BUSY") > 0.0) {
            for (double end = now() + seconds; now() < end;) {
            }
        } else if (seconds > 0.0) {
            struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
            nanosleep(&time, NULL);
        }
    }
    return 0;
}
