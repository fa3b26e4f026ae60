# Two images from one file:
#
#   docker build --target gateway -t sluice-gateway .
#   docker build --target origin -t sluice-origin .
#
# Works with BuildKit and with the builder before it.
ARG NODE_IMAGE=node:26-slim

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund

FROM dependencies AS bundle
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY shared shared
COPY proxy proxy
COPY scripts/bundle.ts scripts/
RUN node scripts/bundle.ts

FROM ${NODE_IMAGE} AS runtime
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json LICENSE ./
LABEL org.opencontainers.image.licenses="MIT"

FROM runtime AS origin
LABEL org.opencontainers.image.title="Sluice origin" \
      org.opencontainers.image.description="A small HTTP service with API keys, to try the gateway on."
COPY shared shared
COPY origin origin
# The sources run as they are. What Node makes of them then is kept in the image: a container starts faster, and its processes do
# without the compiler that takes the types out, some 25 MB each. It is for this user; as another one all is as it was without.
ENV NODE_COMPILE_CACHE=/app/compiled
RUN mkdir compiled && chown node:node compiled
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
COPY --from=bundle /app/dist dist
# `docker exec … sluice status`, and where sluice.yaml is mounted
RUN mkdir /etc/sluice && chmod +x dist/proxy/cli/bin.js && ln -s /app/dist/proxy/cli/bin.js /usr/local/bin/sluice
USER node
# The admin listener stays on the container's loopback unless ADMIN_HOST says otherwise.
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=15s --start-period=20s CMD ["node", "dist/proxy/healthcheck.js"]
# What these options are for: docs/decisions/connection-churn.md, docs/decisions/large-bodies.md
CMD ["node", "--v8-pool-size=1", "dist/proxy/main.js"]
