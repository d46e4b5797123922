"""`python -m rnnbench.worker DESCRIPTOR`: a trial's worker."""

from rnnbench.worker.kernel import die_with_parent


def _main() -> None:
    """What takes long to import comes after the kernel knows that this process ends with the suite."""
    die_with_parent()
    from rnnbench.worker.trial_worker import main

    main()


_main()
