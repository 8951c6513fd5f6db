"""The posteriors as Stan models."""

MRNA = """// mRNA transfection: values are log₁₀ of t₀, k m₀, β, δ and σ, flat within bounds.
data {
  vector[51] y;
}
parameters {
  real<lower=-2, upper=1> lt0;
  real<lower=-5, upper=5> lkm0;
  real<lower=-5, upper=5> lbeta;
  real<lower=-5, upper=5> ldelta;
  real<lower=-2, upper=2> lsigma;
}
transformed parameters {
  vector[5] x = [lt0, lkm0, lbeta, ldelta, lsigma]';
}
model {
  real beta = pow(10, lbeta);
  real delta = pow(10, ldelta);
  for (i in 1 : 51) {
    real since = 0.2 * (i - 1) - pow(10, lt0);
    real mu = 0;
    if (since > 0)
      mu = pow(10, lkm0) * (exp(-beta * since) - exp(-delta * since)) / (delta - beta);
    y[i] ~ normal(mu, pow(10, lsigma));
  }
}
"""

GALAXIES = """// Velocities of 82 galaxies as a mixture of three normals, in free coordinates: means, log widths, logits.
data {
  vector[82] y;
}
parameters {
  vector[9] x;
}
model {
  vector[3] log_weight = log_softmax(x[7 : 9]);
  x[1 : 3] ~ normal(20, 10);
  x[4 : 9] ~ normal(0, 1);
  for (i in 1 : 82) {
    vector[3] parts;
    for (k in 1 : 3)
      parts[k] = log_weight[k] + normal_lpdf(y[i] | x[k], exp(x[3 + k]));
    target += log_sum_exp(parts);
  }
}
"""
