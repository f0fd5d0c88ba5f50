"""The baseline of the receiver's figures: a starlette application that checks the same signature and publishes a task.

Run as `python -m benchmarks.bare_receiver PORT SECRET`; the task is that of the bare Celery application.
"""

import hashlib
import hmac
import json
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from benchmarks.bare import stamp

_SECRET = sys.argv[2].encode()


async def hook(request: Request) -> JSONResponse:
    """One webhook: the signature of the raw body, its JSON, one task."""
    body = await request.body()
    signature = "sha256=" + hmac.new(_SECRET, body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(signature, request.headers.get("x-hub-signature-256", "")):
        return JSONResponse({"error": "invalid signature"}, 401)
    payload = json.loads(body)
    await run_in_threadpool(stamp.delay, f"hook-{payload['issue']['number']}")
    return JSONResponse({"status": "queued"}, 202)


if __name__ == "__main__":
    app = Starlette(routes=[Route("/", hook, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False, http="httptools")
