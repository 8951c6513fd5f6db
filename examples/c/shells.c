/* Two thin shells in a box, with no gradient: a likelihood, and the prior as a transform of the unit cube.
 *
 *     cc -O2 -shared -fPIC -I include -o libshells.so examples/c/shells.c -lm
 */
#include "sterna.h"

#include <math.h>

#ifndef DIM
#define DIM 10
#endif

static const double RADIUS = 2.0, WIDTH = 0.1, CENTRE = 3.5, HALF = 6.0, PI = 3.14159265358979323846;

size_t sterna_dim(void) { return DIM; }

int sterna_prior_transform(size_t rows, size_t dim, const double *cube, double *values)
{
    for (size_t i = 0; i < rows * dim; i++)
        values[i] = HALF * (2.0 * cube[i] - 1.0);
    return 0;
}

static double shell(const double *x, double centre)
{
    double square = 0.0;
    for (int j = 0; j < DIM; j++) {
        double away = j == 0 ? x[j] - centre : x[j];
        square += away * away;
    }
    double off = (sqrt(square) - RADIUS) / WIDTH;
    return -0.5 * off * off - 0.5 * log(2.0 * PI * WIDTH * WIDTH);
}

int sterna_log_likelihood(size_t rows, size_t dim, const double *points, double *log_likelihood, double *score)
{
    (void)score;
    for (size_t i = 0; i < rows; i++) {
        double a = shell(points + i * dim, -CENTRE), b = shell(points + i * dim, CENTRE), top = fmax(a, b);
        log_likelihood[i] = top + log(exp(a - top) + exp(b - top));
    }
    return 0;
}
