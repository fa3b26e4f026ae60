import { describe, expect, test } from 'vitest'
import { boundsFor } from '../../../proxy/config/bounds.ts'
import { loadGatewaySettings } from '../../../proxy/config/settings.ts'
import { directoryWith, loadWithFile, problemsOf } from '../../support/gateway/settings.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'

const emptyDirectory = makeTemporaryDirectory()

function load(env: Record<string, string>) {
  return loadGatewaySettings(env, emptyDirectory)
}

describe('settings from the environment', () => {
  test('without any, every setting has its default', () => {
    const { settings, warnings } = load({})
    expect({
      ...settings,
      upstreamUrl: settings.upstreamUrl.href,
      rules: settings.rules.length,
    }).toStrictEqual({
      host: undefined,
      port: 8080,
      upstreamUrl: 'http://127.0.0.1:3000/',
      redisUrl: undefined,
      namespace: undefined,
      configFile: undefined,
      secretFiles: new Map(),
      namesInFile: expect.any(Map) as unknown,
      redisFolder: emptyDirectory,
      limitsFile: undefined,
      hasFields: false,
      routes: undefined,
      geoip: undefined,
      isUpstreamGiven: false,
      hasFallback: false,
      decisionsPort: undefined,
      allowList: [],
      denyList: [],
      cors: undefined,
      crowdsec: undefined,
      requestHeaders: [],
      webhooks: [],
      webhookSecret: undefined,
      deviceSecret: undefined,
      refusals: { everyRule: undefined, ofRules: new Map() },
      rateLimitingDisabled: false,
      trustedProxies: [],
      clientAddressHeader: 'x-forwarded-for',
      rateLimitHeaders: ['ietf'],
      proxyProtocol: false,
      adminHost: '127.0.0.1',
      adminPort: 9090,
      adminToken: undefined,
      workers: 1,
      tlsCertFile: undefined,
      tlsKeyFile: undefined,
      logLevel: 'info',
      accessLog: false,
      logAddresses: true,
      otelExporterOtlpEndpoint: undefined,
      otelExporterOtlpTracesEndpoint: undefined,
      otelTracesExporter: 'otlp',
      otelSdkDisabled: false,
      otelTracesSampler: 'parentbased_always_on',
      otelTracesSamplerArg: 1,
      storeTimeoutMs: 100,
      storeMaxKeys: 1_000_000,
      maxConnections: 10_000,
      maxConnectionsPerClient: 5_000,
      maxHeaderBytes: 16_384,
      maxBodyBytes: 0,
      requestBuffering: 64 * 1024,
      keepUnusualHeaders: false,
      upstreamStreams: 10_000,
      headersTimeoutMs: 10_000,
      bodyTimeoutMs: 30_000,
      minBodyRate: 100,
      sendTimeoutMs: 60_000,
      idleTimeoutMs: 65_000,
      ipv6Prefix: 64,
      timezone: 'UTC',
      jwt: undefined,
      tunnelIdleTimeoutMs: 300_000,
      upgradeProtocols: [],
      upstreamHost: 'keep',
      via: true,
      upstreamConnectTimeoutMs: 5_000,
      upstreamTimeoutMs: 60_000,
      upstreamIdleTimeoutMs: 300_000,
      upstreamConnections: 256,
      upstreamQueue: 1024,
      upstreamCaFile: undefined,
      shutdownDelayMs: 0,
      shutdownGraceMs: 10_000,
      ...boundsFor({ maxHeaderBytes: 16_384, workers: 1 }),
      rules: 6,
    })
    expect(warnings).toEqual([])
  })

  test('each variable sets its setting', () => {
    const { settings } = load({
      HOST: '::',
      PORT: '0',
      UPSTREAM_URL: 'https://app.example:8443',
      REDIS_URL: 'rediss://user:p%40ss@redis.example:6380/2',
      IPV6_PREFIX: '48',
      TIMEZONE: 'America/New_York',
      TRUSTED_PROXIES: '10.0.0.0/8, ::1,,192.168.1.7',
      CLIENT_ADDRESS_HEADER: 'CF-Connecting-IP',
      RATE_LIMIT_HEADERS: 'x-ratelimit, ietf',
      PROXY_PROTOCOL: '1',
      ADMIN_HOST: '0.0.0.0',
      ADMIN_PORT: '9999',
      ADMIN_TOKEN: '0123456789abcdef',
      WORKERS: '4',
      LOG_LEVEL: 'silent',
      WEBHOOK_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      DEVICE_SECRET: 'new-0123456789-0123456789-0123456789, old-0123456789-0123456789-0123456789',
      ACCESS_LOG: 'refused',
      LOG_ADDRESSES: '0',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://traces:4318/v1/traces',
      OTEL_TRACES_EXPORTER: 'none',
      OTEL_SDK_DISABLED: 'True',
      OTEL_TRACES_SAMPLER: 'traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.25',
      STORE_TIMEOUT: '50ms',
      STORE_MAX_KEYS: '16000000',
      NAMESPACE: 'shop-2',
      MAX_CONNECTIONS: '50',
      MAX_CONNECTIONS_PER_CLIENT: '0',
      MAX_HEADER_SIZE: '32k',
      MAX_BODY_SIZE: '10m',
      REQUEST_BUFFERING: '1m',
      KEEP_UNUSUAL_HEADERS: 'true',
      UPSTREAM_STREAMS: '20000',
      HEADERS_TIMEOUT: '5s',
      BODY_TIMEOUT: '1m',
      MIN_BODY_RATE: '1k',
      SEND_TIMEOUT: '2m',
      IDLE_TIMEOUT: '5s',
      TUNNEL_IDLE_TIMEOUT: '1h',
      UPGRADE_PROTOCOLS: 'tcp, SPDY/3.1',
      UPSTREAM_HOST: 'app.internal:8080',
      VIA: '0',
      UPSTREAM_CONNECT_TIMEOUT: '2s',
      UPSTREAM_TIMEOUT: '1m',
      UPSTREAM_IDLE_TIMEOUT: '1h',
      UPSTREAM_CONNECTIONS: '1',
      UPSTREAM_QUEUE: '0',
      SHUTDOWN_DELAY: '5s',
      SHUTDOWN_GRACE: '0s',
    })
    expect({ ...settings, upstreamUrl: settings.upstreamUrl.href, rules: undefined }).toEqual({
      host: '::',
      port: 0,
      upstreamUrl: 'https://app.example:8443/',
      redisUrl: 'rediss://user:p%40ss@redis.example:6380/2',
      namespace: 'shop-2',
      configFile: undefined,
      secretFiles: new Map(),
      namesInFile: expect.any(Map) as unknown,
      redisFolder: emptyDirectory,
      limitsFile: undefined,
      hasFields: false,
      isUpstreamGiven: true,
      hasFallback: true,
      allowList: [],
      denyList: [],
      cors: undefined,
      requestHeaders: [],
      webhooks: [],
      webhookSecret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      deviceSecret: ['new-0123456789-0123456789-0123456789', 'old-0123456789-0123456789-0123456789'],
      refusals: { everyRule: undefined, ofRules: new Map() },
      rateLimitingDisabled: false,
      trustedProxies: ['10.0.0.0/8', '::1', '192.168.1.7'],
      clientAddressHeader: 'cf-connecting-ip',
      rateLimitHeaders: ['x-ratelimit', 'ietf'],
      proxyProtocol: true,
      adminHost: '0.0.0.0',
      adminPort: 9999,
      adminToken: '0123456789abcdef',
      workers: 4,
      tlsCertFile: undefined,
      tlsKeyFile: undefined,
      logLevel: 'silent',
      accessLog: 'refused',
      logAddresses: false,
      otelExporterOtlpEndpoint: 'http://collector:4318',
      otelExporterOtlpTracesEndpoint: 'http://traces:4318/v1/traces',
      otelTracesExporter: 'none',
      otelSdkDisabled: true,
      otelTracesSampler: 'traceidratio',
      otelTracesSamplerArg: 0.25,
      storeTimeoutMs: 50,
      storeMaxKeys: 16_000_000,
      maxConnections: 50,
      maxConnectionsPerClient: 0,
      maxHeaderBytes: 32_768,
      maxBodyBytes: 10 * 1024 * 1024,
      requestBuffering: 1024 * 1024,
      keepUnusualHeaders: true,
      upstreamStreams: 20_000,
      headersTimeoutMs: 5_000,
      bodyTimeoutMs: 60_000,
      minBodyRate: 1_024,
      sendTimeoutMs: 120_000,
      idleTimeoutMs: 5_000,
      ipv6Prefix: 48,
      timezone: 'America/New_York',
      jwt: undefined,
      tunnelIdleTimeoutMs: 3_600_000,
      upgradeProtocols: ['tcp', 'spdy/3.1'],
      upstreamHost: 'app.internal:8080',
      via: false,
      upstreamConnectTimeoutMs: 2_000,
      upstreamTimeoutMs: 60_000,
      upstreamIdleTimeoutMs: 3_600_000,
      upstreamConnections: 1,
      upstreamQueue: 0,
      upstreamCaFile: undefined,
      shutdownDelayMs: 5_000,
      shutdownGraceMs: 0,
      ...boundsFor({ maxHeaderBytes: 32_768, workers: 4 }),
      rules: undefined,
    })
  })

  test('an empty variable is an unset one', () => {
    const { settings, warnings } = load({
      PORT: '',
      REDIS_URL: '',
      CONFIG_FILE: '',
      RATE_LIMITING_DISABLED: '',
    })
    expect(settings).toMatchObject({ port: 8080, redisUrl: undefined, rateLimitingDisabled: false })
    expect(warnings).toEqual([])
  })

  test('a variable wins over the file', () => {
    const file = 'port: 8081\nupstream: http://file:1\nhost: 127.0.0.1\n'
    const { settings } = loadWithFile(file, { PORT: '8082', UPSTREAM_URL: 'http://variable:2', HOST: '' })
    expect(settings).toMatchObject({ port: 8082, host: '127.0.0.1' })
    expect(settings.upstreamUrl.href).toBe('http://variable:2/')
  })

  test('a mistake in the file is reported even if a variable overrides it', () => {
    expect(problemsOf({ PORT: '8082' }, directoryWith('port: x\n'))).toEqual([
      'sluice.yaml:1: port: got "x", needs a whole number from 0 to 65535',
    ])
  })

  test.each([['none'], [',']])('RATE_LIMIT_HEADERS=%s turns the headers off', (text) => {
    expect(load({ RATE_LIMIT_HEADERS: text }).settings.rateLimitHeaders).toEqual([])
  })

  test('workers: auto starts one worker for each core', () => {
    expect(load({ WORKERS: 'auto' }).settings.workers).toBeGreaterThanOrEqual(1)
    expect(loadWithFile('workers: auto').settings.workers).toBe(load({ WORKERS: 'auto' }).settings.workers)
  })

  test.each([
    ['1', true, ['RATE_LIMITING_DISABLED: 1, rate limiting is off until a restart without it']],
    ['0', false, []],
    ['', false, []],
    ['true', false, ['RATE_LIMITING_DISABLED: got "true", only 1 turns rate limiting off: it stays on']],
    [' 1', false, ['RATE_LIMITING_DISABLED: got " 1", only 1 turns rate limiting off: it stays on']],
  ])('RATE_LIMITING_DISABLED=%j', (text, disabled, warnings) => {
    const loaded = load({ RATE_LIMITING_DISABLED: text })
    expect(loaded.settings.rateLimitingDisabled).toBe(disabled)
    expect(loaded.warnings).toEqual(warnings)
  })

  test.each([
    ['http://app:3000', 'http://app:3000/'],
    ['http://app:3000/', 'http://app:3000/'],
    ['http://app:3000/prefix', 'http://app:3000/prefix'],
    ['http://app:3000/prefix/deep/', 'http://app:3000/prefix/deep'],
    ['https://my_app', 'https://my_app/'],
    ['http://[::1]:3000', 'http://[::1]:3000/'],
  ])('UPSTREAM_URL=%s', (text, href) => {
    expect(load({ UPSTREAM_URL: text }).settings.upstreamUrl.href).toBe(href)
  })

  test.each(['0.0.0.0/0', '::/0'])('trusting %s is warned of', (range) => {
    const warning = `TRUSTED_PROXIES: ${range} trusts everybody: every client can choose its address with x-forwarded-for`
    expect(load({ TRUSTED_PROXIES: `10.0.0.1,${range}` }).warnings).toEqual([warning])
  })
})

