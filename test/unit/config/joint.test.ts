import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadGatewaySettings } from '../../../proxy/config/settings.ts'
import { directoryWith, loadWithFile, problemsOf } from '../../support/gateway/settings.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'

const pems = join(import.meta.dirname, 'mistakes/tls')

describe('settings that are wrong only together', () => {
  test.each(['127.0.0.1', '127.9.9.9', '::1', '0:0:0:0:0:0:0:1', 'localhost', 'LOCALHOST'])(
    'no token is needed on loopback: ADMIN_HOST=%s',
    (host) => expect(problemsOf({ ADMIN_HOST: host })).toEqual([]),
  )

  test.each(['0.0.0.0', '::', '10.0.0.1', '128.0.0.1', 'admin.internal', 'localhost.example'])(
    'a token is needed beyond loopback: ADMIN_HOST=%s',
    (host) => {
      expect(problemsOf({ ADMIN_HOST: host })).toEqual([
        `ADMIN_TOKEN: missing, required because the admin host is not a loopback address (it is "${host}")`,
      ])
      expect(problemsOf({ ADMIN_HOST: host, ADMIN_TOKEN: '0123456789abcdef' })).toEqual([])
    },
  )

  test('a token that is too short is reported once', () => {
    expect(problemsOf({ ADMIN_HOST: '0.0.0.0', ADMIN_TOKEN: 'short' })).toHaveLength(1)
  })

  test.each([
    { PORT: '9090' },
    { HOST: '0.0.0.0', PORT: '9090' },
    { HOST: '127.0.0.1', PORT: '9090' },
    { HOST: '10.0.0.1', PORT: '9090', ADMIN_HOST: '0.0.0.0', ADMIN_TOKEN: '0123456789abcdef' },
  ])('one port for clients and operators: %j', (env) => {
    expect(problemsOf(env)).toEqual([
      'ADMIN_PORT: got 9090, needs a different port than the one for clients (PORT)',
    ])
  })

  test.each([
    { HOST: '127.0.0.2', PORT: '9090' },
    { PORT: '0', ADMIN_PORT: '0' },
  ])('one port on two addresses, or any two free ports: %j', (env) => expect(problemsOf(env)).toEqual([]))

  test.each([
    { PORT: '3000' },
    { PORT: '3000', HOST: '127.0.0.1' },
    { PORT: '80', UPSTREAM_URL: 'http://localhost/x' },
    { PORT: '443', UPSTREAM_URL: 'https://[::1]' },
  ])('a gateway before itself: %j', (env) => {
    const [problem, ...others] = problemsOf(env)
    expect(problem).toMatch(
      /^UPSTREAM_URL: got "http.+", needs the backend's address, not the gateway's own$/,
    )
    expect(others).toEqual([])
  })

  test('a backend on another address may have the same port', () => {
    expect(problemsOf({ PORT: '3000', HOST: '10.0.0.1' })).toEqual([])
    expect(problemsOf({ PORT: '3000', UPSTREAM_URL: 'http://app:3000' })).toEqual([])
  })

  test('a mistake in the file is reported with its line', () => {
    expect(problemsOf({}, directoryWith('\nadminPort: 8080\n'))).toEqual([
      'sluice.yaml:2: adminPort: got 8080, needs a different port than the one for clients (PORT)',
    ])
  })
})

describe('the header in which proxies name their client', () => {
  test('the header in which proxies name their client needs proxies that send it', () => {
    expect(problemsOf({ CLIENT_ADDRESS_HEADER: 'X-Real-IP' })).toEqual([
      'TRUSTED_PROXIES: missing, required with CLIENT_ADDRESS_HEADER: the proxies that send it',
    ])
    expect(problemsOf({}, directoryWith('\nclientAddressHeader: True-Client-IP\n'))).toEqual([
      'TRUSTED_PROXIES: missing, required with sluice.yaml:2: clientAddressHeader: the proxies that send it',
    ])
    expect(problemsOf({ CLIENT_ADDRESS_HEADER: 'X-Forwarded-For' })).toEqual([])
    expect(problemsOf({ CLIENT_ADDRESS_HEADER: 'X-Real-IP', TRUSTED_PROXIES: '10.0.0.1' })).toEqual([])
  })

  test.each(['CF-Connecting-IP', 'x-real-ip', 'X-Envoy-External-Address', 'client-ip', 'X-FORWARDED-FOR'])(
    'may be %s',
    (name) => {
      const { settings } = loadGatewaySettings(
        { CLIENT_ADDRESS_HEADER: name, TRUSTED_PROXIES: '10.0.0.1' },
        makeTemporaryDirectory(),
      )
      expect(settings.clientAddressHeader).toBe(name.toLowerCase())
    },
  )

  test.each(
    [
      ['Forwarded', 'x_real_ip', 'X-Real-IP:', 'Host', 'Connection', 'TE', 'Via', 'Cookie', 'Authorization'],
      [
        'X-Forwarded-Proto',
        'X-Request-Id',
        'User-Agent',
        'Referer',
        'Content-Length',
        'Accept',
        'X-Original-URL',
      ],
    ].flat(),
  )('may not be %s', (name) => {
    expect(problemsOf({ CLIENT_ADDRESS_HEADER: name, TRUSTED_PROXIES: '10.0.0.1' })).toEqual([
      `CLIENT_ADDRESS_HEADER: got "${name}", needs the name of a header in which a proxy sends the address of its client, such as CF-Connecting-IP`,
    ])
  })
})

