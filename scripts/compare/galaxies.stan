// Velocities of 82 galaxies as a mixture of three normals, in free coordinates: means, log widths, logits.
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
