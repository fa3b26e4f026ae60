# Two images from one file:
#
#   docker build --target gateway -t sluice-gateway .
#   docker build --target origin -t sluice-origin .
#
# The sources run as they are. Works with BuildKit and with the builder before it.
ARG NODE_IMAGE=node:26-slim

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund

FROM ${NODE_IMAGE} AS runtime
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json LICENSE ./
COPY shared shared
# What Node makes of the sources when they run is kept in the image: a container starts faster, and its processes do without
# the compiler that takes the types out, some 25 MB each. It is for this user; as another one all is as it was without.
ENV NODE_COMPILE_CACHE=/app/compiled
RUN mkdir compiled && chown node:node compiled
LABEL org.opencontainers.image.licenses="MIT"

FROM runtime AS origin
LABEL org.opencontainers.image.title="Sluice origin" \
      org.opencontainers.image.description="A small HTTP service with API keys, to try the gateway on."
COPY origin origin
# A volume mounted here for the first time takes over this directory's owner.
RUN mkdir /data && chown node:node /data
VOLUME /data
ENV ORIGIN_HOST=0.0.0.0 ORIGIN_DB=/data/origin.db
USER node
RUN export ORIGIN_DB=/tmp/origin.db; node origin/main.ts > /dev/null & \
    until node origin/healthcheck.ts; do kill -0 $! || exit 1; sleep 0.1; done; \
    kill $! && wait $! && rm /tmp/origin.db*
EXPOSE 3000
HEALTHCHECK --interval=5s --timeout=15s --start-period=20s CMD ["node", "origin/healthcheck.ts"]
CMD ["node", "origin/main.ts"]

FROM runtime AS gateway
LABEL org.opencontainers.image.title="Sluice gateway" \
      org.opencontainers.image.description="A standalone rate-limiting reverse proxy."
COPY presets presets
COPY proxy proxy
# `docker exec … sluice status`, and where sluice.yaml is mounted
RUN mkdir /etc/sluice && chmod +x proxy/cli/main.ts && ln -s /app/proxy/cli/main.ts /usr/local/bin/sluice
USER node
RUN node --v8-pool-size=1 proxy/main.ts & \
    until node proxy/healthcheck.ts; do kill -0 $! || exit 1; sleep 0.1; done; \
    kill $! && wait $!
# The admin listener stays on the container's loopback unless ADMIN_HOST says otherwise.
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=15s --start-period=20s CMD ["node", "proxy/healthcheck.ts"]
# What these options are for: docs/decisions/connection-churn.md, docs/decisions/large-bodies.md
CMD ["node", "--v8-pool-size=1", "proxy/main.ts"]
