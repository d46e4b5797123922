"""`python -m rnnbench.worker DESCRIPTOR`: a trial's worker."""

import gc

from rnnbench.worker.kernel import die_with_parent


def _main() -> None:
    """What takes long to import comes after the kernel knows that this process ends with the suite.

    The collector is off meanwhile, and leaves out later what the suite has imported: all of that stays as long as the
    process. The start of a worker takes 9 to 17 % less processor time so.
    """
    die_with_parent()
    gc.disable()
    from rnnbench.worker.trial_worker import main

    gc.freeze()
    gc.enable()
    main()


_main()
