import { listenHost } from '../../shared/settings/addresses.ts'
import { duration, filePath, flag, logLevel, port, size, wholeNumber } from '../../shared/settings/kinds.ts'
import { setting } from '../../shared/settings/table.ts'
import {
  addressRanges,
  adminToken,
  cipherNames,
  disabledByOne,
  password,
  redisUrl,
  tlsVersion,
  upstreamUrl,
  userName,
  workers,
} from './setting-kinds.ts'

const upstream = { shortName: 'upstream' }
const environment = { environmentOnly: true }

/**
 * Every setting of the gateway but the limits: kind, default, meaning. The variable, the field of sluice.yaml, the type,
 * the checks, the JSON Schema and the reference in docs/configuration.md all come from a line here.
 */
export const gatewayTable = {
  host: setting(listenHost, undefined, 'Address that clients connect to; all interfaces where unset'),
  port: setting(port, 8080, 'Port that clients connect to; 0 takes any free one'),
  upstreamUrl: setting(upstreamUrl, 'http://127.0.0.1:3000', 'The backend; its path is a prefix', upstream),
  redisUrl: setting(redisUrl, undefined, 'Where replicas share counters; in this process where unset'),
  redisCaFile: setting(filePath, undefined, 'PEM authorities to trust Redis by, over TLS'),
  redisCertFile: setting(filePath, undefined, 'PEM certificate, or chain, to show to Redis'),
  redisKeyFile: setting(filePath, undefined, 'PEM private key of that certificate, without a passphrase'),
  redisSentinelUsername: setting(userName, undefined, 'User at the sentinels, where they ask for one'),
  redisSentinelPassword: setting(password, undefined, 'Password at the sentinels, if any', environment),
  configFile: setting(filePath, undefined, 'File of settings and limits; else `sluice.yaml`', environment),
  rateLimitingDisabled: setting(disabledByOne, '0', '`1` turns limiting off, nothing else does', environment),
  trustedProxies: setting(addressRanges, [], 'Proxies whose `X-Forwarded-For` is believed'),
  proxyProtocol: setting(flag, false, 'Trusted proxies begin each connection with a PROXY header'),
  adminHost: setting(listenHost, '127.0.0.1', "Address of health, metrics and the operator's interface"),
  adminPort: setting(port, 9090, "Port of health, metrics and the operator's interface; 0 takes any"),
  adminToken: setting(adminToken, undefined, 'Bearer token; required beyond loopback', environment),
  workers: setting(workers, 1, 'Processes that share the port; `auto` is one a core'),
  tlsCertFile: setting(filePath, undefined, 'PEM certificate, or chain, to serve HTTPS with'),
  tlsKeyFile: setting(filePath, undefined, 'PEM private key of the certificate, without a passphrase'),
  tlsMinVersion: setting(tlsVersion, 'TLSv1.2', 'The least version of TLS that clients may use'),
  tlsCiphers: setting(
    cipherNames,
    undefined,
    'Cipher suites, as OpenSSL names them; modern ones where unset',
  ),
  logLevel: setting(logLevel, 'info', 'The least severe log lines that are written'),
  accessLog: setting(flag, false, 'A log line for every request'),
  logAddresses: setting(flag, true, 'Client addresses in log lines'),
  storeTimeoutMs: setting(duration('1ms', '1m'), '100ms', 'Time for Redis to answer; later is unavailable'),
  storeMaxKeys: setting(wholeNumber(1, 16_000_000), 1_000_000, 'Counters that each process holds at most'),
  maxConnections: setting(
    wholeNumber(1, 1_000_000),
    10_000,
    'Connections of clients to each worker process at most',
  ),
  maxConnectionsPerClient: setting(
    wholeNumber(0, 1_000_000),
    5_000,
    'Connections of one client to each worker process, 0 for any',
  ),
  requestsPerConnection: setting(wholeNumber(0, 1_000_000_000), 0, 'Requests a connection, 0 for any'),
  maxStreams: setting(wholeNumber(1, 10_000), 100, 'Requests at a time on a connection of HTTP/2'),
  maxHeaderBytes: setting(size('1k', '1m'), '16k', 'Largest head of a request: all its fields together'),
  maxHeaderCount: setting(wholeNumber(1, 10_000), 100, 'Fields that a request may have'),
  keepUnusualHeaders: setting(
    flag,
    false,
    'Passes on headers whose name has other characters than letters, digits and `-`',
  ),
  maxTargetBytes: setting(size('0k', '1m'), '8k', 'Longest target of a request: path and query'),
  maxBodyBytes: setting(size(), 0, 'Largest request body, 0 for any; bodies are streamed, not kept'),
  headersTimeoutMs: setting(duration('100ms', '1h'), '10s', 'Time for the head of a request, and for TLS'),
  bodyTimeoutMs: setting(duration('100ms', '1d'), '30s', 'Time in which a request body must make progress'),
  minBodyRate: setting(size('0k', '1m'), 100, 'Bytes a second that count as progress of a body'),
  responseBufferBytes: setting(
    size('0k', '64m'),
    '256k',
    'Bytes of a response that are read ahead of a client slower than the backend',
  ),
  maxUnreadBytes: setting(
    size('1m'),
    '192m',
    'Bytes of responses that clients of each worker process leave unread at most, all together',
  ),
  sendTimeoutMs: setting(duration('100ms', '1d'), '60s', 'Time in which a client must take what it is sent'),
  idleTimeoutMs: setting(duration('100ms', '1d'), '65s', 'Time that a connection without requests is kept'),
  tunnelIdleTimeoutMs: setting(duration('100ms', '7d'), '300s', 'Time that a tunnel without traffic is kept'),
  upstreamConnectTimeoutMs: setting(duration('1ms', '10m'), '5s', 'Time to connect to the backend'),
  upstreamTimeoutMs: setting(duration('1ms', '1d'), '60s', "Time to the backend's first byte of an answer"),
  upstreamIdleTimeoutMs: setting(duration('1ms', '7d'), '300s', 'Time between two bytes of an answer'),
  upstreamConnections: setting(
    wholeNumber(1, 65_535),
    256,
    'Connections of each worker process to the backend at most, but for those of UPSTREAM_STREAMS',
  ),
  upstreamStreams: setting(
    wholeNumber(0, 1_000_000),
    10_000,
    'Connections besides, for responses that last: event streams, downloads, slow clients',
  ),
  upstreamQueue: setting(
    wholeNumber(0, 1_000_000),
    1024,
    'Requests that wait for a connection at most, and as many again for their turn to upload',
  ),
  upstreamQueueTimeoutMs: setting(
    duration('1ms', '10m'),
    '10s',
    'Time that a request waits for a connection',
  ),
  upstreamMaxAgeMs: setting(
    duration('1s', '1d'),
    '30s',
    'Time that a connection to the backend is used, so that a changed address is followed',
  ),
  upstreamMaxRequests: setting(
    wholeNumber(0, 1_000_000_000),
    10_000,
    'Requests a connection to the backend, 0 for any',
  ),
  upstreamBareLf: setting(flag, false, 'Lines of the head of an answer may end with LF alone'),
  upstreamCaFile: setting(filePath, undefined, 'PEM authorities to trust an HTTPS backend by'),
  shutdownDelayMs: setting(
    duration('0s', '10m'),
    '0s',
    'Time after SIGTERM in which connections are still taken, for load balancers to notice',
  ),
  shutdownGraceMs: setting(duration('0s', '1h'), '10s', 'Time for requests in flight after SIGTERM'),
}
