"""The Celery side: the application, its task, what a delivery does, and the end of a worker.

Promise: a ticket may come once, twice or late; a job's container is started once.
"""
