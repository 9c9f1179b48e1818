# The relay alone, as a user without rights: docs/RUNNING.md#containers. BASE must have Debian 12 or later.
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BASE} AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml setup.py README.md LICENSE requirements.lock ./
COPY protocol protocol
COPY relay relay
COPY deploy/man deploy/man
COPY deploy/completions deploy/completions
COPY deploy/container/sbom.py ./
# "skip": without the compiled part, many times slower; for a trial of the image.
ARG KERNEL=require
RUN python3 -m venv /opt/binlog-relay \
    && /opt/binlog-relay/bin/pip install --no-cache-dir --require-hashes -r requirements.lock \
    && BINLOG_RELAY_KERNEL=${KERNEL} /opt/binlog-relay/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
    && rm -rf /opt/binlog-relay/bin/pip* /opt/binlog-relay/lib/python3*/site-packages/pip /opt/binlog-relay/lib/python3*/site-packages/setuptools* \
    /opt/binlog-relay/lib/python3*/site-packages/pip-* /opt/binlog-relay/lib/python3*/site-packages/_distutils_hack /opt/binlog-relay/lib/python3*/site-packages/distutils-precedence.pth \
    && mkdir -p /opt/binlog-relay/share \
    && /opt/binlog-relay/bin/python sbom.py >/opt/binlog-relay/share/sbom.cdx.json

FROM ${BASE}
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 binlog-relay \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/binlog-relay --shell /usr/sbin/nologin binlog-relay \
    && install -d -m 750 -o 10001 -g 10001 /var/lib/binlog-relay /etc/binlog-relay
COPY --from=build /opt/binlog-relay /opt/binlog-relay
COPY deploy/container/healthcheck.py /opt/binlog-relay/libexec/healthcheck.py
ENV PATH=/opt/binlog-relay/bin:$PATH PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /var/lib/binlog-relay
VOLUME ["/var/lib/binlog-relay"]
# Replicas, and with [http] metrics and health.
EXPOSE 3307 9307
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["python3", "/opt/binlog-relay/libexec/healthcheck.py"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/opt/binlog-relay/bin/binlog-relay"]
CMD ["run", "--config", "/etc/binlog-relay/relay.toml"]
