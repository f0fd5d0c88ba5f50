"""Names that cross the wall of the box: variables, labels, paths and name prefixes, each declared once."""

from typing import Final

from pidispatch.values.forge import FORGES

#: Prefix of every job container and job network; a namespace claimed on the engine.
JOB_PREFIX: Final = "pi-job-"
#: User and group of the shipped image.
IMAGE_UID: Final = 1001
#: Home of the job's user inside the box.
BOX_HOME: Final = "/home/pi"
#: The proxy that `pi-dispatch egress up` runs, unless another name is given.
EGRESS_PROXY: Final = "pi-dispatch-egress-proxy"
#: Port on which the job's one neighbour answers as an HTTP proxy.
PROXY_PORT: Final = 3128

#: What the mark in a comment of this program's own begins with; a reader does not see it.
COMMENT_MARK: Final = "<!-- pi-dispatch "
#: Labels written on job containers and networks.
LABEL_JOB: Final = "pi.dispatch.job"
LABEL_ATTEMPT: Final = "pi.dispatch.attempt"
LABEL_DEPLOYMENT: Final = "pi.dispatch.deployment"

#: Labels read from a job image.
LABEL_PI_VERSION: Final = "dev.pi-dispatch.pi-version"
LABEL_CAPABILITIES: Final = "dev.pi-dispatch.capabilities"
LABEL_FORGES: Final = "dev.pi-dispatch.forges"
#: The image runs as any user and group.
CAPABILITY_ANY_UID: Final = "anyUid"
#: Its guardrails keep jobs that work on one issue side by side to the branch that each was given.
CAPABILITY_REPLICAS: Final = "replicas"
#: It has commands that can be a job's whole prompt.
CAPABILITY_COMMANDS: Final = "commands"

#: Variables the box writes on every job, whatever the settings.
ALWAYS_WRITTEN: Final = ("PI_PROVIDER", "PI_MODEL", "PI_MAX_TURNS", "PI_JOB_ID", "PI_OFFLINE")
#: Variables the box writes when the job calls for them. `HOME` travels with an explicit user only.
SOMETIMES_WRITTEN: Final = ("PI_MAX_TOKENS", "PI_FLOW", "PI_COMMAND", "HOME")
#: Variables that send a job's traffic to its one neighbour. The lower-case forms are there because curl and git
#: read no upper-case name for plain HTTP.
PROXY_WRITTEN: Final = (
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "NODE_USE_ENV_PROXY",
)
#: Variables by which the runner hands its budgets to the agent; never taken from outside.
RUNNER_INTERNAL: Final = ("RUN_MAX_TURNS", "RUN_MAX_TOKENS", "PI_CODING_AGENT_DIR")
#: Names kept for later use inside the box. Nothing serves them yet, so nobody may forward them.
RESERVED: Final = (
    "PI_PACKAGES",
    "PI_SESSION_FILE",
    "PI_EXCLUDE_TOOLS",
    "PI_ALLOWED_MODELS",
    "PI_MAX_COST_MICROS",
    "PI_EXIT_AUTH",
    "PI_GLOBAL_ALLOW_EXTENSIONS",
    "PI_DISPATCH_KEYLESS",
    "PI_DISPATCH_CHILD_LEDGER",
    "PI_DISPATCH_RUNNER_PID",
    "PLAYWRIGHT_BROWSERS_PATH",
    "PLAYWRIGHT_MCP_BROWSER",
    "PLAYWRIGHT_MCP_SANDBOX",
)
#: Bounds and files that an operator may know from the documentation of later versions. Nothing serves them yet, so a
#: set one is refused instead of ignored.
UNSERVED_BOUNDS: Final = (
    "PI_MAX_COST_USD",
    "PI_DAILY_COST_USD",
    "PI_WEEKLY_COST_USD",
    "PI_MONTHLY_COST_USD",
    "PI_ALLOWED_MODELS",
    "PI_SCOPED_LIMITS_FILE",
    "PI_PROJECTS_FILE",
    "PI_ENVELOPE_FILE",
    "PI_HOST_MEMORY_BUDGET",
    "PI_HOST_CPU_BUDGET",
    "PI_JOB_MEMORY",
    "PI_JOB_CPUS",
)
#: Those of them that name a file, for which an empty value is a value too.
UNSERVED_FILES: Final = frozenset(name for name in UNSERVED_BOUNDS if name.endswith("_FILE"))
#: Variables by which `gh` finds another host than github.com, and the token for it.
GH_HOST: Final = "GH_HOST"
GH_ENTERPRISE_TOKEN: Final = "GH_ENTERPRISE_TOKEN"
#: Variables the box writes for a job that was given a forge's token, after all others. The token of one forge is never
#: handed to the programs of another.
FORGE_WRITTEN: Final = (
    *(name for row in FORGES.values() for name in row.token_variables),
    GH_HOST,
    GH_ENTERPRISE_TOKEN,
)
#: Credentials that are made for one job, the host they are for, and what belongs to this machine alone.
NEVER_FORWARDED: Final = (
    *FORGE_WRITTEN,
    # What `gh` reads where the one above is missing.
    "GITHUB_ENTERPRISE_TOKEN",
    "AZURE_TOKEN",
    "GITHUB_APP_PRIVATE_KEY",
    "VALKEY_PASSWORD",
    "VALKEY_URL",
    "WEBHOOK_SECRET",
    "GITLAB_WEBHOOK_SECRET",
    "FORGEJO_WEBHOOK_SECRET",
    "AZURE_WEBHOOK_SECRET",
    "GIT_ASKPASS_TOKEN",
)
