// mRNA transfection: values are log₁₀ of t₀, k m₀, β, δ and σ, flat within bounds.
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
