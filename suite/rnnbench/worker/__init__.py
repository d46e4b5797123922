"""The processes that programs run in: starting them, sending them commands, and carrying the commands out.

The suite's side:

    launcher           starts a process, sends it commands, says why it died: `WorkerProcess`, `WorkerError`
    started_process    a process with its descendants: stops it, binds it to cores, kills it
    protocol           commands and replies: `Command`, `Done`, `Failed`
    channel            the socket that carries them
    commands           the commands of a trial's worker
    trial_process      starts a worker for a trial: `start_trial_worker`, `worker_key`; the folders of a run
    fork_pool          one worker that forks a child for each trial: `ForkingWorker`, `ForkedWorker`
    adapter_process    the process of an adapter: `AdapterProcess`; `adapter_worker` is its other end
    file_process       the process that reads a model file: `describe_file`; `file_worker` is its other end
    helper_program     runs a program that is no worker, such as pip: `run_helper`
    memory             the resident memory of a worker and its descendants
    supervisor         a process that kills what is left when the suite is killed
    process_family     ending with the parent, killing a process with its family, kills for want of memory

The worker of a trial:

    trial_worker       builds, loads and checks; `trial_sampler` times
    server             the worker's loop: `run_worker`, `serve`, `open_channel`, `answer`
    forked_build       a build in a forked child
    forked_trial       one trial in a forked child; `preload` imports beforehand
    finding_log        the findings of a process that are not reported yet
    held_trials        the trials that a worker holds; `trial_programs` has their programs
    kept_programs      the cache of programs and of the figures of their builds
    kept_checks        the cache of check results
    tail_builds        builds of programs of one step, in a store that several trials share
    outside_files      files outside of a run's folders that a build reads or writes
    prepared_program   a program that is ready to be sampled; `program_streams` has many streams of one
    process_state      the changes that a command leaves in its process, found and put back
    process_settings   the settings that are compared; `c_settings`, `python_settings` and `kernel_settings` have their
                       functions, and `setting_words` the words
    replaced_functions functions of Python, NumPy and the suite that a program has replaced

Start with `commands`, then read `trial_worker`.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.worker import commands
    from rnnbench.worker.adapter_process import AdapterProcess
    from rnnbench.worker.adapter_worker import AskProbe
    from rnnbench.worker.channel import Channel, ChannelClosedError
    from rnnbench.worker.commands import (
        Build,
        CloseStreams,
        Compare,
        ComputeReference,
        DeviceTime,
        Forget,
        Load,
        OpenStreams,
        Prepare,
        ReferenceFigures,
        Restore,
        RunChecks,
        SamplePath,
        SampleStateCopy,
        SentBlock,
        SentServed,
        ServeFrames,
        ServeRequests,
        TimeOnDevice,
        Verified,
        Verify,
    )
    from rnnbench.worker.file_process import check_file, describe_file
    from rnnbench.worker.fork_pool import ForkedWorker, ForkingWorker
    from rnnbench.worker.helper_program import run_helper
    from rnnbench.worker.kept_programs import remember_build, remembered_build
    from rnnbench.worker.launcher import START_LIMIT_S, Host, WorkerError, WorkerProcess, called_while_waiting, waited
    from rnnbench.worker.process_family import die_with_parent
    from rnnbench.worker.protocol import Command, Done, Failed, Reply
    from rnnbench.worker.server import open_channel, run_worker
    from rnnbench.worker.supervisor import own_folder
    from rnnbench.worker.trial_process import (
        RunFolders,
        by_worker,
        log_name,
        start_trial_worker,
        variables,
        worker_cores,
        worker_key,
    )

__getattr__, __all__ = lazy_names(__name__, __file__)
