import { baseUrl, listenHost } from '../../shared/settings/addresses.ts'
import {
  duration,
  filePath,
  flag,
  flagInAnyCase,
  fraction,
  logLevel,
  oneOf,
  port,
  size,
  wholeNumber,
} from '../../shared/settings/kinds.ts'
import { setting } from '../../shared/settings/table.ts'
import { clientAddressHeader } from './clients/client-address-header.ts'
import { defaultAdminAddress } from './written/admin-address.ts'
import { timezone } from './rules/timezone.ts'
import { samplerNames } from '../telemetry/tracing/samplers.ts'
import {
  accessLog,
  adminToken,
  deviceSecrets,
  disabledByOne,
  limitHeaderFormats,
  namespace,
  redisUrl,
  trustedProxies,
  upgradeProtocols,
  upstreamHost,
  upstreamUrl,
  webhookSecret,
  workers,
} from './setting-kinds.ts'

const upstream = { shortName: 'upstream' }
const environment = { environmentOnly: true }

/**
 * Every setting of the gateway except the limits: kind, default, meaning. The environment variable, the field of sluice.yaml, the type, the
 * validation, the JSON Schema and the reference in docs/configuration.md are generated from its line.
 */
export const gatewayTable = {
  host: setting(listenHost, undefined, 'Address to listen on for clients; all interfaces if unset'),
  port: setting(port, 8080, 'Port to listen on for clients; 0 picks a free one'),
  upstreamUrl: setting(
    upstreamUrl,
    'http://127.0.0.1:3000',
    'URL of the backend; its path is put before the path of each request',
    upstream,
  ),
  redisUrl: setting(
    redisUrl,
    undefined,
    'URL of the Redis that keeps the counters for all replicas; if unset, this process keeps them',
  ),
  namespace: setting(
    namespace,
    undefined,
    'Part of every Redis key, so that gateways with different limits can share one Redis',
  ),
  configFile: setting(
    filePath,
    undefined,
    'File with settings and limits; default: `sluice.yaml` in the working directory, else in `/etc/sluice`',
    environment,
  ),
  rateLimitingDisabled: setting(
    disabledByOne,
    '0',
    '`1` turns rate limiting off; no other value does',
    environment,
  ),
  trustedProxies: setting(
    trustedProxies,
    [],
    'Proxies that are trusted to send the address of their client in `CLIENT_ADDRESS_HEADER`',
  ),
  clientAddressHeader: setting(
    clientAddressHeader,
    'X-Forwarded-For',
    'Header in which trusted proxies send the address of the client',
  ),
  timezone: setting(
    timezone,
    'UTC',
    'Time zone of calendar windows (`window: month`), for rules that set no `timezone`',
  ),
  rateLimitHeaders: setting(
    limitHeaderFormats,
    ['ietf'],
    'Formats of the response headers that tell clients their limits',
  ),
  proxyProtocol: setting(
    flag,
    false,
    'Require a PROXY protocol header on each connection from a trusted proxy',
  ),
  ipv6Prefix: setting(
    wholeNumber(32, 128),
    64,
    'Leading bits of an IPv6 address that identify a client: addresses that share them count as one',
  ),
  decisionsPort: setting(
    port,
    undefined,
    'Port, without TLS, for auth requests of other proxies (nginx auth_request, Envoy ext_authz, forward auth of Traefik and Caddy); none if unset',
  ),
  adminHost: setting(
    listenHost,
    defaultAdminAddress.host,
    'Address to listen on for health checks, metrics and the admin API',
  ),
  adminPort: setting(
    port,
    defaultAdminAddress.port,
    'Port to listen on for health checks, metrics and the admin API; 0 picks a free one',
  ),
  adminToken: setting(
    adminToken,
    undefined,
    'Bearer token for metrics and the admin API; required if `ADMIN_HOST` is not a loopback address',
    environment,
  ),
  workers: setting(workers, 1, 'Worker processes that share the port; `auto` starts one per CPU core'),
  tlsCertFile: setting(filePath, undefined, 'PEM certificate, or chain, for HTTPS'),
  tlsKeyFile: setting(filePath, undefined, 'PEM private key of the certificate, without a passphrase'),
  webhookSecret: setting(
    webhookSecret,
    undefined,
    'Secret that signs webhook requests; required with `webhooks`',
    environment,
  ),
  deviceSecret: setting(
    deviceSecrets,
    undefined,
    'Secret that signs the cookies of known devices; two secrets, separated by a comma, during a rotation; required with `device`',
    environment,
  ),
  logLevel: setting(logLevel, 'info', 'Minimum level of the log lines that are written'),
  accessLog: setting(
    accessLog,
    false,
    'Write a log line for every request, or with `refused` for refused requests only, at most 100 a second per worker process',
  ),
  logAddresses: setting(flag, true, 'Include client addresses in log lines'),
  otelExporterOtlpEndpoint: setting(
    baseUrl,
    undefined,
    'Base URL of an OpenTelemetry collector to export spans of requests to, by OTLP over HTTP; no tracing if unset',
    environment,
  ),
  otelExporterOtlpTracesEndpoint: setting(
    baseUrl,
    undefined,
    'URL to export spans to instead, without `/v1/traces` after it',
    environment,
  ),
  otelTracesExporter: setting(
    oneOf(['otlp', 'none']),
    'otlp',
    'How spans are exported; with `none` tracing is off',
    environment,
  ),
  otelSdkDisabled: setting(flagInAnyCase, false, 'Turn tracing off, whatever else is set', environment),
  otelTracesSampler: setting(
    oneOf(samplerNames),
    'parentbased_always_on',
    'Which requests are traced: `parentbased_…` follows the `traceparent` of the client, if there is one',
    environment,
  ),
  otelTracesSamplerArg: setting(
    fraction,
    1,
    'Fraction of requests to trace, with `traceidratio` and `parentbased_traceidratio`',
    environment,
  ),
  storeTimeoutMs: setting(
    duration('1ms', '1m'),
    '100ms',
    'Time to wait for Redis before a rule applies its `onStoreError`',
  ),
  storeMaxKeys: setting(
    wholeNumber(1, 16_000_000),
    1_000_000,
    'Maximum number of counters in the memory of each process',
  ),
  maxConnections: setting(wholeNumber(1, 1_000_000), 10_000, 'Maximum client connections per worker process'),
  maxConnectionsPerClient: setting(
    wholeNumber(0, 1_000_000),
    5_000,
    'Maximum connections of one client per worker process; 0 for no limit',
  ),
  maxHeaderBytes: setting(
    size('1k', '1m'),
    '16k',
    'Maximum size of a request head, line ends included; path and query may take half of it, and it may have 100 headers. Trailers have the same limits, counted separately',
  ),
  keepUnusualHeaders: setting(
    flag,
    false,
    'Forward headers whose names contain characters other than letters, digits and `-`',
  ),
  maxBodyBytes: setting(
    size(),
    0,
    'Maximum size of a request body; 0 for no limit. Long bodies are streamed (see `REQUEST_BUFFERING`)',
  ),
  headersTimeoutMs: setting(
    duration('100ms', '1h'),
    '10s',
    'Time to receive the headers of a request, and to complete a TLS handshake',
  ),
  requestBuffering: setting(
    size('0k', '16m'),
    '64k',
    'Buffer request bodies up to this size before taking a connection to the backend; 0 for no buffering',
  ),
  bodyTimeoutMs: setting(
    duration('100ms', '1d'),
    '30s',
    'Time within which a request body must make progress (see `MIN_BODY_RATE`)',
  ),
  minBodyRate: setting(size('0k', '1m'), 100, 'Minimum rate of a request body, in bytes per second'),
  sendTimeoutMs: setting(
    duration('100ms', '1d'),
    '60s',
    'Time within which a client must read some of its response',
  ),
  idleTimeoutMs: setting(
    duration('100ms', '1d'),
    '65s',
    'Time to keep an idle client connection open (keep-alive)',
  ),
  tunnelIdleTimeoutMs: setting(
    duration('100ms', '7d'),
    '300s',
    'Time without traffic after which a WebSocket or other upgraded connection is closed',
  ),
  upgradeProtocols: setting(
    upgradeProtocols,
    [],
    'Protocols that requests may switch to besides WebSocket, such as `tcp` and `h2c` for Docker. Traffic after the switch is not limited',
  ),
  upstreamHost: setting(
    upstreamHost,
    'keep',
    '`Host` header sent to `UPSTREAM_URL`: `keep` for that of the request, `upstream` for that of the URL, or a name',
  ),
  via: setting(
    flag,
    true,
    'Add `Via` to requests. By default, nginx does not compress responses to requests with `Via`',
  ),
  upstreamConnectTimeoutMs: setting(
    duration('1ms', '10m'),
    '5s',
    'Time to connect to the backend, and to wait for a connection when all are in use',
  ),
  upstreamTimeoutMs: setting(
    duration('1ms', '1d'),
    '60s',
    'Time to wait for the first byte of a response from the backend',
  ),
  upstreamIdleTimeoutMs: setting(
    duration('1ms', '7d'),
    '300s',
    'Maximum time between two reads of a response from the backend',
  ),
  upstreamConnections: setting(
    wholeNumber(1, 65_535),
    256,
    'Maximum connections to the backend per worker process, without those of `UPSTREAM_STREAMS`',
  ),
  upstreamStreams: setting(
    wholeNumber(0, 1_000_000),
    10_000,
    'Maximum additional connections to the backend per worker process, for long responses: event streams, downloads, slow clients',
  ),
  upstreamQueue: setting(
    wholeNumber(0, 1_000_000),
    1024,
    'Maximum requests per worker process that wait for a connection to the backend; the same number may wait to upload',
  ),
  upstreamCaFile: setting(filePath, undefined, 'PEM file of CA certificates to verify an HTTPS backend with'),
  shutdownDelayMs: setting(
    duration('0s', '10m'),
    '0s',
    'Time after SIGTERM during which connections are still accepted, so that load balancers can notice',
  ),
  shutdownGraceMs: setting(
    duration('0s', '1h'),
    '10s',
    'Time for requests in flight to finish after SIGTERM',
  ),
}
