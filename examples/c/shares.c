/* Counts of three kinds: the likelihood of their shares. What was known before, their prior, is said in the config.
 *
 *     cc -O2 -shared -fPIC -I include -o libshares.so examples/c/shares.c -lm
 */
#include "sterna.h"

#include <math.h>

static const double COUNTS[3] = {12, 5, 3};

int sterna_log_likelihood(size_t rows, size_t dim, const double *points, double *log_likelihood, double *score)
{
    for (size_t i = 0; i < rows; i++) {
        const double *share = points + i * dim;
        log_likelihood[i] = lgamma(21) - lgamma(13) - lgamma(6) - lgamma(4);
        for (size_t k = 0; k < dim; k++) {
            log_likelihood[i] += COUNTS[k] * log(share[k]);
            score[i * dim + k] = COUNTS[k] / share[k];
        }
    }
    return 0;
}
