"""The server of the queue: the one that is named by URL, or our own, started, shared and ended here.

Promise: what was written is on the disk before it is answered, and the last user ends what the first one started.
"""
