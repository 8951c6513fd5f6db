/* An eggbox: eighteen equal modes in a square, with no gradient.
 *
 *     cc -O2 -shared -fPIC -I include -o libeggbox.so examples/c/eggbox.c -lm
 */
#include "sterna.h"

#include <math.h>

static const double SIDE = 31.41592653589793238;

const char *sterna_names(void) { return "x, y"; }

int sterna_prior_transform(size_t rows, size_t dim, const double *cube, double *values)
{
    for (size_t i = 0; i < rows * dim; i++)
        values[i] = SIDE * cube[i];
    return 0;
}

int sterna_log_likelihood(size_t rows, size_t dim, const double *points, double *log_likelihood, double *score)
{
    (void)score;
    for (size_t i = 0; i < rows; i++)
        log_likelihood[i] = pow(2.0 + cos(0.5 * points[i * dim]) * cos(0.5 * points[i * dim + 1]), 5.0);
    return 0;
}
