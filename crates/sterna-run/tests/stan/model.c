/* A model with the functions that BridgeStan 2 exports: sigma > 0 and a simplex p of two, from two free parameters.
 *
 *   u = log sigma ~ normal(m, 1/2), p ~ dirichlet(2, 3), so that Z = sqrt(2 pi) / 2 * B(2, 3)
 *
 * Data: {"m": 0.3}, and where the model throws: for sigma above "limit". Built with -DMAJOR=3 it claims another version,
 * with -DTHREADS='"false"' that it knows no threads, and with -DONE_TAPE it knows none: all calls write to one place. With
 * -DBARE it exports nothing that a model can be sampled without, as a library of another minor version may. With
 * -DQUANTITIES it has a transformed parameter, the variance sigma^2, and generates y ~ uniform(0, sigma), but throws where p
 * is above 0.9. */
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MAJOR
#define MAJOR 2
#endif
#ifndef THREADS
#define THREADS "true"
#endif

typedef struct {
    double m, limit;
} model;

const int bs_major_version = MAJOR;
static void (*print)(const char *, size_t);
#ifdef ONE_TAPE
static volatile double tape[2];
#endif

static double number(const char *data, const char *key, double otherwise) {
    const char *at = data ? strstr(data, key) : NULL;
    return at ? strtod(strchr(at, ':') + 1, NULL) : otherwise;
}

static int refuse(char **said, const char *why) {
    if (said) *said = strdup(why);
    return -1;
}

model *bs_model_construct(const char *data, unsigned int seed, char **said) {
    double m = number(data, "\"m\"", NAN);
    if (isnan(m)) {
        refuse(said, "construct() failed with exception: Exception: variable does not exist;\n  variable name=m");
        return NULL;
    }
    model *out = malloc(sizeof *out);
    out->m = m + 100.0 * seed;
    out->limit = number(data, "\"limit\"", INFINITY);
    return out;
}

void bs_model_destruct(model *self) { free(self); }
void bs_free_error_msg(char *said) { free(said); }
#ifndef BARE
const int bs_minor_version = 7, bs_patch_version = 0;
const char *bs_name(const model *self) { return "tests_model"; }
const char *bs_model_info(const model *self) {
    return "BridgeStan version: 2.7.0\nStan C++ Defines:\n\tSTAN_THREADS=" THREADS "\n";
}
#endif
#ifdef QUANTITIES
const char *bs_param_names(const model *self, bool transformed, bool generated) {
    return transformed ? generated ? "sigma,p.1,p.2,variance,y" : "sigma,p.1,p.2,variance" : "sigma,p.1,p.2";
}
int bs_param_num(const model *self, bool transformed, bool generated) { return 3 + transformed + generated; }
#ifndef BARE
double *bs_rng_construct(unsigned int seed, char **said) {
    double *out = malloc(sizeof *out);
    *out = (seed + 0.5) / 4294967296.0;
    return out;
}
void bs_rng_destruct(double *rng) { free(rng); }
#endif
#else
const char *bs_param_names(const model *self, bool transformed, bool generated) { return "sigma,p.1,p.2"; }
int bs_param_num(const model *self, bool transformed, bool generated) { return 3; }
#endif
#ifndef INCOMPLETE
int bs_param_unc_num(const model *self) { return 2; }
#endif

#ifndef BARE
int bs_set_print_callback(void (*callback)(const char *, size_t), char **said) {
    print = callback;
    return 0;
}
#endif

int bs_log_density_gradient(const model *self, bool propto, bool jacobian, const double *x, double *value, double *score,
                            char **said) {
    if (print)
        print("heard", 5);
#ifndef BARE
    else
        puts("heard");
#endif
    if (exp(x[0]) > self->limit) return refuse(said, "log_density_gradient() failed with exception:\n sigma is too large");
#ifdef ONE_TAPE
    tape[0] = x[0], tape[1] = x[1];
    sched_yield();
    double u = tape[0], v = tape[1];
#else
    double u = x[0], v = x[1];
#endif
    double off = u - self->m, p = 1 / (1 + exp(-v));
    *value = -2 * off * off + 2 * log(p) + 3 * log1p(-p);
    score[0] = -4 * off;
    score[1] = 2 * (1 - p) - 3 * p;
    return propto && jacobian ? 0 : -1;
}

int bs_param_constrain(const model *self, bool transformed, bool generated, const double *x, double *out, void *rng,
                       char **said) {
    out[0] = exp(x[0]);
    out[1] = 1 / (1 + exp(-x[1]));
    out[2] = 1 / (1 + exp(x[1]));
#ifdef QUANTITIES
    if (generated && out[1] > 0.9) return refuse(said, "p is too large");
    if (transformed) out[3] = out[0] * out[0];
    if (generated) out[4] = *(double *)rng * out[0];
#endif
    return 0;
}
