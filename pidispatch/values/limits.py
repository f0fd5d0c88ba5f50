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
    #: Seconds between looks at a running container, besides waiting for its end.
    look_every_s: float = Field(default=5.0, gt=0)
