/* Counts of three kinds: shares on a simplex, with a uniform law, and how many there are a day, which is positive.
 *
 *     cc -O2 -shared -fPIC -I include -o libcounts.so examples/c/counts.c -lm
 */
#include "sterna.h"

#include <math.h>

static const double COUNTS[3] = {12, 5, 3}, DAYS = 4;

const char *sterna_names(void) { return "share[3], rate"; }

const char *sterna_supports(void) { return "simplex; positive"; }

/* How many of each kind to expect a day, of which the first and the last are looked at. */
const char *sterna_observable_names(void) { return "first, last"; }

int sterna_observe(size_t rows, size_t dim, const double *points, double *values)
{
    for (size_t i = 0; i < rows; i++) {
        values[2 * i] = points[i * dim] * points[i * dim + 3];
        values[2 * i + 1] = points[i * dim + 2] * points[i * dim + 3];
    }
    return 0;
}

int sterna_evaluate(size_t rows, size_t dim, const double *points, double *log_density, double *score)
{
    for (size_t i = 0; i < rows; i++) {
        const double *x = points + i * dim;
        double *slope = score + i * dim, rate = x[3], sum = -rate * DAYS - rate;
        slope[3] = -DAYS - 1;
        for (int k = 0; k < 3; k++) {
            sum += COUNTS[k] * log(x[k] * rate);
            slope[k] = COUNTS[k] / x[k];
            slope[3] += COUNTS[k] / rate;
        }
        log_density[i] = sum;
    }
    return 0;
}
