"""The scripted model: a stand-in for OpenAI Chat Completions and Anthropic Messages that follows a script.

Room's promise: given the same script and the same requests it sends the same bytes, over the same wire format
the vendors document, so the real agent cannot tell the difference. It is stdlib only, because it also runs in
a container of its own (``python3 -m model``) where it is the one network neighbour of a job: an HTTP proxy on
port 3128.

Start reading at ``script`` (what can be scripted), then ``scenarios`` (the catalogue), ``server`` (how to run
it) and ``log`` (how a test asks what was requested).
"""

from .log import Departure, Refusal, Request, RequestLog
from .scenarios import CATALOGUE
from .script import Call, Calls, Cut, Echo, Fault, Hang, Length, NoUsage, Say, Scenario, Slow, Step
from .server import Server
from .usage import Usage, total_usage, usage_of

__all__ = [
    "CATALOGUE",
    "Call",
    "Calls",
    "Cut",
    "Departure",
    "Echo",
    "Fault",
    "Hang",
    "Length",
    "NoUsage",
    "Refusal",
    "Request",
    "RequestLog",
    "Say",
    "Scenario",
    "Server",
    "Slow",
    "Step",
    "Usage",
    "total_usage",
    "usage_of",
]
