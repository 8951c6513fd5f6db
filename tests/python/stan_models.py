"""Compiles Stan models with nothing but packages: the wheel `httpstan` brings Stan's compiler and headers, bridge.cpp the functions of
BridgeStan that Sterna calls. Libraries are kept in the folder of the virtual environment."""

import hashlib
import pathlib
import subprocess
import sys

import httpstan

from sterna_cli import ROOT

STAN = pathlib.Path(httpstan.__file__).parent
BRIDGE = ROOT / "tests" / "python" / "bridge.cpp"
HEADERS = ["stan/model/model_header.hpp", "stan/io/json/json_data.hpp", "stan/services/util/create_rng.hpp"]
FLAGS = ["-std=c++17", "-O1", "-fPIC", "-w", "-DSTAN_THREADS", "-D_REENTRANT", "-DBOOST_DISABLE_ASSERTS"]

SHARES = """
data {
  int<lower=2> K;
  array[K] int<lower=0> counts;
  real<lower=0> limit;
}
transformed data {
  vector[K] two = rep_vector(2, K);
}
parameters {
  simplex[K] share;
}
transformed parameters {
  real odds = share[1] / (1 - share[1]);
}
model {
  print("heard at each evaluation");
  if (share[1] > limit) reject("the first share is ", share[1]);
  target += dirichlet_lpdf(share | two);
  target += multinomial_lpmf(counts | share);
}
generated quantities {
  array[K] int again = multinomial_rng(share, sum(counts));
}
"""

GALAXIES = """
data {
  int N;
  vector[N] velocity;
}
parameters {
  vector[3] mu;
  vector<lower=0>[3] sigma;
  simplex[3] weight;
}
model {
  target += normal_lpdf(mu | 20, 10);
  target += lognormal_lpdf(sigma | 0, 1);
  target += dirichlet_lpdf(weight | rep_vector(2, 3));
  for (n in 1:N) {
    vector[3] parts = log(weight);
    for (k in 1:3) parts[k] += normal_lpdf(velocity[n] | mu[k], sigma[k]);
    target += log_sum_exp(parts);
  }
}
generated quantities {
  real lowest = min(mu);
  real highest = max(mu);
}
"""


def headers(kept):
    """Stan's headers, compiled once for all models: half of what one takes."""
    out = kept / f"{hashed(*HEADERS, *FLAGS)}.hpp"
    if not out.with_suffix(".hpp.gch").exists():
        out.write_text("".join(f"#include <{header}>\n" for header in HEADERS))
        made = out.with_suffix(".making")
        subprocess.run(["g++", *FLAGS, "-I", STAN / "include", "-x", "c++-header", "-o", made, out], check=True)
        made.rename(out.with_suffix(".hpp.gch"))
    return out


def hashed(*texts):
    return hashlib.sha256(" ".join([*texts, httpstan.__version__]).encode()).hexdigest()[:16]


def compiled(source):
    """The library of a model's text, made if it is not there yet: some 8 s of one core."""
    key = hashed(source, BRIDGE.read_text(), *FLAGS)
    kept = pathlib.Path(sys.prefix) / "stan-models"
    library = kept / f"{key}.so"
    if library.exists():
        return library
    work = kept / f"{key}.making"
    work.mkdir(parents=True, exist_ok=True)
    (work / "model.stan").write_text(source)
    subprocess.run([STAN / "stanc", "--name=tests_model", f"--o={work / 'model.hpp'}", work / "model.stan"], check=True)
    libraries = [*STAN.glob("lib/libsundials_*.a"), STAN / "lib" / "libtbb.so.2", f"-Wl,-rpath,{STAN / 'lib'}"]
    command = ["g++", *FLAGS, "-I", STAN / "include", "-include", headers(kept), "-include", work / "model.hpp", "-shared", "-o", work / "model.so", BRIDGE, *libraries]
    subprocess.run(command, check=True)
    (work / "model.so").rename(library)
    return library
