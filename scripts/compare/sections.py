"""What docs/comparison.md says before its tables."""

EVIDENCE = """## Evidence

Likelihoods on a box with a uniform prior, whose evidence is known in closed form or by quadrature (`scripts/compare/densities.py` computes it, the
library's tests hold themselves against it). `sterna` is told the target and nothing else, and begins from the prior. `sterna fitted`
begins from normals that are fitted to the posterior (`reference.kind = "fitted"`, what targets of users have whose prior is not told apart): where they fit it well two chains do, where they do not,
as for eggbox, it is worse than the prior: of four runs two did not end, and one of the others is wrong and says so (`unvisited-optimum`). An error falls with the root of the cost, so "for an error of
0.1", which may be more or less than a run spends, is evaluations × (error/0.1)², where the error is the larger of two: what the seeds show against the truth, and what the program says of itself. With one
seed either may be off by chance; a program that says nothing of its error needs three seeds for that number, and one of which a run did not end has none. Where every program loses a mode it stands, but means nothing.
Cells that were not measured, or did not end in the time that they had, have a dash; `compare` measures them, hours of it.
The spike of spike-slab-10 outweighs its slab in 4·10⁻¹⁰ of the box (`python3 scripts/compare/densities.py`), and neither the density nor its slope tells of it from anywhere else: a run of some 10⁵
evaluations holds no trace of it that an alarm could be raised by. `sterna told` knows about where to look: its climbs and its anchor begin around x = 0.25.
`sterna ais` and `sterna smc` are annealed importance sampling and sequential Monte Carlo on the ladder that `sterna run` tunes, with
eight times as many steps.

![Evaluations for an error of 0.1 in log Z](comparison/evidence.svg)

"""

POSTERIORS = """## Posteriors with several modes

Effective draws are the smallest bulk ESS of any value, by one function for all (nested samplers: of their weights). For mRNA, exchanging
two rates changes nothing, so each order holds one half; for galaxies each order of the components holds one sixth. Twelve posteriors of Stan's database beside
NUTS stand in [posteriors.md](posteriors.md).

"""

DATABASE = """### Posteriors of Stan's database

Evaluations to the first ESS of 1,000 of the slowest parameter. Sterna and Stan's NUTS are those of [posteriors.md](posteriors.md), seed 1; nutpie and dynesty ran
here with the same compiled models. dynesty ends by itself at some ESS, which stands in brackets. "Farthest mean" is the largest distance of a
posterior mean from that of the database's 10,000 draws, in standard deviations: sterna / NUTS / nutpie / dynesty.

"""

PHYSICS = """## Physics

`hmc` is plain Hamiltonian Monte Carlo of 32 chains side by side, in numpy (`scripts/compare/physics.py`), whose step is tuned to accept 80 %: another program with
another formula for the energy.

**Clusters.** W₂ is the Wasserstein-2 distance between 1,000 energies of a run and 1,000 of a run of `hmc`, another program, which stands for the truth: the mean over all pairs
of their seeds, with what the seeds scatter by. "Of two truths" is the same between two runs of `hmc`: no sampler gets below it but by chance. `sterna wide` is another ladder, of other chains from another
reference, `sterna affine` has a transport.

Thirteen particles need nothing but the target: some twenty chains, five seconds, and W₂ of two truths (a single one scatters by a third of it). An affine map makes a few more round trips, but each journey
takes one evaluation more, which costs more than it brings. Chains are counted and placed by rejected swaps, since particles that overlap have energies without variance: by slopes of log π, as other targets have it, two seeds of
three had some 200 chains and no round trip. Sequential Monte Carlo on that ladder is right as well, with energies from fewer points.

Fifty-five that are drawn as close together as the trap would have them all overlap, and their energies are beyond 10¹². The path here begins three times as wide: then particles are a
gas below β = 0.33 and a drop above it, one pair of chains lies across that jump and rejects every swap. A narrower start only moves the jump (2.4 times: no pair rejects more than 65 %, and yet no
round trip in 44 million evaluations; 2.0: a jump at 0.55) or jams the drop (1.5). So there is no round trip and no log Z, seeds
differ by 100, and the runs are called unsound. The energies of the coldest chain are right because its own moves mix, as those of plain HMC do, which needs neither ladder nor
transport: it is the better tool for this one, and where plain moves suffice no transport helps. An affine map changed nothing. Networks were not trained to their end on 55 particles: on
thirteen a point of a controlled diffusion in training takes 118 µs (51,120 in 6.1 processor seconds, by `accelerator.kind=cmcd accelerator.steps=1 training.steps=30`), an energy with its moves 1.2 µs; plain HMC has an effective energy
of 55 particles for some 380 to 480 evaluations, so that a map that made every swap an independent draw would gain little, its training apart.

**Lattices.** Couplings are those in use, at which the correlation length is a quarter of the edge: one phase, and a chain of HMC changes its sign by itself. Sterna samples a
lattice in the modes of the free field that comes nearest, and its path begins there: half as many chains as from independent sites, and long waves move as far in a step as
short ones (seed 1 to ESS 2,000: 47 evaluations for an effective |M| in place of 172 at L = 6, 284 in place of 1,417 at L = 12, with 4 and 7 chains in place of 7 and 13). `hmc` moves in
plain coordinates, `hmc in modes` in the same modes, which brings nothing at L = 6, halves what an effective |M| costs at L = 12 and leaves less than a third of it at L = 32. With one phase a ladder pays its chains for log Z alone. Where moves of the target chain alone would cost less than half, the note `idle-ladder`
([alarms.md](alarms.md)) says so: who wants no log Z, and knows that there is one phase, may use plain HMC.
At L = 32 the susceptibilities of sterna and of `hmc in modes` are 1.2 of their errors apart; `hmc` in sites forgets |M| in 277 draws there, and its error comes from blocks of 100.
Published for L = 32: an equivariant flow, once trained, has 90.4 % effective draws by its importance weights. That counts neither its training nor evaluations, and has no column here.
The last lattice has two phases (λ = 3.8, chosen so that HMC would keep its sign): there tempering is what finds both. Draws are what is kept: an iteration of sterna, ten
leapfrogs of `hmc`.

**Alanine dipeptide** in vacuum at 300 K beside replica exchange by OpenMM's own package for it, openmmtools, both with six temperatures from 300 to 1,200 K. C7ax lies behind the
barrier. OpenMM's Langevin dynamics stands in the README, round trips in [reproduction.md](reproduction.md).

"""

PAPER = """## What the paper's readers asked

Sample quality beside round trips, training counted, annealed importance sampling and sequential Monte Carlo, seconds, and how often
to swap. Ten chains, four ladders, 10,000 iterations after tuning; exact draws are the truth. "Mode weights off by": for GMM-10 the total variation
between the shares of the 40 modes and 1/40, for many wells the farthest share of a right well from its exact value.

Distances between the particles of DW-4, by transports alone and inside tempering, stand in [reproduction.md](reproduction.md) (`fig-neural-samplers`). `python3 scripts/compare/dw4.py` holds them against
sequential Monte Carlo in numpy, which shares nothing with the program: its truth and the page's are 0.003 apart in total variation, and each of the twelve numbers of the page is the same within 0.002
when it is taken to that truth.

"""
