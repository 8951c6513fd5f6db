/* Libraries that do not do what they should, one for each number of LIE: a standard normal of DIM coordinates otherwise. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

size_t sterna_dim(void) { return DIM; }

int sterna_evaluate(size_t rows, size_t dim, const double *points, double *log_density, double *score)
{
    static size_t calls = 0;
    calls++;
    for (size_t i = 0; i < rows; i++) {
        const double *x = points + i * dim;
        double sum = -0.5 * 1.8378770664093454836 * (double)dim;
        for (size_t j = 0; j < dim; j++) {
            sum -= 0.5 * x[j] * x[j];
#if LIE == 2
            if (j > 0)
                continue;
#endif
#if LIE == 7
            score[i * dim + j] = x[j];
#elif LIE == 9
            score[i * dim + j] = -2.0 * x[j];
#elif LIE == 12
            score[i * dim + j] = 0.0;
#elif LIE != 13
            score[i * dim + j] = -x[j];
#endif
        }
#if LIE == 1
        continue;
#elif LIE == 3
        sum += 0.3 * (double)rows;
#elif LIE == 4
        sum += 0.3 * (double)i;
#elif LIE == 5
        sum += 0.3 * (double)(calls % 7);
#elif LIE == 6
        ((double *)x)[0] *= 0.5;
#elif LIE == 8
        if (x[0] < 0.0)
            sum = NAN;
#elif LIE == 10
        sum += 0.01 * ((double)rand() / RAND_MAX - 0.5);
#elif LIE == 11
        if (i + 1 == rows && rows > 1)
            continue;
#endif
        log_density[i] = sum;
    }
    return 0;
}
