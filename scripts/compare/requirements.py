"""The programs that Sterna is held against: pip install $(python3 scripts/compare/requirements.py)"""

PROGRAMS = """
blackjax==1.7.1 dynesty==3.1.0 emcee==3.1.6 nautilus-sampler==1.0.6 numpyro==0.22.0 nutpie==0.16.8 pystan==3.10.0 reddemcee==1.0 ultranest==4.6.3 openmm==8.6.1
openmmtools==0.27.0
"""
BESIDE = "h5py jax==0.10.2 numba==0.68.1 numpy pymbar==4.0.3 scipy"

if __name__ == "__main__":
    print(*PROGRAMS.split(), *BESIDE.split())
