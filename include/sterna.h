/* What a shared library exports so that Sterna can sample from it.
 *
 *     [target]
 *     kind = "library"
 *     library = "./libmine.so"
 *
 * One function must be there; the others may be.
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

/* Number of coordinates. Without it, the config says target.dim; with both, they must agree. */
size_t sterna_dim(void);

/* log of the integral of the density, where it is known: shown beside the estimate. */
double sterna_log_z(void);

#ifdef __cplusplus
}
#endif

#endif
