/* What a shared library exports so that Sterna can sample from it.
 *
 *     [target]
 *     kind = "library"
 *     library = "./libmine.so"
 *
 * One function must be there, sterna_evaluate or sterna_log_likelihood; the others may be.
 */
#ifndef STERNA_H
#define STERNA_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Log density and score (its gradient) of `rows` points.
 *
 *   points       rows * dim numbers, point after point
 *   log_density  rows numbers to write: log of the density up to a constant; -INFINITY where it vanishes,
 *                NAN where it cannot be computed (such a proposal is rejected, counted and reported)
 *   score        rows * dim numbers to write, point after point
 *
 * Returns 0. Anything else stops the run with that number and the point.
 *
 * It is called from several threads at once, each with its own memory, and must give the same answer for the
 * same point every time: what it writes for a point may depend on that point alone.
 */
int sterna_evaluate(size_t rows, size_t dim, const double *points, double *log_density, double *score);

/* Number of coordinates. Without it, the names say, or [[parameters]] or target.dim of the config; they must agree. */
size_t sterna_dim(void);

/* 0 if no score is known: none need be written then, and moves are made that need none. (Or target.gradient = false.) */
int sterna_has_score(void);

/* What the coordinates are called, with commas between, and a size for several with one name: "mu, sigma, weights[3]".
 * The text must stay where it is. */
const char *sterna_names(void);

/* Where they lie, one support for each name, with semicolons between: "real; positive; simplex". Supports are
 *
 *   real                    any number
 *   positive                above 0
 *   interval(lower, upper)  between bounds, one of which may be -inf or inf
 *   simplex                 positive with a sum of 1; the density is one in all values but the last
 *   ordered                 increasing
 *   unit-vector             of length 1; the density is one over the sphere
 *   circle                  angles in (-pi, pi]
 *
 * sterna_evaluate then gets points in these supports and writes density and score of the values; what is sampled, free
 * coordinates, and the volume of the change to them, is not its business. Without it, all are real. */
const char *sterna_supports(void);

/* Log likelihood and its gradient, in place of sterna_evaluate, with the same arguments. The prior is what [[parameters]] of
 * the config say, or sterna_prior_transform; the path leads from the prior to the posterior, and log Z is the log evidence. */
int sterna_log_likelihood(size_t rows, size_t dim, const double *points, double *log_likelihood, double *score);

/* The prior, as values of points that are uniform in the unit cube: rows * dim numbers of (0, 1), and room for as many values.
 * Returns 0; anything else says that the point has no values, and is counted as one without a density. No score is asked for. */
int sterna_prior_transform(size_t rows, size_t dim, const double *cube, double *values);

/* Functions of a point that are kept of each draw: names with commas between, and as many numbers for each of `rows` points as
 * there are names. They get the values that sterna_evaluate gets. Returns 0; anything else says that there are none. */
const char *sterna_observable_names(void);
int sterna_observe(size_t rows, size_t dim, const double *points, double *values);

/* log of the integral of the density, where it is known: shown beside the estimate. */
double sterna_log_z(void);

#ifdef __cplusplus
}
#endif

#endif
