"""`python -m rnnbench.worker DESCRIPTOR`: a trial's worker."""

from rnnbench.worker.trial_worker import main

main()
