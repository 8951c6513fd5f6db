/* Densities that a user might bring, each a function for `kind = "library"` and `symbol`; all are normalised, so log Z = 0.
 *
 *     cc -O2 -shared -fPIC -o densities.so densities.c -lm
 */
#include <math.h>
#include <stddef.h>

static const double HALF_LOG_TAU = 0.918938533204672741780329736406;

/* Equal unit normals at `count` centres, which `centre` gives coordinate by coordinate. */
static void mixture(size_t dim, const double *x, double *log_density, double *score, size_t count,
                    double (*centre)(size_t, size_t)) {
    double top = -INFINITY, sum = 0.0, energy[8];
    for (size_t k = 0; k < count; k++) {
        energy[k] = 0.0;
        for (size_t j = 0; j < dim; j++) {
            double away = x[j] - centre(k, j);
            energy[k] -= 0.5 * away * away;
        }
        if (energy[k] > top) top = energy[k];
    }
    for (size_t k = 0; k < count; k++) sum += exp(energy[k] - top);
    for (size_t j = 0; j < dim; j++) {
        score[j] = 0.0;
        for (size_t k = 0; k < count; k++) score[j] += exp(energy[k] - top) / sum * (centre(k, j) - x[j]);
    }
    *log_density = top + log(sum / count) - dim * HALF_LOG_TAU;
}

static double two(size_t k, size_t j) {
    (void)j;
    return k ? 10.0 : 0.0;
}

static double corner(size_t k, size_t j) { return (k >> j & 1) ? 20.0 : -20.0; }

/* Unit normals at 0 and at (10, …, 10). */
int two_normals(size_t rows, size_t dim, const double *x, double *log_density, double *score) {
    for (size_t i = 0; i < rows; i++) mixture(dim, x + i * dim, log_density + i, score + i * dim, 2, two);
    return 0;
}

/* Unit normals at the eight corners of a cube of side 40, in 3 dimensions. */
int cube(size_t rows, size_t dim, const double *x, double *log_density, double *score) {
    if (dim != 3) return 1;
    for (size_t i = 0; i < rows; i++) mixture(dim, x + i * dim, log_density + i, score + i * dim, 8, corner);
    return 0;
}

/* A normal of one mean, with a width for each coordinate. */
static void normal(size_t dim, const double *x, double *log_density, double *score, double mean,
                   double (*width)(size_t, size_t)) {
    *log_density = 0.0;
    for (size_t j = 0; j < dim; j++) {
        double w = width(j, dim), away = (x[j] - mean) / w;
        *log_density -= 0.5 * away * away + log(w) + HALF_LOG_TAU;
        score[j] = -away / w;
    }
}

static double thousand(size_t j, size_t dim) {
    (void)j, (void)dim;
    return 1000.0;
}

static double thousandth(size_t j, size_t dim) {
    (void)j, (void)dim;
    return 1e-3;
}

/* From 10⁻³ to 1: variances have the condition number 10⁶. */
static double ill(size_t j, size_t dim) { return pow(10.0, -3.0 * (double)j / (double)(dim - 1)); }

/* Width 1000. */
int wide(size_t rows, size_t dim, const double *x, double *log_density, double *score) {
    for (size_t i = 0; i < rows; i++) normal(dim, x + i * dim, log_density + i, score + i * dim, 0.0, thousand);
    return 0;
}

/* Mean 10⁴, width 10⁻³. */
int far(size_t rows, size_t dim, const double *x, double *log_density, double *score) {
    for (size_t i = 0; i < rows; i++) normal(dim, x + i * dim, log_density + i, score + i * dim, 1e4, thousandth);
    return 0;
}

/* Condition number 10⁶, turned so that no coordinate is an axis: x = H y with Householder's H = I − 2 v vᵀ, v all alike. */
int ill_conditioned(size_t rows, size_t dim, const double *x, double *log_density, double *score) {
    for (size_t i = 0; i < rows; i++, x += dim, score += dim) {
        double sum = 0.0, back = 0.0, total = 0.0;
        for (size_t j = 0; j < dim; j++) sum += x[j];
        for (size_t j = 0; j < dim; j++) {
            double w = ill(j, dim), y = x[j] - 2.0 * sum / (double)dim;
            total -= 0.5 * y * y / (w * w) + log(w) + HALF_LOG_TAU;
            score[j] = -y / (w * w);
            back += score[j];
        }
        for (size_t j = 0; j < dim; j++) score[j] -= 2.0 * back / (double)dim;
        log_density[i] = total;
    }
    return 0;
}
