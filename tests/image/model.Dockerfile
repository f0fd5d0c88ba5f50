# The scripted model as a neighbour of jobs: standard library only, runs as any user on a read-only root.
ARG BASE
FROM ${BASE}
ENV PYTHONPATH=/opt/model PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
EXPOSE 3128
ENTRYPOINT ["/usr/bin/python3", "-m", "model"]
CMD ["--log", "/tmp/requests.jsonl"]
COPY model /opt/model/model
