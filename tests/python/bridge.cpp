// A Stan model with the functions of BridgeStan 2 that Sterna calls. Compiled together with what stanc makes of a model, which
// defines new_model (tests/python/stan_models.py).
#include <stan/io/empty_var_context.hpp>
#include <stan/io/json/json_data.hpp>
#include <stan/math.hpp>
#include <stan/model/model_base.hpp>
#include <stan/services/util/create_rng.hpp>

#include <cstring>
#include <memory>
#include <sstream>

stan::model::model_base &new_model(stan::io::var_context &data, unsigned int seed, std::ostream *messages);

namespace {

using Model = stan::model::model_base;

void (*listener)(const char *, size_t) = nullptr;

struct Instance {
    std::unique_ptr<Model> model;
    std::string names[2][2];
    int sizes[2][2];
};

// Hands on what a model prints.
struct Printed {
    std::ostringstream stream;
    ~Printed()
    {
        std::string text = stream.str();
        if (listener && !text.empty())
            listener(text.data(), text.size());
    }
};

// Runs a piece of work; what it throws becomes a message.
template <typename Work>
int guarded(const char *name, char **message, Work work)
{
    try {
        work();
        return 0;
    } catch (const std::exception &error) {
        if (message)
            *message = strdup((std::string(name) + " failed with exception: " + error.what()).c_str());
    }
    return 1;
}

Eigen::VectorXd copied(const Instance *self, const double *numbers)
{
    return Eigen::Map<const Eigen::VectorXd>(numbers, self->model->num_params_r());
}

// Derivatives are taped apart for each thread.
void begin_thread() { static thread_local stan::math::ChainableStack tape; }

} // namespace

extern "C" {

extern const int bs_major_version = 2;
extern const int bs_minor_version = 7;

Instance *bs_model_construct(const char *text, unsigned int seed, char **message)
{
    Instance *out = nullptr;
    guarded("construct()", message, [&] {
        begin_thread();
        Printed printed;
        std::unique_ptr<stan::io::var_context> data(new stan::io::empty_var_context());
        if (text && *text) {
            std::istringstream stream(text);
            data.reset(new stan::json::json_data(stream));
        }
        std::unique_ptr<Instance> made(new Instance());
        made->model.reset(&new_model(*data, seed, &printed.stream));
        for (int transformed : {0, 1})
            for (int generated : {0, 1}) {
                std::vector<std::string> all;
                made->model->constrained_param_names(all, transformed, generated);
                std::string &list = made->names[transformed][generated];
                for (const std::string &name : all)
                    list += (list.empty() ? "" : ",") + name;
                made->sizes[transformed][generated] = all.size();
            }
        out = made.release();
    });
    return out;
}

void bs_model_destruct(Instance *self) { delete self; }
void bs_free_error_msg(char *message) { free(message); }
const char *bs_model_info(const Instance *) { return "STAN_THREADS=true"; }
const char *bs_param_names(const Instance *self, bool transformed, bool generated) { return self->names[transformed][generated].c_str(); }
int bs_param_num(const Instance *self, bool transformed, bool generated) { return self->sizes[transformed][generated]; }
int bs_param_unc_num(const Instance *self) { return self->model->num_params_r(); }
stan::rng_t *bs_rng_construct(unsigned int seed, char **) { return new stan::rng_t(stan::services::util::create_rng(seed, 1)); }
void bs_rng_destruct(stan::rng_t *rng) { delete rng; }

int bs_set_print_callback(void (*callback)(const char *, size_t), char **)
{
    listener = callback;
    return 0;
}

int bs_log_density_gradient(const Instance *self, bool propto, bool jacobian, const double *free, double *value, double *score, char **message)
{
    return guarded("log_density_gradient()", message, [&] {
        begin_thread();
        Printed printed;
        auto density = [&](auto &x) {
            if (propto)
                return jacobian ? self->model->log_prob_propto_jacobian(x, &printed.stream) : self->model->log_prob_propto(x, &printed.stream);
            return jacobian ? self->model->log_prob_jacobian(x, &printed.stream) : self->model->log_prob(x, &printed.stream);
        };
        Eigen::VectorXd gradient;
        stan::math::gradient(density, copied(self, free), *value, gradient);
        Eigen::VectorXd::Map(score, gradient.size()) = gradient;
    });
}

int bs_param_constrain(const Instance *self, bool transformed, bool generated, const double *free, double *values, stan::rng_t *rng, char **message)
{
    return guarded("param_constrain()", message, [&] {
        begin_thread();
        Printed printed;
        if (generated && !rng)
            throw std::invalid_argument("generated quantities need a generator");
        stan::rng_t unused = stan::services::util::create_rng(0, 1);
        Eigen::VectorXd x = copied(self, free), out;
        self->model->write_array(generated ? *rng : unused, x, out, transformed, generated, &printed.stream);
        Eigen::VectorXd::Map(values, out.size()) = out;
    });
}

} // extern "C"
