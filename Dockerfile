# deltaproto with Spark, and every jar that it needs: it fetches nothing when it runs.
#
#   docker build -t deltaproto .
#   docker run --rm -v "$PWD:/work" deltaproto inspect ./orders
FROM python:3.12.12-slim-bookworm

SHELL ["/bin/bash", "-o", "pipefail", "-c"]

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*

COPY . /src
RUN python -m pip install --no-cache-dir -c /src/constraints.txt "/src[connect]" \
    && python /src/docker/bake.py \
    && rm -rf /src \
    && useradd --create-home --uid 10001 user

USER 10001
WORKDIR /work
ENTRYPOINT ["deltaproto"]
CMD ["--help"]
