"""A template for Celery settings of an operator's own: copy it, and name the copy with PI_CELERY_CONFIG.

Without that variable the file `celeryconfig.py` in PI_STATE_DIR is taken, where there is one. It is found by its path
alone and never by the current folder, which may be a repository that an agent writes.

What stands here is merged over pi-dispatch's own settings, which are pidispatch/jobs/celery_defaults.py. Those that its
promises hang on are fixed: a file that sets one otherwise is refused with exit code 2, and so is a name that is no
setting of Celery's. docs/how-to/worker.md lists them.

Every setting of Celery's: https://docs.celeryq.dev/en/stable/userguide/configuration.html
"""

# Task events, on which Flower and `celery events` live. Without them a worker writes a little less to the server.
worker_send_task_events = True
task_send_sent_event = True

# Whether Flower and `celery control` can ask the worker anything, and so stop a job.
# worker_enable_remote_control = True

# Seconds for which the events of a monitor that went away are kept for it.
# event_queue_expires = 60.0

# Seconds that one try to reach the server takes. Options are merged one by one.
# broker_transport_options = {"socket_connect_timeout": 5}
