"""What docs/comparison.md says before its tables."""

EVIDENCE = """## Evidence

Likelihoods on a box with a uniform prior, whose evidence is known in closed form or by quadrature (`scripts/compare/densities.py` computes it, the
library's tests hold themselves against it). Sterna is told the target and nothing else. An error falls with the root of the cost, so "for an error of
0.1" is evaluations × (error/0.1)², where the error is the larger of two: what the seeds show against the truth, and what the program says of itself. With one
seed either may be off by chance. Cells that were not measured have a dash; `compare` measures them, hours of it.
`sterna ais` and `sterna smc` are annealed importance sampling and sequential Monte Carlo on the ladder that `sterna run` tunes, with
eight times as many steps.

![Evaluations for an error of 0.1 in log Z](comparison/evidence.svg)

"""

POSTERIORS = """## Posteriors with several modes

Effective draws are the smallest bulk ESS of any value, by one function for all (nested samplers: of their weights). For mRNA, exchanging
two rates changes nothing, so each order holds one half; for galaxies each order of the components holds one sixth. Twelve posteriors of Stan's database beside
NUTS stand in [posteriors.md](posteriors.md).

"""

PHYSICS = """## Physics

`hmc` is plain Hamiltonian Monte Carlo of 32 chains side by side, in numpy (`scripts/compare/physics.py`), whose step is tuned to accept 80 %: another program with
another formula for the energy. W₂ is the Wasserstein-2 distance between 1,000 energies of a run and 1,000 of another program's runs, and
the floor is the mean of that between two sets of 1,000 of the same run: no sampler gets below it but by chance. `sterna wide` is another ladder, of other chains from another
reference.

Thirteen particles need nothing but the target. Sequential Monte Carlo has their energies right and their log Z wrong by ten of its own errors: few points
survive the first steps from overlapping particles, and populations that all lost the same do not show it.
Fifty-five that are drawn as close together as the trap would have them all overlap, their energies are beyond
10¹², and slopes of log π by β say nothing of swaps: the ladder that is found by itself has 500 chains and no round trip, and the run is called unsound. With a
path that begins three times as wide, 40 chains and shares of rejected swaps to tune by, the barrier is about 16. The settings stand in the command.
No transport was tried on either.

Alanine dipeptide beside OpenMM's own Langevin dynamics stands in the README, its round trips in [reproduction.md](reproduction.md); replica exchange by OpenMM is not
written here.

"""

PAPER = """## What the paper's readers asked

Sample quality beside round trips, training counted, annealed importance sampling and sequential Monte Carlo, seconds, and how often
to swap. Ten chains, four ladders, 10,000 iterations after tuning; exact draws are the truth. "Mode weights off by": for GMM-10 the total variation
between the shares of the 40 modes and 1/40, for many wells the farthest share of a right well from its exact value.

"""
