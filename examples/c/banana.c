/* A normal bent along a parabola: log p(x, y) = -x^2/2 - (y - x^2 + 1)^2 / (2 * 0.1^2), not normalised.
 *
 *     cc -O2 -shared -fPIC -I include -o libbanana.so examples/c/banana.c -lm
 */
#include "sterna.h"

#include <math.h>

static const double WIDTH = 0.1;

size_t sterna_dim(void) { return 2; }

double sterna_log_z(void) { return log(2.0 * 3.14159265358979323846 * WIDTH); }

int sterna_evaluate(size_t rows, size_t dim, const double *points, double *log_density, double *score)
{
    if (dim != 2)
        return 1;
    for (size_t i = 0; i < rows; i++) {
        double x = points[2 * i], y = points[2 * i + 1];
        double off = (y - x * x + 1.0) / (WIDTH * WIDTH);
        log_density[i] = -0.5 * x * x - 0.5 * off * off * WIDTH * WIDTH;
        score[2 * i] = -x + 2.0 * x * off;
        score[2 * i + 1] = -off;
    }
    return 0;
}
