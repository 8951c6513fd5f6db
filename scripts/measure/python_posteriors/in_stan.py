"""The same eight posteriors in Stan, by the folder's name."""

MODELS = {
    "arK-arK": """
        data { int K; int T; vector[T] y; }
        transformed data {
          matrix[T - K, K] before;
          for (t in 1:(T - K)) for (k in 1:K) before[t, k] = y[K + t - k];
        }
        parameters { real alpha; vector[K] beta; real<lower=0> sigma; }
        model {
          alpha ~ normal(0, 10);
          beta ~ normal(0, 10);
          sigma ~ cauchy(0, 2.5);
          tail(y, T - K) ~ normal(alpha + before * beta, sigma);
        }""",
    "arma-arma11": """
        data { int T; vector[T] y; }
        parameters { real mu; real phi; real theta; real<lower=0> sigma; }
        model {
          real error = y[1] - mu - phi * mu;
          mu ~ normal(0, 10);
          phi ~ normal(0, 2);
          theta ~ normal(0, 2);
          sigma ~ cauchy(0, 2.5);
          error ~ normal(0, sigma);
          for (t in 2:T) {
            error = y[t] - mu - phi * y[t - 1] - theta * error;
            error ~ normal(0, sigma);
          }
        }""",
    "eight_schools-eight_schools_centered": """
        data { int J; vector[J] y; vector[J] sigma; }
        parameters { vector[J] theta; real mu; real<lower=0> tau; }
        model {
          mu ~ normal(0, 5);
          tau ~ cauchy(0, 5);
          theta ~ normal(mu, tau);
          y ~ normal(theta, sigma);
        }""",
    "garch-garch11": """
        data { int T; vector[T] y; real sigma1; }
        parameters {
          real mu;
          real<lower=0> alpha0;
          real<lower=0, upper=1> alpha1;
          real<lower=0, upper=1 - alpha1> beta1;
        }
        model {
          real variance = square(sigma1);
          y[1] ~ normal(mu, sigma1);
          for (t in 2:T) {
            variance = alpha0 + alpha1 * square(y[t - 1] - mu) + beta1 * variance;
            y[t] ~ normal(mu, sqrt(variance));
          }
        }""",
    "kidiq-kidscore_interaction": """
        data { int N; vector[N] kid_score; vector[N] mom_iq; vector[N] mom_hs; }
        transformed data {
          matrix[N, 4] x = append_col(append_col(rep_vector(1, N), mom_hs), append_col(mom_iq, mom_hs .* mom_iq));
        }
        parameters { vector[4] beta; real<lower=0> sigma; }
        model {
          sigma ~ cauchy(0, 2.5);
          kid_score ~ normal(x * beta, sigma);
        }""",
    "low_dim_gauss_mix-low_dim_gauss_mix": """
        data { int N; vector[N] y; }
        parameters { ordered[2] mu; vector<lower=0>[2] sigma; real<lower=0, upper=1> theta; }
        model {
          mu ~ normal(0, 2);
          sigma ~ normal(0, 2);
          theta ~ beta(5, 5);
          for (n in 1:N) target += log_mix(theta, normal_lpdf(y[n] | mu[1], sigma[1]), normal_lpdf(y[n] | mu[2], sigma[2]));
        }""",
    "earnings-earn_height": """
        data { int N; vector[N] earn; vector[N] height; }
        parameters { vector[2] beta; real<lower=0> sigma; }
        model { earn ~ normal(beta[1] + beta[2] * height, sigma); }""",
    "diamonds-diamonds": """
        data { int N; int K; vector[N] Y; matrix[N, K] X; }
        transformed data {
          matrix[N, K - 1] x;
          for (k in 2:K) x[, k - 1] = X[, k] - mean(X[, k]);
        }
        parameters { vector[K - 1] b; real Intercept; real<lower=0> sigma; }
        model {
          b ~ normal(0, 1);
          Intercept ~ student_t(3, 8, 10);
          sigma ~ student_t(3, 0, 10);
          Y ~ normal_id_glm(x, Intercept, b, sigma);
        }""",
}
