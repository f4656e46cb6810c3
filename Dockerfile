# Images of the operator and of the load generator:
#   docker build --target operator --tag registry.example/redisbench/operator:0.1.0 .
#   docker build --target loadgen --tag registry.example/redisbench/loadgen:0.1.0 .
FROM rust:1.95.0-bookworm AS build
# The image's own compiler, without the components that rust-toolchain.toml adds for developers.
ENV RUSTUP_TOOLCHAIN=1.95.0
WORKDIR /source
COPY Cargo.toml Cargo.lock ./
COPY wire wire
COPY statistics statistics
COPY benchmark benchmark
COPY operator operator
COPY loadgen loadgen
COPY cli cli
COPY e2e e2e
COPY testkit testkit
COPY tools tools
RUN cargo build --locked --release -p redisbench-operator -p redisbench-loadgen

FROM gcr.io/distroless/cc-debian12:nonroot AS operator
COPY --from=build /source/target/release/redisbench-operator /usr/local/bin/redisbench-operator
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/redisbench-operator"]

FROM gcr.io/distroless/cc-debian12:nonroot AS loadgen
COPY --from=build /source/target/release/redisbench-loadgen /usr/local/bin/redisbench-loadgen
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/redisbench-loadgen"]
