"""Many jobs that sleep, made as copies of one that the product put to sleep, and what a process has in memory."""

import json
import secrets
from pathlib import Path
from typing import Any

import redis


def memory(pid: int) -> int:
    """Bytes that a process has in memory."""
    (line,) = (one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def hold_many(client: "redis.Redis", prefix: str, model: str, queue: str, count: int) -> list[str]:
    """Put `count` copies of the sleeping job `model` and of its ticket into `queue`, in its place; their ids.

    The model's ticket must lie in a queue that nobody consumes, so that it can be read.
    """
    ids = [f"local-{secrets.token_hex(8)}" for _ in range(count)]
    row = {str(name): str(value) for name, value in client.hgetall(f"{prefix}job:{model}").items()}
    nobodys = row["queue"]
    ticket = str(client.rpop(f"{prefix}{nobodys}"))
    tag = json.loads(ticket)["properties"]["delivery_tag"]
    due = client.zscore(f"{prefix}jobs:due", model)
    many: Any = client.pipeline(transaction=False)
    for job_id in ids:
        own = {**row, "queue": queue, "data": row["data"].replace(model, job_id)}
        copy = ticket.replace(nobodys, queue).replace(model, job_id).replace(tag, secrets.token_hex(16))
        many.hset(f"{prefix}job:{job_id}", mapping=own)
        many.zadd(f"{prefix}jobs:due", {job_id: due})
        many.lpush(f"{prefix}{queue}", copy)
    many.zrem(f"{prefix}jobs:due", model)
    many.execute()
    return ids
