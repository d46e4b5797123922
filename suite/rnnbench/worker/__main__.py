"""`python -m rnnbench.worker DESCRIPTOR`: a trial's worker."""

import gc

from rnnbench.worker.kernel import die_with_parent


def _main() -> None:
    """What takes long to import comes after the kernel knows that this process ends with the suite.

    Garbage is not looked for meanwhile, and later not among what the suite has imported. It stays as long as the
    process, and the import of a framework would take up to a fifth longer.
    """
    die_with_parent()
    gc.disable()
    from rnnbench.worker.trial_worker import main

    gc.freeze()
    gc.enable()
    main()


_main()
