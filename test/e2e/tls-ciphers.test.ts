import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { connect, getCiphers } from 'node:tls'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { authorityFile, tlsSettings } from '../support/network/certificates.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

const run = promisify(execFile)
const modern = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-RSA-CHACHA20-POLY1305',
]

/** Suites with static RSA and GCM, with static RSA and CBC, and with forward secrecy and CBC. */
const old = ['AES128-GCM-SHA256', 'AES256-SHA', 'ECDHE-RSA-AES128-SHA', 'ECDHE-RSA-AES256-SHA384']

let backendUrl: string
let ecdsa: HostedGateway
let rsa: HostedGateway
let rsaSettings: Record<string, string>

beforeAll(async () => {
  const directory = makeTemporaryDirectory()
  const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')]
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  await run('openssl', [
    ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert],
    ...subject,
  ])
  rsaSettings = { TLS_CERT_FILE: cert, TLS_KEY_FILE: key }
  const backend = await startBackend((_, response) => {
    response.write('o')
    response.end('k')
  })
  backendUrl = backend.url
  ;[ecdsa, rsa] = await Promise.all([
    startHosted({ UPSTREAM_URL: backendUrl, ...tlsSettings() }),
    startHosted({ UPSTREAM_URL: backendUrl, ...rsaSettings }),
  ])
})

/** The version and suite negotiated with a client of Debian's OpenSSL; undefined if the handshake fails. */
async function agreeWithOpenssl(port: number, ...options: string[]): Promise<string | undefined> {
  const client = run('openssl', ['s_client', '-connect', `localhost:${port}`, '-brief', ...options])
  client.child.stdin?.end('Q\n')
  const { stderr } = await client.catch(() => ({ stderr: '' }))
  const [, version, suite] = /Protocol version: (\S+)\nCiphersuite: (\S+)/.exec(stderr) ?? []
  return version && `${version} ${suite ?? ''}`
}

/** Whether a TLS 1.2 client with only this suite, in Node's own OpenSSL, can connect. */
function agrees(port: number, suite: string): Promise<boolean> {
  return new Promise((resolve) => {
    const ciphers = `${suite}:@SECLEVEL=0`
    const options = { host: 'localhost', port, maxVersion: 'TLSv1.2', rejectUnauthorized: false } as const
    const socket = connect({ ...options, ciphers })
    const end = (agreed: boolean): void => {
      socket.destroy()
      resolve(agreed)
    }
    socket.on('secureConnect', () => end(true))
    socket.on('error', () => end(false))
  })
}

describe('by default', () => {
  test('a client of TLS 1.2 finds nothing but forward secrecy and AEAD', async () => {
    const suites = getCiphers()
      .map((name) => name.toUpperCase())
      .filter((name) => !name.startsWith('TLS_'))
    expect(suites).toEqual(expect.arrayContaining([...modern, ...old]))
    const agreed: string[] = []
    for (const suite of suites)
      for (const { port } of [ecdsa, rsa]) if (await agrees(port, suite)) agreed.push(suite)
    expect(agreed.sort()).toEqual(modern)
  })

  test.each(old)('openssl s_client gets no connection with %s', async (suite) => {
    expect(await agreeWithOpenssl(rsa.port, '-tls1_2', '-cipher', `${suite}:@SECLEVEL=0`)).toBeUndefined()
  })

  test('openssl s_client gets one with TLS 1.3, with TLS 1.2, and with neither of those before', async () => {
    const suite = 'ECDHE-RSA-AES128-GCM-SHA256'
    expect(await agreeWithOpenssl(rsa.port, '-tls1_2', '-cipher', suite)).toBe(`TLSv1.2 ${suite}`)
    expect(await agreeWithOpenssl(rsa.port)).toMatch(/^TLSv1\.3 TLS_/)
    const lowest = ['-cipher', 'ALL:@SECLEVEL=0']
    expect(await agreeWithOpenssl(rsa.port, '-tls1_1', ...lowest)).toBeUndefined()
    expect(await agreeWithOpenssl(rsa.port, '-tls1', ...lowest)).toBeUndefined()
  })
})

test('a client of TLS 1.2 cannot renegotiate', async () => {
  const options = { port: rsa.port, maxVersion: 'TLSv1.2', rejectUnauthorized: false } as const
  const socket = connect({ host: 'localhost', ...options })
  await once(socket, 'secureConnect')
  const outcome = await new Promise((resolve) => {
    socket.on('error', resolve)
    socket.renegotiate({ rejectUnauthorized: false }, resolve)
  })
  expect(outcome).toMatchObject({ code: 'ERR_SSL_NO_RENEGOTIATION' })
  socket.destroy()
})

test('with NODE_OPTIONS=--tls-min-v1.3 only TLS 1.3 is offered', async () => {
  const settings = { NODE_OPTIONS: '--tls-min-v1.3', ...rsaSettings }
  const { port } = await startHosted({ UPSTREAM_URL: backendUrl, ...settings })
  expect(await agreeWithOpenssl(port)).toMatch(/^TLSv1\.3 /)
  expect(await agreeWithOpenssl(port, '-tls1_2')).toBeUndefined()
})

describe('curl', () => {
  const ca = readFileSync(authorityFile)
  const curl = async (...options: string[]): Promise<string> => {
    const url = `https://localhost:${ecdsa.port}/`
    const common = ['--silent', '--show-error', '--include', '--cacert', authorityFile]
    const { stdout } = await run('curl', [...common, ...options, url])
    return stdout.replaceAll('\r', '')
  }

  test.each([
    ['--http1.1', /^HTTP\/1\.1 200 OK\n(.*\n)*transfer-encoding: chunked\n(.*\n)*\nok$/i],
    ['--http2', /^HTTP\/2 200 \n(.*\n)*\nok$/],
    ['--no-alpn', /^HTTP\/1\.1 200 OK\n(.*\n)*\nok$/],
    ['--tls-max=1.2', /^HTTP\/2 200 \n(.*\n)*\nok$/],
  ])('%s is served', async (option, answer) => {
    expect(await curl(...option.split('='))).toMatch(answer)
  })

  test('--http1.0 is served as that version is: to the end of the connection, not in chunks', async () => {
    const answer = await curl('--http1.0')
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\n(.*\n)*connection: close\n(.*\n)*\nok$/i)
    expect(answer).not.toMatch(/transfer-encoding/i)
  })

  test('ALPN prefers any other protocol to HTTP/1.0', async () => {
    const chosen = (ALPNProtocols: string[]): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const socket = connect({ host: 'localhost', port: ecdsa.port, ca, ALPNProtocols }, () => {
          resolve(socket.alpnProtocol)
          socket.destroy()
        })
        socket.on('error', reject)
      })
    expect(await chosen(['http/1.0', 'http/1.1', 'h2'])).toBe('h2')
    expect(await chosen(['http/1.0', 'http/1.1'])).toBe('http/1.1')
    expect(await chosen(['spdy/3', 'http/1.0'])).toBe('http/1.0')
    await expect(chosen(['http/0.9'])).rejects.toThrow(/alert|ECONNRESET/)
  })
})
