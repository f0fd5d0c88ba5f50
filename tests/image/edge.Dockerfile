# The job image, which trusts the authority of the tests, so that the edge GitHub can stand under its real names.
ARG BASE
ARG AUTHORITY
FROM ${AUTHORITY} AS authority
FROM ${BASE}
USER root
COPY --from=authority /authority.crt /usr/local/share/ca-certificates/pi-dispatch-tests.crt
RUN update-ca-certificates
# Node reads no file of the system's by itself.
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
USER 1001:1001