const upstreamForm =
  'http://HOST[:PORT][/PREFIX], or the same with https:// or h2c://, without user, query and fragment'
const redisForms =
  'redis://HOST[:PORT][/DB], redis+sentinel://HOST[:PORT],HOST[:PORT]/MASTER or ' +
  'redis+cluster://HOST[:PORT],HOST[:PORT], USER:PASSWORD@ before the first host, rediss for TLS, options such as ?ca=FILE at the end'
const unshown = 'a value that is not shown, as it may hold a password'
const addressForm =
  'an IP address, a CIDR such as 10.0.0.0/8, one of loopback, private, cloudflare, or the name of a host'

describe('trusted proxies', () => {
  test('trusted proxies may be networks with a name and hosts', () => {
    const names = 'cloudflare,private,loopback,nginx,lb.example.internal'
    const { settings, warnings } = load({ TRUSTED_PROXIES: names })
    expect(settings.trustedProxies).toEqual(names.split(','))
    expect(warnings).toEqual([])
  })

  test('trusted proxies that are misspelled networks are warned of', () => {
    expect(load({ TRUSTED_PROXIES: 'cloudfare' }).warnings).toEqual([
      'TRUSTED_PROXIES: cloudfare is looked up as the name of a host, did you mean cloudflare?',
    ])
  })

  test('trusted proxies are 16 hosts at most, however many networks there are', () => {
    const hosts = Array.from({ length: 17 }, (_, i) => `proxy-${i}`)
    expect(problemsOf({ TRUSTED_PROXIES: hosts.join(',') })).toHaveLength(1)
    const sixteen = [...hosts.slice(1), 'PROXY-1', ...hosts.map((_, i) => `10.0.0.${i}`)]
    expect(problemsOf({ TRUSTED_PROXIES: sixteen.join(',') })).toEqual([])
  })
})

