# The image. From source: docker buildx build --platform linux/amd64,linux/arm64 . ; a release puts the binaries
# of its packages into the target prebuilt instead.
ARG GO=1.26
ARG BASE=gcr.io/distroless/base-nossl-debian12:nonroot

# Cross-compiled, as it is ten times faster than an emulated compiler.
FROM --platform=$BUILDPLATFORM golang:${GO}-bookworm AS build
ARG TARGETARCH
RUN case "$TARGETARCH" in \
        amd64) gcc=x86-64-linux-gnu ;; \
        arm64) gcc=aarch64-linux-gnu ;; \
        *) echo "no image for $TARGETARCH" && exit 1 ;; \
    esac \
    && if [ "$TARGETARCH" != "$(dpkg --print-architecture)" ]; then \
        apt-get update \
        && apt-get install --no-install-recommends -y "gcc-$gcc" "libc6-dev-$TARGETARCH-cross" \
        && rm -rf /var/lib/apt/lists/*; \
    fi
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION
ARG REVISION
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/cache \
    case "$TARGETARCH" in amd64) cc=x86_64-linux-gnu-gcc ;; *) cc=aarch64-linux-gnu-gcc ;; esac \
    && GOCACHE=/cache CGO_ENABLED=1 CGO_CFLAGS="-O2 -g -Wno-deprecated-declarations" CC=$cc GOARCH=$TARGETARCH \
        go build -trimpath -buildvcs=false \
        -ldflags "-s -w -buildid= ${VERSION:+-X main.version=$VERSION} ${REVISION:+-X main.revision=$REVISION}" \
        -o /out/gpumeter ./exporter/cmd/gpumeter

# The C library and nothing else: the driver's own comes from NVIDIA's container runtime, which these variables
# ask for all devices.
FROM ${BASE} AS runtime
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="gpumeter" \
      org.opencontainers.image.description="Meters accelerators: what each GPU does, and whose work is on it" \
      org.opencontainers.image.source="https://github.com/gpumeter/gpumeter" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=utility
USER 65532:65532
EXPOSE 9450
ENTRYPOINT ["/usr/bin/gpumeter"]
CMD ["serve"]

FROM runtime AS prebuilt
ARG TARGETPLATFORM
COPY ${TARGETPLATFORM}/gpumeter /usr/bin/gpumeter

FROM runtime
COPY --from=build /out/gpumeter /usr/bin/gpumeter
