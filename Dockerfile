# One image for every process of the petstore. Without a command it runs all five on the embedded store:
#   docker run -p 127.0.0.1:8080:8080 -e HOST=0.0.0.0 -e ALLOW_UNAUTHENTICATED=beyond-loopback -e ALLOWED_HOSTS=localhost \
#     -v petstore:/data petstore
# docker-compose.yml runs each in a container of its own, on MongoDB.

# The Node of package.json, so npm need not install it: --omit=optional leaves it out below.
ARG NODE_IMAGE=node:26.10.0-trixie-slim

FROM ${NODE_IMAGE} AS packages
WORKDIR /petstore
COPY package.json package-lock.json .npmrc ./
COPY packages packages
# What generates code and builds the console are dependencies, for an installation runs them. Here the next stage does, and they stay behind.
RUN npm ci --omit=dev --omit=optional --ignore-scripts \
  && npm uninstall --omit=dev --omit=optional --ignore-scripts --no-save \
    @bufbuild/buf @bufbuild/protoc-gen-es @bufbuild/protoplugin \
    @preact/signals preact rolldown

FROM ${NODE_IMAGE} AS generated
WORKDIR /petstore
COPY package.json package-lock.json .npmrc ./
COPY packages packages
RUN npm ci --omit=dev --ignore-scripts
COPY buf.yaml buf.gen.yaml ./
COPY proto proto
COPY scripts scripts
COPY console console
RUN npm run generate

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title="petstore" \
  org.opencontainers.image.description="Pets, categories, orders and inventory as Connect services behind an HTTP gateway" \
  org.opencontainers.image.licenses="MIT"
# Where the embedded store keeps its files, and docker-compose.yml the secrets. A named volume mounted here takes over the owner.
RUN install --directory --owner=node --group=node /data /secrets/internal /secrets/admin \
  /secrets/pet /secrets/category /secrets/order /secrets/inventory
WORKDIR /petstore
COPY --from=packages /petstore/node_modules node_modules
COPY --from=generated /petstore/proto/gen proto/gen
COPY package.json ./
COPY backup backup
COPY --from=generated /petstore/console/dist console/dist
COPY doctor doctor
COPY gateway gateway
COPY launcher launcher
COPY packages packages
COPY --from=generated /petstore/packages/transcoder/gen packages/transcoder/gen
COPY --from=generated /petstore/packages/rpc/gen packages/rpc/gen
COPY processes processes
COPY scripts scripts
COPY services services
# A container has its own ports, so the gateway and each service listen on the same one.
ENV NODE_ENV=production DATA_DIR=/data PORT=8080
EXPOSE 8080
# The user node, as a number, by which a platform can tell that it is not root.
USER 1000:1000
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s CMD ["node", "scripts/healthy.ts"]
# No shell in between: Node is process 1, and SIGTERM reaches it.
ENTRYPOINT ["node", "--disable-sigusr1"]
CMD ["launcher/main.ts"]
