import { listenHost } from '../../shared/settings-addresses.ts'
import { duration, filePath, flag, logLevel, port, size, wholeNumber } from '../../shared/settings-kinds.ts'
import { setting } from '../../shared/settings-table.ts'
import { addressRanges, adminToken, disabledByOne, redisUrl, upstreamUrl, workers } from './setting-kinds.ts'

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
  configFile: setting(filePath, undefined, 'File of settings and limits; else `sluice.yaml`', environment),
  rateLimitingDisabled: setting(disabledByOne, '0', '`1` turns limiting off, nothing else does', environment),
  trustedProxies: setting(addressRanges, [], 'Proxies whose `X-Forwarded-For` is believed'),
  adminHost: setting(listenHost, '127.0.0.1', "Address of health, metrics and the operator's interface"),
  adminPort: setting(port, 9090, "Port of health, metrics and the operator's interface; 0 takes any"),
  adminToken: setting(adminToken, undefined, 'Bearer token; required beyond loopback', environment),
  workers: setting(workers, 1, 'Processes that share the port; `auto` is one a core'),
  tlsCertFile: setting(filePath, undefined, 'PEM certificate, or chain, to serve HTTPS with'),
  tlsKeyFile: setting(filePath, undefined, 'PEM private key of the certificate, without a passphrase'),
  logLevel: setting(logLevel, 'info', 'The least severe log lines that are written'),
  accessLog: setting(flag, false, 'A log line for every request'),
  logAddresses: setting(flag, true, 'Client addresses in log lines'),
  storeTimeoutMs: setting(duration('1ms', '1m'), '100ms', 'Time for Redis to answer; later is unavailable'),
  storeMaxKeys: setting(wholeNumber(1, 16_000_000), 1_000_000, 'Counters that this process holds at most'),
  maxBodyBytes: setting(size(), 0, 'Largest request body, 0 for any; bodies are streamed, not kept'),
  upstreamConnectTimeoutMs: setting(duration('1ms', '10m'), '5s', 'Time to connect to the backend'),
  upstreamTimeoutMs: setting(duration('1ms', '1d'), '60s', "Time to the backend's first byte of an answer"),
  upstreamIdleTimeoutMs: setting(duration('1ms', '7d'), '300s', 'Time between two bytes of an answer'),
  upstreamConnections: setting(wholeNumber(1, 65_535), 256, 'Connections to the backend at most'),
  shutdownGraceMs: setting(duration('0s', '1h'), '10s', 'Time for requests in flight after SIGTERM'),
}
