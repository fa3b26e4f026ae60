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
  test('needs proxies that send it', () => {
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

describe('certificate and key', () => {
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
    ['cert.pem', '.', /^TLS_KEY_FILE: got ".", needs a readable PEM key without passphrase \(EISDIR: .+\)$/],
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
    // The certificate's is on an elliptic curve: what OpenSSL compares are keys of one kind only.
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

describe('settings for connections to Redis', () => {
  const pair = { REDIS_CERT_FILE: 'cert.pem', REDIS_KEY_FILE: 'key.pem' }

  test('certificates are taken, and their paths become absolute', () => {
    const env = { REDIS_URL: 'rediss://r', REDIS_CA_FILE: 'cert.pem', ...pair }
    expect(loadGatewaySettings(env, pems).settings).toMatchObject({
      redisCaFile: join(pems, 'cert.pem'),
      redisCertFile: join(pems, 'cert.pem'),
      redisKeyFile: join(pems, 'key.pem'),
    })
  })

  test('is checked where there is no Redis, too, but may be there', () => {
    expect(problemsOf({ REDIS_CA_FILE: 'cert.pem', ...pair }, pems)).toEqual([])
    expect(problemsOf({ REDIS_CA_FILE: 'nope.pem' }, pems)).toHaveLength(1)
  })

  test.each([
    [{ REDIS_CERT_FILE: '' }, /^REDIS_CERT_FILE: missing, needs a certificate file for the TLS key$/],
    [{ REDIS_KEY_FILE: '' }, /^REDIS_KEY_FILE: missing, needs a key file for the TLS certificate$/],
    [
      { REDIS_KEY_FILE: 'other-key.pem' },
      /^REDIS_KEY_FILE: got "other-key.pem", needs the private key of the certificate in "cert.pem"$/,
    ],
    [
      { REDIS_CA_FILE: 'key.pem' },
      /^REDIS_CA_FILE: got "key.pem", needs a readable PEM certificate \(error:.+\)$/,
    ],
    [
      { REDIS_CA_FILE: 'cert.pem', REDIS_CERT_FILE: '', REDIS_KEY_FILE: '', REDIS_URL: 'redis://r' },
      /^REDIS_CA_FILE: has no effect, needs a Redis URL with TLS \(rediss:\/\/\)$/,
    ],
    [
      { REDIS_URL: 'redis+cluster://r' },
      /^REDIS_CERT_FILE: has no effect, needs a Redis URL with TLS \(rediss:\/\/\)$/,
    ],
    [
      { REDIS_SENTINEL_PASSWORD: 'secret' },
      /^REDIS_SENTINEL_PASSWORD: has no effect, needs a Redis URL for Sentinel \(redis\+sentinel:\/\/\)$/,
    ],
    [
      { REDIS_URL: 'rediss+sentinel://s/main', REDIS_SENTINEL_USERNAME: 'sluice' },
      /^REDIS_SENTINEL_PASSWORD: missing, required with REDIS_SENTINEL_USERNAME$/,
    ],
  ])('%j', (env, message) => {
    const problems = problemsOf({ REDIS_URL: 'rediss://r', ...pair, ...env }, pems)
    expect(problems).toEqual([expect.stringMatching(message)])
    expect(problems.join()).not.toContain('secret')
  })
})