describe('TLS certificate and key', () => {
  test('a pair is taken, and its paths become absolute', () => {
    const { settings } = loadGatewaySettings({ TLS_CERT_FILE: 'cert.pem', TLS_KEY_FILE: 'key.pem' }, pems)
    expect(settings).toMatchObject({ tlsCertFile: join(pems, 'cert.pem'), tlsKeyFile: join(pems, 'key.pem') })
  })

  test('in the file they are taken as well', () => {
    const file = `tlsCertFile: ${pems}/cert.pem\ntlsKeyFile: ${pems}/key.pem\n`
    expect(loadWithFile(file).settings.tlsKeyFile).toBe(join(pems, 'key.pem'))
  })

  test.each([
    ['cert.pem', '', /^TLS_KEY_FILE: missing, needs a key file for the TLS certificate$/],
    ['', 'key.pem', /^TLS_CERT_FILE: missing, needs a certificate file for the TLS key$/],
    [
      'nope.pem',
      'key.pem',
      /^TLS_CERT_FILE: got "nope.pem", needs a readable PEM certificate \(ENOENT: no such file or directory\)$/,
    ],
    [
      'cert.pem',
      '.',
      /^TLS_KEY_FILE: got ".", needs a readable PEM key without passphrase \(it is not a regular file\)$/,
    ],
    [
      'key.pem',
      'key.pem',
      /^TLS_CERT_FILE: got "key.pem", needs a readable PEM certificate \(error:.+no start line\)$/,
    ],
    [
      'cert.pem',
      'cert.pem',
      /^TLS_KEY_FILE: got "cert.pem", needs a readable PEM key without passphrase \(error:.+\)$/,
    ],
    [
      'cert.pem',
      'encrypted-key.pem',
      /^TLS_KEY_FILE: got "encrypted-key.pem", needs a readable PEM key without passphrase \(error:.+\)$/,
    ],
    [
      'cert.pem',
      'other-key.pem',
      /^TLS_KEY_FILE: got "other-key.pem", needs the private key of the certificate in "cert.pem"$/,
    ],
    // The certificate has an elliptic curve key. OpenSSL can only compare keys of the same kind.
    [
      'cert.pem',
      'rsa-key.pem',
      /^TLS_KEY_FILE: got "rsa-key.pem", needs the private key of the certificate in "cert.pem"$/,
    ],
  ])('TLS_CERT_FILE=%s TLS_KEY_FILE=%s', (cert, key, message) => {
    const problems = problemsOf({ TLS_CERT_FILE: cert, TLS_KEY_FILE: key }, pems)
    expect(problems).toEqual([expect.stringMatching(message)])
  })

  test('each of two wrong ones is reported', () => {
    const cwd = makeTemporaryDirectory()
    copyFileSync(join(pems, 'cert.pem'), join(cwd, 'cert.pem'))
    expect(problemsOf({ TLS_CERT_FILE: 'a.pem', TLS_KEY_FILE: 'b.pem' }, cwd)).toHaveLength(2)
  })
})

describe('options of REDIS_URL', () => {
  const pair = 'cert=cert.pem&key=key.pem'

  test('certificates are taken, from the folder that the URL is from', () => {
    const REDIS_URL = `rediss://r?ca=cert.pem&${pair}`
    expect(loadGatewaySettings({ REDIS_URL }, pems).settings.redisFolder).toBe(pems)
  })

  test.each([
    ['rediss://r?key=key.pem', /^REDIS_URL: cert: missing, needs a certificate file for the TLS key$/],
    ['rediss://r?cert=cert.pem', /^REDIS_URL: key: missing, needs a key file for the TLS certificate$/],
    [
      'rediss://r?cert=cert.pem&key=other-key.pem',
      /^REDIS_URL: key: got "other-key.pem", needs the private key of the certificate in "cert.pem"$/,
    ],
    [
      `rediss://r?ca=key.pem&${pair}`,
      /^REDIS_URL: ca: got "key.pem", needs a readable PEM certificate \(error:.+\)$/,
    ],
    ['redis://r?ca=cert.pem', /^REDIS_URL: ca: has no effect, needs rediss:\/\/$/],
    [`redis+cluster://r?${pair}`, /^REDIS_URL: cert: has no effect, needs rediss:\/\/$/],
    [
      'rediss://r?sentinelPassword=secret',
      /^REDIS_URL: sentinelPassword: has no effect, needs redis\+sentinel:\/\/$/,
    ],
    [
      'rediss+sentinel://s/main?sentinelUsername=sluice',
      /^REDIS_URL: sentinelPassword: missing, required with sentinelUsername$/,
    ],
  ])('%s', (REDIS_URL, message) => {
    const problems = problemsOf({ REDIS_URL }, pems)
    expect(problems).toEqual([expect.stringMatching(message)])
    expect(problems.join()).not.toContain('secret')
  })

  test.each([
    'redis://r?db=1',
    'rediss://r?ca',
    'rediss://r?ca=a&ca=b',
    'rediss://r?sentinelPassword=s3cret&x=1',
  ])('%s is not shown, as it may hold a password', (REDIS_URL) => {
    const problems = problemsOf({ REDIS_URL }, pems)
    expect(problems).toEqual([
      expect.stringMatching(
        /^REDIS_URL: got a value that is not shown, as it may hold a password, needs redis:/,
      ),
    ])
  })

  test('a file with the password of the sentinels is refused', () => {
    const file = directoryWith('redisUrl: redis+sentinel://s/main?sentinelPassword=s3cret\n')
    expect(problemsOf({}, file)).toEqual([
      'sluice.yaml:1: redisUrl: holds a password, set REDIS_URL in the environment instead',
    ])
  })
})
