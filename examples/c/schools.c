/* Coaching in eight schools (D. B. Rubin, 1981): effects theta ~ normal(mu, tau), measured with known errors.
 *
 *     cc -O2 -shared -fPIC -I include -o libschools.so examples/c/schools.c -lm
 */
#include "sterna.h"

#include <math.h>

static const double EFFECTS[8] = {28, 8, -3, 7, -1, 1, 18, 12}, ERRORS[8] = {15, 10, 16, 11, 9, 11, 10, 18};
static const double PI = 3.14159265358979323846;

const char *sterna_names(void) { return "mu, tau, theta[8]"; }

const char *sterna_supports(void) { return "real; positive; real"; }

/* How far the schools are apart. */
const char *sterna_observable_names(void) { return "spread"; }

int sterna_observe(size_t rows, size_t dim, const double *points, double *values)
{
    for (size_t i = 0; i < rows; i++) {
        const double *x = points + i * dim;
        double sum = 0.0;
        for (int j = 2; j < 10; j++)
            sum += (x[j] - x[0]) * (x[j] - x[0]);
        values[i] = sqrt(sum / 8.0);
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
        const double *x = points + i * dim, *theta = x + 2;
        double *slope = score + i * dim, mu = x[0], tau = x[1], by_theta, by_tau, by_effect, unused;
        double scaled = tau / 5.0;
        double sum = normal(mu, 0.0, 5.0, slope, &unused) - log(5.0 * PI * (1.0 + scaled * scaled));
        slope[1] = -2.0 * scaled / (5.0 * (1.0 + scaled * scaled));
        for (int j = 0; j < 8; j++) {
            sum += normal(theta[j], mu, tau, &by_theta, &by_tau) + normal(EFFECTS[j], theta[j], ERRORS[j], &by_effect, &unused);
            slope[0] -= by_theta;
            slope[1] += by_tau;
            slope[2 + j] = by_theta - by_effect;
        }
        log_density[i] = sum;
    }
    return 0;
}
