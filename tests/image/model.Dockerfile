# The scripted model as a neighbour of jobs: standard library only, runs as any user on a read-only root. It has the
# certificate of the edge GitHub, which it is the way to.
ARG BASE
ARG AUTHORITY
FROM ${AUTHORITY} AS authority
FROM ${BASE}
ENV PYTHONPATH=/opt/model PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
EXPOSE 3128
ENTRYPOINT ["/usr/bin/python3", "-m", "model"]
CMD ["--log", "/tmp/requests.jsonl"]
COPY --from=authority /site.pem /opt/edge/site.pem
COPY model /opt/model/model
