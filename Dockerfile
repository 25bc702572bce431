# One binary in an image that holds nothing else but the C library and certificate authorities, run by nobody in particular.
#
#   docker build -t kausality .
#
# The version of Rust is rust-version of Cargo.toml.
# glibc, since the figures in docs/performance.md are of its allocator.
FROM docker.io/library/rust:1.95-slim-bookworm AS build
# aws-lc-rs and SQLite are compiled from C.
RUN apt-get update && apt-get install --yes --no-install-recommends cmake g++ make
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --locked --release --package kausality \
    && cp target/release/kausality /kausality

FROM gcr.io/distroless/cc-debian12:nonroot
LABEL org.opencontainers.image.title="kausality" \
      org.opencontainers.image.description="Traces and gates changes of intent through the hierarchy of Kubernetes objects" \
      org.opencontainers.image.source="https://github.com/kausality-io/kausality" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /kausality /usr/local/bin/kausality
# Memory that a list took goes back to the system once it is free: without this, glibc learns to keep it.
ENV MALLOC_TRIM_THRESHOLD_=131072
# By number, so that Kubernetes can tell that it is not root.
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/kausality"]
