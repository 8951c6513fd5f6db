/* Two modes in each of two coordinates, skewed ones with long tails in others, all in the unit cube, with no gradient.
 *
 *     cc -O2 -shared -fPIC -I include -o libloggamma.so examples/c/loggamma.c -lm
 */
#include "sterna.h"

#include <math.h>

#ifndef DIM
#define DIM 10
#endif

static const double WIDTH = 1.0 / 30.0, LOW = 1.0 / 3.0, HIGH = 2.0 / 3.0, PI = 3.14159265358979323846;

size_t sterna_dim(void) { return DIM; }

int sterna_prior_transform(size_t rows, size_t dim, const double *cube, double *values)
{
    for (size_t i = 0; i < rows * dim; i++)
        values[i] = cube[i];
    return 0;
}

/* The logarithm of an exponential number. */
static double skewed(double x, double at)
{
    double away = (x - at) / WIDTH;
    return away - exp(away) - log(WIDTH);
}

static double normal(double x, double at)
{
    double away = (x - at) / WIDTH;
    return -0.5 * away * away - log(WIDTH) - 0.5 * log(2.0 * PI);
}

static double half_of_each(double a, double b) { return fmax(a, b) + log1p(exp(-fabs(a - b))) - log(2.0); }

int sterna_log_likelihood(size_t rows, size_t dim, const double *points, double *log_likelihood, double *score)
{
    (void)score;
    for (size_t i = 0; i < rows; i++) {
        const double *x = points + i * dim;
        double sum = half_of_each(skewed(x[0], LOW), skewed(x[0], HIGH)) + half_of_each(normal(x[1], LOW), normal(x[1], HIGH));
        for (size_t j = 2; j < dim; j++)
            sum += j < (dim + 2) / 2 ? skewed(x[j], HIGH) : normal(x[j], HIGH);
        log_likelihood[i] = sum;
    }
    return 0;
}
