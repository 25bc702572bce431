# One static binary in an image that holds nothing else but certificate authorities, run by nobody in particular.
#
#   docker build -t kausality .
#
# The version of Rust is rust-version of Cargo.toml.
FROM docker.io/library/rust:1.95-alpine AS build
# aws-lc-rs compiles C; the target is musl, so the binary needs no library at run time.
RUN apk add --no-cache build-base cmake
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --locked --release --package kausality \
    && cp target/release/kausality /kausality

FROM gcr.io/distroless/static-debian12:nonroot
LABEL org.opencontainers.image.title="kausality" \
      org.opencontainers.image.description="Traces and gates changes of intent through the hierarchy of Kubernetes objects" \
      org.opencontainers.image.source="https://github.com/kausality-io/kausality" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /kausality /usr/local/bin/kausality
# By number, so that Kubernetes can tell that it is not root.
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/kausality"]
