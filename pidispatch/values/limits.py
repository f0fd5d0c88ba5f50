"""Fixed bounds of a run. Not settings: a deployment cannot widen them. Tests hand in smaller ones."""

from pydantic import Field

from pidispatch.values.base import Value


class Limits(Value):
    """Bounds of one attempt and of its container (docs/reference/limits.md is made from this table)."""

    #: Seconds an attempt may take from its first check to the end of its container.
    job_timeout_s: float = Field(default=1800.0, gt=0)
    #: Seconds between the polite and the final signal when a container is stopped.
    stop_grace_s: int = Field(default=5, ge=0)
    #: Seconds to wait for a stopped container to be gone before the attempt ends without it.
    stop_take_s: float = Field(default=30.0, gt=0)
    #: Seconds to look for and remove a container whose engine connection was lost.
    detached_s: float = Field(default=10.0, gt=0)
    #: Seconds to wait for the last output after the container ended.
    drain_s: float = Field(default=2.0, gt=0)
    #: Characters of output kept to read the end of a run from.
    tail_chars: int = Field(default=8192, ge=1024)
    #: Longest output line, in characters, that is looked at for progress.
    line_chars: int = Field(default=1024, ge=256)
    #: Memory of a job container in MiB; swap is not added to it.
    memory_mib: int = Field(default=4096, ge=64)
    #: CPUs of a job container in hundredths.
    cpu_centi: int = Field(default=200, ge=1)
    #: Processes and threads of a job container.
    pids: int = Field(default=512, ge=16)
    #: Shared memory of a job container in MiB.
    shm_mib: int = Field(default=1024, ge=1)
    #: Size of the job's `/tmp` in MiB.
    tmp_mib: int = Field(default=512, ge=1)
    #: Size of the job's home in MiB.
    home_mib: int = Field(default=64, ge=1)
    #: Seconds one git call on the host may take.
    git_timeout_s: float = Field(default=60.0, gt=0)
    #: Seconds the clone of a repository may take.
    clone_timeout_s: float = Field(default=600.0, gt=0)
    #: Seconds all git calls together may take that read what a run changed.
    reading_s: float = Field(default=90.0, gt=0)
    #: Bytes of output kept of one git call on the host.
    git_output_bytes: int = Field(default=16 * 1024 * 1024, ge=1024)
    #: Files of the repository's `.pi` that a job may bring along.
    pi_files: int = Field(default=256, ge=1)
    #: Files of one skill among them.
    pi_skill_files: int = Field(default=64, ge=1)
    #: Bytes of one of them.
    pi_file_bytes: int = Field(default=1024 * 1024, ge=1)
    #: Bytes of all of them together.
    pi_total_bytes: int = Field(default=8 * 1024 * 1024, ge=1)
    #: Bytes of git's list of everything in `.pi`, whether it travels or not.
    pi_listing_bytes: int = Field(default=1024 * 1024, ge=1024)
    #: Characters of a file's path below `.pi`; a file with a longer one stays behind.
    pi_path_chars: int = Field(default=200, ge=1)
    #: Skills of a folder that a rule names as `skillsDir`.
    skills_dir_skills: int = Field(default=64, ge=1)
    #: Files of all of them together.
    skills_dir_files: int = Field(default=512, ge=1)
    #: Bytes of all of them together.
    skills_dir_bytes: int = Field(default=4 * 1024 * 1024, ge=1)
    #: Folders in one another, the one of a skill counted.
    skills_dir_depth: int = Field(default=8, ge=1)
    #: Seconds between looks at a running container, besides waiting for its end.
    look_every_s: float = Field(default=5.0, gt=0)
    #: Seconds a job's run lease stands without being renewed.
    lease_s: float = Field(default=60.0, gt=0)
    #: Seconds between renewals of the leases of this worker's jobs.
    renew_every_s: float = Field(default=20.0, gt=0)
    #: Seconds between two sweeps of the store by one worker.
    sweep_every_s: float = Field(default=30.0, gt=0)
    #: Seconds beyond a lease that the server must have been up before a job counts as lost.
    sweep_rest_s: float = Field(default=30.0, ge=0)
    #: Jobs that one sweep looks at for each of its cases.
    sweep_batch: int = Field(default=500, ge=1)
    #: Seconds after which a published ticket that nobody took is published again.
    unclaimed_s: float = Field(default=300.0, gt=0)
    #: Seconds past its instant after which a deferred job's ticket is published again.
    overdue_s: float = Field(default=60.0, gt=0)
    #: Seconds after which another worker writes a record that is missing.
    unrecorded_s: float = Field(default=60.0, gt=0)
    #: Times a job that was lost before it spent is queued again.
    lost_requeues: int = Field(default=2, ge=0)
    #: Milliseconds in which a second job with the same semantic key is not created.
    dedup_ms: int = Field(default=600_000, ge=1)
    #: Deliveries of each forge that the log keeps.
    deliveries: int = Field(default=1_000, ge=1)
    #: Seconds for which the last run of a trigger counts that came to nothing; a yearly schedule has its turn.
    trigger_runs_s: float = Field(default=400 * 86_400.0, gt=0)
    #: Seconds for which one worker may be about to post a comment, before another one may be.
    comment_lease_s: float = Field(default=60.0, gt=0)
    #: Seconds until a comment that could not be posted is tried again; doubled with each further time.
    comment_retry_s: float = Field(default=60.0, gt=0)
    #: Seconds between two tries at most.
    comment_longest_s: float = Field(default=3600.0, gt=0)
    #: Seconds after the first try in which a comment is given up.
    comment_patience_s: float = Field(default=86_400.0, gt=0)
    #: Seconds without a delivery after which a source counts as silent.
    source_silent_s: float = Field(default=7 * 86_400.0, gt=0)
    #: Seconds between two looks of a scheduler.
    schedule_every_s: float = Field(default=1.0, gt=0)
    #: Seconds for which an occurrence of a schedule is on time: looks of a scheduler are seconds apart, and only what
    #: no scheduler was there for counts as missed.
    on_time_s: float = Field(default=60.0, gt=0)
    #: Milliseconds until a job that met a busy folder, or a busy machine, is looked at again.
    scope_busy_recheck_ms: int = Field(default=5_000, ge=1)
    #: Milliseconds until a job is looked at again that fell due while its queue was paused.
    paused_recheck_ms: int = Field(default=13_000, ge=1)
    #: Milliseconds before the end of quiet hours from which on a job is let in.
    quiet_slack_ms: int = Field(default=1_000, ge=0)
    #: Milliseconds without a further event after which an edited file is read; at most so long from the first event on.
    edit_debounce_ms: int = Field(default=150, ge=1)
    #: Seconds between looks at a file of the operator's while no event tells of it.
    file_look_s: float = Field(default=5.0, gt=0)
    #: Seconds between looks at which queues are paused.
    pause_poll_s: float = Field(default=1.0, gt=0)
    #: Milliseconds until a ticket is looked at again whose store did not answer.
    undecided_recheck_ms: int = Field(default=3_000, ge=1)
    #: Milliseconds from a failed attempt to the next; doubled with each further one.
    retry_base_ms: int = Field(default=60_000, ge=1)
    #: Seconds between looks for a request to cancel a running job.
    cancel_poll_s: float = Field(default=2.0, gt=0)
    #: Seconds for which a request to cancel stands.
    cancel_request_s: float = Field(default=60.0, gt=0)
    #: Seconds for which one who asks to cancel waits for the answer.
    cancel_wait_s: float = Field(default=10.0, gt=0)
    #: Seconds for which the answer to a request to cancel stands.
    cancel_ack_s: float = Field(default=300.0, gt=0)
    #: Seconds after which the broker gives back a ticket whose holder has not renewed it.
    visibility_s: float = Field(default=120.0, gt=0)
    #: Seconds between two tickets by which a worker proves that its consumer hears.
    tick_every_s: float = Field(default=30.0, gt=0)
    #: Seconds without such a ticket after which a worker with free slots ends itself.
    deaf_s: float = Field(default=150.0, gt=0)
    #: Seconds for which the store shows a worker that has not said anything.
    worker_seen_s: float = Field(default=90.0, gt=0)
    #: Seconds for which the progress and the result of a run are shown to the one who waits for it.
    progress_s: float = Field(default=3600.0, gt=0)
    #: Seconds between two tries to tell the store of an end, while it does not answer.
    store_retry_s: float = Field(default=1.0, gt=0)
    #: Seconds for which a worker that was told to stop goes on trying.
    stop_patience_s: float = Field(default=5.0, ge=0)
    #: Seconds that a worker which holds no job has to leave, before it ends itself.
    leave_s: float = Field(default=30.0, gt=0)
    #: Seconds for which the queue's transport waits for an answer of the server.
    broker_answer_s: float = Field(default=30.0, gt=0)
    #: Threads of a worker beyond its job slots; in them jobs that fall due on a full machine are deferred.
    spare_threads: int = Field(default=2, ge=1)
    #: Job slots that the threads of a worker are made for at least, so that the number can be raised while it runs.
    most_slots: int = Field(default=10, ge=1)
