# Images of the operator, of the load generator, and of the command line for CI:
#   docker build --target operator --tag registry.example/redisbench/operator:0.1.0 .
#   docker build --target loadgen --tag registry.example/redisbench/loadgen:0.1.0 .
#   docker build --target clients --tag registry.example/redisbench/clients:0.1.0 .
#   docker build --target cli --tag registry.example/redisbench/cli:0.1.0 .
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
COPY clients clients
COPY cli cli
COPY e2e e2e
COPY testkit testkit
COPY tools tools
RUN cargo build --locked --release -p redisbench-operator -p redisbench-loadgen -p redisbench-clients -p kubectl-redisbench

FROM gcr.io/distroless/cc-debian12:nonroot AS operator
COPY --from=build /source/target/release/redisbench-operator /usr/local/bin/redisbench-operator
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/redisbench-operator"]

FROM gcr.io/distroless/cc-debian12:nonroot AS loadgen
COPY --from=build /source/target/release/redisbench-loadgen /usr/local/bin/redisbench-loadgen
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/redisbench-loadgen"]

FROM gcr.io/distroless/cc-debian12:nonroot AS clients
COPY --from=build /source/target/release/redisbench-clients /usr/local/bin/redisbench-clients
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/redisbench-clients"]

# With a shell, and as root: jobs of CI need both.
FROM debian:bookworm-slim AS cli
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /source/target/release/redisbench-loadgen /usr/local/bin/redisbench-loadgen
COPY --from=build /source/target/release/kubectl-redisbench /usr/local/bin/kubectl-redisbench
RUN ln -s kubectl-redisbench /usr/local/bin/redisbench
