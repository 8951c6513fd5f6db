/* Velocities of 82 galaxies as a mixture of three normals, whose order is free: six modes that weigh the same.
 *
 *     cc -O2 -shared -fPIC -I include -o libgalaxies.so examples/c/galaxies.c -lm
 */
#include "sterna.h"

#include <math.h>

/* In 1000 km/s: M. Postman, J. P. Huchra and M. J. Geller, Astronomical Journal 92, 1238 (1986), as K. Roeder, J. Am. Stat. Assoc. 85,
 * 617 (1990) has them (26.690 where the source has 26.960). */
static const double VELOCITIES[82] = {
    9.172, 9.350, 9.483, 9.558, 9.775, 10.227, 10.406, 16.084, 16.170, 18.419, 18.552, 18.600, 18.927, 19.052,
    19.070, 19.330, 19.343, 19.349, 19.440, 19.473, 19.529, 19.541, 19.547, 19.663, 19.846, 19.856, 19.863,
    19.914, 19.918, 19.973, 19.989, 20.166, 20.175, 20.179, 20.196, 20.215, 20.221, 20.415, 20.629, 20.795,
    20.821, 20.846, 20.875, 20.986, 21.137, 21.492, 21.701, 21.814, 21.921, 21.960, 22.185, 22.209, 22.242,
    22.249, 22.314, 22.374, 22.495, 22.746, 22.747, 22.888, 22.914, 23.206, 23.241, 23.263, 23.484, 23.538,
    23.542, 23.666, 23.706, 23.711, 24.129, 24.285, 24.289, 24.366, 24.717, 24.990, 25.633, 26.690, 26.995,
    32.065, 32.789, 34.279
};
static const double PI = 3.14159265358979323846;

const char *sterna_names(void) { return "mu[3], sigma[3], weight[3]"; }

const char *sterna_supports(void) { return "real; positive; simplex"; }

/* What the order of the normals does not change. */
const char *sterna_observable_names(void) { return "lowest, highest"; }

int sterna_observe(size_t rows, size_t dim, const double *points, double *values)
{
    for (size_t i = 0; i < rows; i++) {
        const double *mu = points + i * dim;
        values[2 * i] = fmin(mu[0], fmin(mu[1], mu[2]));
        values[2 * i + 1] = fmax(mu[0], fmax(mu[1], mu[2]));
    }
    return 0;
}

/* log normal(x; mean, sd); its derivatives by x, and by sd. */
static double normal(double x, double mean, double sd, double *by_x, double *by_sd)
{
    double away = (x - mean) / sd;
    *by_x = -away / sd;
    *by_sd = (away * away - 1.0) / sd;
    return -0.5 * away * away - log(sd) - 0.5 * log(2.0 * PI);
}

int sterna_evaluate(size_t rows, size_t dim, const double *points, double *log_density, double *score)
{
    for (size_t i = 0; i < rows; i++) {
        const double *mu = points + i * dim, *sigma = mu + 3, *weight = mu + 6;
        double *by_mu = score + i * dim, *by_sigma = by_mu + 3, *by_weight = by_mu + 6, unused;
        /* Dirichlet(2, 2, 2) of the weights, normal(20, 10) of means, log-normal(0, 1) of widths. */
        double sum = lgamma(6);
        for (int k = 0; k < 3; k++) {
            double log_sigma = log(sigma[k]), pull;
            sum += normal(mu[k], 20.0, 10.0, &by_mu[k], &unused) + normal(log_sigma, 0.0, 1.0, &pull, &unused);
            sum += log(weight[k]) - log_sigma;
            by_sigma[k] = (pull - 1.0) / sigma[k];
            by_weight[k] = 1.0 / weight[k];
        }
        for (int n = 0; n < 82; n++) {
            double logs[3], by_x[3], by_sd[3], top = -INFINITY, all = 0.0;
            for (int k = 0; k < 3; k++) {
                logs[k] = log(weight[k]) + normal(VELOCITIES[n], mu[k], sigma[k], &by_x[k], &by_sd[k]);
                top = fmax(top, logs[k]);
            }
            for (int k = 0; k < 3; k++)
                all += exp(logs[k] - top);
            all = top + log(all);
            sum += all;
            for (int k = 0; k < 3; k++) {
                double part = exp(logs[k] - all);
                by_mu[k] -= part * by_x[k];
                by_sigma[k] += part * by_sd[k];
                by_weight[k] += part / weight[k];
            }
        }
        log_density[i] = sum;
    }
    return 0;
}