describe('mistakes in the environment', () => {
  test.each([
    ['RATE_LIMIT_HEADERS', 'none,ietf', 'got "none", needs one of ietf, x-ratelimit'],
    [
      'UPGRADE_PROTOCOLS',
      'tcp,a b',
      'got "a b", needs the name of a protocol as in the Upgrade header, such as tcp or SPDY/3.1; websocket needs no entry',
    ],
    ['PORT', '80a', 'got "80a", needs a whole number from 0 to 65535'],
    ['PORT', '-1', 'got -1, needs a whole number from 0 to 65535'],
    ['PORT', '08080', 'got "08080", needs a whole number from 0 to 65535'],
    ['PORT', ' 8080', 'got " 8080", needs a whole number from 0 to 65535'],
    ['PORT', '"8080"', 'got "\\"8080\\"", needs a whole number from 0 to 65535'],
    ['ADMIN_PORT', 'tcp://10.0.0.1:80', 'got "tcp://10.0.0.1:80", needs a whole number from 0 to 65535'],
    ['HOST', '*', 'got "*", needs an IP address or a host name, without a port and without brackets'],
    ['WORKERS', '0', 'got 0, needs auto or a whole number from 1 to 1024'],
    ['LOG_LEVEL', 'INFO', 'got "INFO", needs one of trace, debug, info, warn, error, fatal, silent'],
    [
      'OTEL_EXPORTER_OTLP_ENDPOINT',
      'collector:4317',
      'got "collector:4317", needs http://HOST[:PORT][/PREFIX] or https://HOST[:PORT][/PREFIX], without user, query and fragment',
    ],
    ['OTEL_TRACES_EXPORTER', 'zipkin', 'got "zipkin", needs one of otlp, none'],
    [
      'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
      'traces',
      'got "traces", needs http://HOST[:PORT][/PREFIX] or https://HOST[:PORT][/PREFIX], without user, query and fragment',
    ],
    [
      'OTEL_TRACES_SAMPLER',
      'xray',
      'got "xray", needs one of always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off, parentbased_traceidratio',
    ],
    [
      'UPSTREAM_HOST',
      'http://app',
      'got "http://app", needs keep, upstream, or a host with or without a port, such as app.example.com',
    ],
    ['VIA', 'none', 'got "none", needs true or false (in the environment also 1 or 0)'],
    ['OTEL_SDK_DISABLED', 'yes', 'got "yes", needs true or false (in the environment also 1 or 0)'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.5', 'got 1.5, needs a number from 0 to 1'],
    ['OTEL_TRACES_SAMPLER_ARG', 'half', 'got "half", needs a number from 0 to 1'],
    [
      'WEBHOOK_SECRET',
      'whsec_dG9vIHNob3J0',
      'got a value that is not shown, needs whsec_ and 24 to 64 random bytes in base64, as `echo whsec_$(openssl rand -base64 32)` makes one',
    ],
    ...[
      'x'.repeat(31),
      'x'.repeat(257),
      `${'x'.repeat(40)},${'x'.repeat(40)}`,
      ['a', 'b', 'c'].map((letter) => letter.repeat(40)).join(),
      `${'x'.repeat(40)} ${'y'.repeat(40)}`,
    ].map((text): [string, string, string] => [
      'DEVICE_SECRET',
      text,
      'got a value that is not shown, needs a secret of 32 to 256 visible ASCII characters without commas, as `openssl rand -base64 32` makes one, or two, the new one first',
    ]),
    ['ACCESS_LOG', 'on', 'got "on", needs true, false (in the environment also 1 or 0) or refused'],
    ['VIA', 'on', 'got "on", needs true or false (in the environment also 1 or 0)'],
    ['VIA', 'constructor', 'got "constructor", needs true or false (in the environment also 1 or 0)'],
    [
      'STORE_TIMEOUT',
      '100',
      'got "100", needs a duration from 1ms to 1m: a whole number and a unit (ms, s, m, h, d)',
    ],
    [
      'MAX_HEADER_SIZE',
      '17m',
      'got "17m", needs a size from 1k to 1m: a whole number of bytes, or one with the unit k, m or g',
    ],
    [
      'MAX_BODY_SIZE',
      '1.5g',
      'got "1.5g", needs a size: a whole number of bytes, or one with the unit k, m or g',
    ],
    ['TRUSTED_PROXIES', '10.0.0.0/8,10.0.0.0/08', `got "10.0.0.0/08", needs ${addressForm}`],
    ['TRUSTED_PROXIES', '10.0.0/8', `got "10.0.0/8", needs ${addressForm}`],
    ['TRUSTED_PROXIES', 'fe80::1%eth0', `got "fe80::1%eth0", needs ${addressForm}`],
    ['TRUSTED_PROXIES', '::/129', `got "::/129", needs ${addressForm}`],
    ['TRUSTED_PROXIES', '10.0.0.256', `got "10.0.0.256", needs ${addressForm}`],
    ['TRUSTED_PROXIES', 'nginx:8080', `got "nginx:8080", needs ${addressForm}`],
    ['UPSTREAM_URL', 'app:3000', `got "app:3000", needs ${upstreamForm}`],
    ['UPSTREAM_URL', 'http:app', `got "http:app", needs ${upstreamForm}`],
    ['UPSTREAM_URL', ' http://app', `got " http://app", needs ${upstreamForm}`],
    ['UPSTREAM_URL', 'http://app:99999', `got "http://app:99999", needs ${upstreamForm}`],
    ['UPSTREAM_URL', 'http://app:0', `got "http://app:0", needs ${upstreamForm}`],
    ['UPSTREAM_URL', 'http://app/a/../b', `got "http://app/a/../b", needs ${upstreamForm}`],
    ['UPSTREAM_URL', 'http://app\\b', `got "http://app\\\\b", needs ${upstreamForm}`],
    ['UPSTREAM_URL', 'http://app/#x', `got "http://app/#x", needs ${upstreamForm}`],
    ['UPSTREAM_URL', 'http://u:s3cret@app', `got "http://***@app", needs ${upstreamForm}`],
    ['UPSTREAM_URL', 'http://app?t=s3cret', `got "http://app?***", needs ${upstreamForm}`],
    ['REDIS_URL', 'localhost:6379', `got "localhost:6379", needs ${redisForms}`],
    ['REDIS_URL', 'redis://a,b', `got "redis://a,b", needs ${redisForms}`],
    ['REDIS_URL', 'redis+sentinel://a:1', `got "redis+sentinel://a:1", needs ${redisForms}`],
    ['REDIS_URL', 'http://:s3cret@localhost', `got "http://***@localhost", needs ${redisForms}`],
    ['REDIS_URL', 'redis://:s3cret', `got ${unshown}, needs ${redisForms}`],
    ['REDIS_URL', 'redis://:s3/cret@localhost', `got "redis://***@localhost", needs ${redisForms}`],
    ['REDIS_URL', 'redis:://:s3cret@h', `got ${unshown}, needs ${redisForms}`],
    ['REDIS_URL', 'redis://h/0?password=s3cret', `got ${unshown}, needs ${redisForms}`],
    [
      'ADMIN_TOKEN',
      's3cret',
      'got a value that is not shown, needs 16 or more visible ASCII characters, no spaces',
    ],
    [
      'ADMIN_TOKEN',
      's3cret s3cret s3cret',
      'got a value that is not shown, needs 16 or more visible ASCII characters, no spaces',
    ],
  ])('%s=%s', (variable, text, message) => {
    const problems = problemsOf({ [variable]: text }, emptyDirectory)
    expect(problems).toEqual([`${variable}: ${message}`])
  })

  test('all mistakes in the environment are reported at once, then those of the file in the order of its lines', () => {
    const cwd = directoryWith('typo: 1\nlimits: 5\nport: x\n')
    expect(problemsOf({ PORT: 'x', WORKERS: '0', ADMIN_TOKEN: 'short' }, cwd)).toEqual([
      'PORT: got "x", needs a whole number from 0 to 65535',
      'ADMIN_TOKEN: got a value that is not shown, needs 16 or more visible ASCII characters, no spaces',
      'WORKERS: got 0, needs auto or a whole number from 1 to 1024',
      'sluice.yaml:1: unknown field "typo"',
      'sluice.yaml:2: limits: got 5, needs a list of rules',
      'sluice.yaml:3: port: got "x", needs a whole number from 0 to 65535',
    ])
  })
})
