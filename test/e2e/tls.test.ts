import { generateKeyPair, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import {
  copyFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { Agent, createServer, get } from 'node:https'
import { connect as connectTcp, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { authorityFile, certificateFiles, readPair, tlsSettings } from '../support/network/certificates.ts'
import { askEachWorker } from '../support/gateway/each-worker.ts'
import { send, startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { freePort } from '../support/network/ports.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const ca = readFileSync(authorityFile)
const closers: (() => void)[] = []

afterAll(() => {
  for (const close of closers) close()
})

async function handshake(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ host: 'localhost', port, ca, ...options })
  await once(socket, 'secureConnect')
  return socket
}

/** The subject of the certificate that a new connection gets. */
async function subject(port: number): Promise<string> {
  const socket = await handshake(port)
  const { CN } = socket.getPeerCertificate().subject
  socket.destroy()
  return String(CN)
}

/** The subject of the certificate that each of two workers uses. */
function subjects({ port, process }: GatewayProcess): Promise<string[]> {
  return askEachWorker(
    () => process.output(),
    2,
    () => subject(port),
  )
}

async function untilSubject(port: number, expected: string): Promise<void> {
  await eventually(`the certificate of ${expected} is in use`, async () => (await subject(port)) === expected)
}

/** A directory like that of a secret in Kubernetes: `tls.crt` links to `..data/tls.crt`, and `..data` links to the current version. */
function mountSecret(): { settings: Record<string, string>; swap: (name: 'first' | 'second') => void } {
  const directory = makeTemporaryDirectory()
  let version = 0
  const swap = (name: 'first' | 'second'): void => {
    const inside = `..version-${++version}`
    mkdirSync(join(directory, inside))
    const { cert, key } = certificateFiles(name)
    copyFileSync(cert, join(directory, inside, 'tls.crt'))
    copyFileSync(key, join(directory, inside, 'tls.key'))
    symlinkSync(inside, join(directory, '..data_tmp'))
    renameSync(join(directory, '..data_tmp'), join(directory, '..data'))
  }
  swap('first')
  for (const file of ['tls.crt', 'tls.key']) symlinkSync(join('..data', file), join(directory, file))
  const settings = { TLS_CERT_FILE: join(directory, 'tls.crt'), TLS_KEY_FILE: join(directory, 'tls.key') }
  return { settings, swap }
}

/** Separate files, which a test may write independently. */
function looseFiles(): { settings: Record<string, string>; cert: string; key: string } {
  const directory = makeTemporaryDirectory()
  const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')]
  writeFileSync(cert, readPair('first').cert)
  writeFileSync(key, readPair('first').key)
  return { settings: { TLS_CERT_FILE: cert, TLS_KEY_FILE: key }, cert, key }
}

/** The first line of a key's content. */
function keyText(key: Buffer): string {
  return key.toString().split('\n')[1] ?? ''
}

function replaceFile(file: string, content: string | Buffer): void {
  writeFileSync(`${file}.new`, content)
  renameSync(`${file}.new`, file)
}

/** Makes a key of another type than those of the test certificates: OpenSSL accepts it together with any of these certificates. */
async function makeRsaKey(): Promise<string | Buffer> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 })
  return privateKey.export({ type: 'pkcs8', format: 'pem' })
}

describe('HTTPS', () => {
  test('speaks HTTP/1.1 and HTTP/2 on one port, from TLS 1.2 on', async () => {
    const backend = await startBackend()
    const gateway = await startHosted({ UPSTREAM_URL: backend.url, ...tlsSettings() })
    const protocolOf = async (options: ConnectionOptions): Promise<unknown[]> => {
      const socket = await handshake(gateway.port, options)
      const protocols = [socket.alpnProtocol, socket.getProtocol()]
      socket.destroy()
      return protocols
    }
    expect(await protocolOf({ ALPNProtocols: ['h2', 'http/1.1'] })).toEqual(['h2', 'TLSv1.3'])
    expect(await protocolOf({ ALPNProtocols: ['http/1.1'] })).toEqual(['http/1.1', 'TLSv1.3'])
    expect(await protocolOf({ maxVersion: 'TLSv1.2' })).toEqual([false, 'TLSv1.2'])
    const old: ConnectionOptions = {
      minVersion: 'TLSv1.1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0',
    }
    await expect(handshake(gateway.port, old)).rejects.toThrow(/protocol version|alert/)
    await expect(handshake(gateway.port, { ALPNProtocols: ['spdy/3'] })).rejects.toThrow(/alert|ECONNRESET/)

    const plain = connectTcp(gateway.port, '127.0.0.1')
    plain.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await once(plain.resume(), 'close')

    expect((await sendHttp2(connectHttp2(gateway.port), { ':path': '/' })).status).toBe(200)
    const [response] = (await once(get({ port: gateway.port, ca, agent: false }), 'response')) as [
      { statusCode: number; headers: object },
    ]
    expect(response.statusCode).toBe(200)
    const { body } = await send(gateway.adminPort, 'GET', '/metrics')
    expect(body).toMatch(/^sluice_refused_connections_total{reason="tls"} [1-9]$/m)
    expect(body).toMatch(/^sluice_rejected_requests_total{reason="framing"} 0$/m)
    expect(gateway.output()).not.toContain('"level":"error"')
  })

  test('HTTPS takes up no other upgrade than WebSocket', async () => {
    const backend = await startBackend((_, response) => response.end('served'))
    const gateway = await startHosted({ UPSTREAM_URL: backend.url, ...tlsSettings() })
    const socket = await handshake(gateway.port, { ALPNProtocols: ['http/1.1'] })
    socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: other\r\n\r\n')
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 .*served$/s)
  })

  test('a response that breaks off does not end as if it were complete', async () => {
    const backend = await startBackend((_, response) => {
      response.write('part', () => setTimeout(() => response.socket?.destroy(), 50))
    })
    const gateway = await startHosted({ UPSTREAM_URL: backend.url, ...tlsSettings() })
    const socket = await handshake(gateway.port, { ALPNProtocols: ['http/1.1'] })
    let received = ''
    socket.on('data', (chunk) => (received += chunk.toString()))
    socket.on('error', () => undefined)
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await once(socket, 'close')
    expect(received).toMatch(/4\r\npart\r\n$/)
    expect(gateway.output()).not.toContain('"level":"error"')
  })
})

describe('certificates are renewed', () => {
  test('renewed certificates are used while requests go on, and no request fails', async () => {
    const backend = await startBackend((_, response) => setTimeout(() => response.end('ok'), 5))
    const { settings, swap } = mountSecret()
    const gateway = await startHosted({ UPSTREAM_URL: backend.url, ...settings })
    const outcomes: unknown[] = []
    let running = true
    const kept = new Agent({ keepAlive: true, ca })
    const work = async (agent: Agent | false): Promise<void> => {
      while (running) {
        outcomes.push(
          await new Promise((resolve) => {
            const request = get({ host: 'localhost', port: gateway.port, agent, ca }, (response) => {
              response.on('error', resolve)
              response.resume().on('end', () => resolve(response.statusCode))
            })
            request.on('error', resolve)
          }),
        )
      }
    }
    const session = connectHttp2(gateway.port)
    const workHttp2 = async (): Promise<void> => {
      while (running) outcomes.push((await sendHttp2(session, { ':path': '/' })).status)
    }
    const clients = [work(kept), work(kept), work(false), work(false), workHttp2(), workHttp2()]
    for (const name of ['second', 'first', 'second'] as const) {
      swap(name)
      await untilSubject(gateway.port, name)
      const before = outcomes.length
      await eventually('requests go on', () => outcomes.length > before + 20)
    }
    running = false
    await Promise.all(clients)
    kept.destroy()
    expect(session.destroyed).toBe(false)
    expect(outcomes.length).toBeGreaterThan(50)
    expect(new Set(outcomes)).toEqual(new Set([200]))
    const lines = gateway.output().match(/"subject":"CN=\w+".*TLS certificate reloaded/g)
    expect(lines).toHaveLength(3)
    expect(gateway.output()).not.toContain('"level":"error"')
  })

  test('a mismatched pair is logged once, and the current one is kept until there is a valid one', async () => {
    const backend = await startBackend()
    const { settings, cert, key } = looseFiles()
    const gateway = await startHosted({ UPSTREAM_URL: backend.url, ...settings })
    // Replaces one file at a time, atomically, because the gateway would also log any state in between.
    replaceFile(cert, 'no certificate')
    await gateway.waitForLine(/"level":"error".*"reason":"(?!.*mismatch).*keeping the current certificate/)
    expect(await subject(gateway.port)).toBe('first')
    replaceFile(cert, readPair('second').cert)
    await gateway.waitForLine(/"level":"error".*key values mismatch.*keeping the current certificate/)
    expect(await subject(gateway.port)).toBe('first')
    replaceFile(key, await makeRsaKey())
    await gateway.waitForLine(/"level":"error".*key does not match.*keeping the current certificate/)
    expect(await subject(gateway.port)).toBe('first')
    replaceFile(key, readPair('second').key)
    await untilSubject(gateway.port, 'second')
    expect(gateway.output().match(/keeping the current certificate/g)).toHaveLength(3)
  })

  test('SIGHUP reloads the certificate at once, with the result in the log', async () => {
    const backend = await startBackend()
    const { settings, cert, key } = looseFiles()
    const gateway = await startGateway({ UPSTREAM_URL: backend.url, ...settings })
    gateway.process.child.kill('SIGHUP')
    await gateway.process.waitForLine(/TLS certificate unchanged/)
    writeFileSync(key, 'no key')
    gateway.process.child.kill('SIGHUP')
    await gateway.process.waitForLine(/"level":"error".*keeping the current certificate/)
    writeFileSync(cert, readPair('second').cert)
    writeFileSync(key, readPair('second').key)
    gateway.process.child.kill('SIGHUP')
    await gateway.process.waitForLine(/TLS certificate reloaded/)
    expect(await subject(gateway.port)).toBe('second')
  })

  test.each(['1', '2'])('a metric has the end of its validity, with %s worker(s)', async (WORKERS) => {
    const { settings, cert, key } = looseFiles()
    const gateway = await startHosted({ WORKERS, ...settings })
    const isExpiryOf = async (name: 'first' | 'named'): Promise<boolean> => {
      const { validToDate } = new X509Certificate(readFileSync(certificateFiles(name).cert))
      const { body } = await send(gateway.adminPort, 'GET', '/metrics')
      const line = /^sluice_tls_certificate_expiry_timestamp_seconds (.*)$/m.exec(body)
      return Number(line?.[1]) === validToDate.getTime() / 1000
    }
    expect(await isExpiryOf('first')).toBe(true)
    const files = certificateFiles('named')
    replaceFile(cert, readFileSync(files.cert))
    replaceFile(key, readFileSync(files.key))
    await eventually('it is that of the renewed certificate', () => isExpiryOf('named'))
  })

  test('every worker uses the renewed certificate', async () => {
    const backend = await startBackend()
    const { settings, cert, key } = looseFiles()
    const gateway = await startGateway({ UPSTREAM_URL: backend.url, WORKERS: '2', ...settings })
    writeFileSync(cert, readPair('second').cert)
    writeFileSync(key, readPair('second').key)
    const replaced = (): RegExpMatchArray[] => [
      ...gateway.process.output().matchAll(/"pid":(\d+).*TLS certificate reloaded/g),
    ]
    await eventually('both certificates are replaced', () => replaced().length >= 2)
    expect(new Set(replaced().map(([, pid]) => pid)).size).toBe(2)
    expect(await subjects(gateway)).toEqual(['second', 'second'])
    gateway.process.child.kill('SIGHUP')
    const same = (): unknown[] => gateway.process.output().match(/TLS certificate unchanged/g) ?? []
    await eventually('both have said that nothing has changed', () => same().length >= 2)
    expect(await gateway.process.stop()).toBe(0)
  })

  test.each<[string, (files: { cert: string; key: string }) => void]>([
    ['do not match', ({ key }) => replaceFile(key, readPair('first').key)],
    ['are gone', ({ cert, key }) => [cert, key].forEach((file) => rmSync(file))],
  ])(
    'workers that are all restarted while the files %s serve with the current certificate',
    async (_, spoil) => {
      const backend = await startBackend()
      const { settings, cert, key } = looseFiles()
      // A fixed port, as the system would choose another one once all workers have exited.
      const PORT = String(await freePort())
      const gateway = await startGateway({ UPSTREAM_URL: backend.url, WORKERS: '2', PORT, ...settings })
      const output = (): string => gateway.process.output()
      const listening = (): number[] =>
        [...output().matchAll(/"pid":(\d+).*"msg":"worker listening"/g)].map(([, pid]) => Number(pid))
      await eventually('both workers listen', () => listening().length === 2)
      replaceFile(cert, readPair('second').cert)
      replaceFile(key, readPair('second').key)
      const logged = (what: string): number => output().split(`"msg":"TLS certificate ${what}"`).length - 1
      await eventually('both have the new pair', () => logged('reloaded') === 2)
      // At SIGHUP the primary process reads the files before the workers do.
      gateway.process.child.kill('SIGHUP')
      await eventually('the primary process has it too', () => logged('unchanged') === 2)
      spoil({ cert, key })
      for (const pid of listening()) process.kill(pid, 'SIGKILL')
      await eventually('both are back', () => listening().length === 4)
      expect(await subjects(gateway)).toEqual(['second', 'second'])
      expect(output().match(/cannot use the changed TLS certificate; keeping the current one/g)).toHaveLength(
        2,
      )
      expect(output()).not.toContain(keyText(readPair('second').key))
      replaceFile(cert, readPair('first').cert)
      replaceFile(key, readPair('first').key)
      await eventually('both use the next valid pair', async () =>
        expect(await subjects(gateway)).toEqual(['first', 'first']),
      )
      expect(await gateway.process.stop()).toBe(0)
    },
  )
})

describe('an HTTPS backend', () => {
  async function startSecureBackend(name: 'first' | 'elsewhere'): Promise<string> {
    const server = createServer({ ...readPair(name), ALPNProtocols: ['http/1.1'] }, (request, response) => {
      request.resume().on('end', () => response.end(`secure ${String(request.headers['x-forwarded-proto'])}`))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    closers.push(() => {
      server.close()
      server.closeAllConnections()
    })
    return `https://localhost:${(server.address() as AddressInfo).port}`
  }

  function ask({ port }: HostedGateway): Promise<{ status: number; body: string }> {
    return send(port, 'POST', '/', { body: 'x' })
  }

  test('an HTTPS backend is verified by the authorities that are named', async () => {
    const url = await startSecureBackend('first')
    const gateway = await startHosted({ UPSTREAM_URL: url, UPSTREAM_CA_FILE: authorityFile })
    expect(await ask(gateway)).toMatchObject({ status: 200, body: 'secure http' })
    const byAddress = await startHosted({
      UPSTREAM_URL: url.replace('localhost', '127.0.0.1'),
      UPSTREAM_CA_FILE: authorityFile,
    })
    expect(await ask(byAddress)).toMatchObject({ status: 200, body: 'secure http' })
  })

  test('an HTTPS backend with a certificate of an unknown CA or another host is a 502, and the log says why', async () => {
    const unknown = await startHosted({ UPSTREAM_URL: await startSecureBackend('first') })
    expect((await ask(unknown)).status).toBe(502)
    await unknown.waitForLine(
      /"reason":"the certificate of the backend is not of a trusted CA.*UPSTREAM_CA_FILE.*the backend failed/,
    )
    const other = await startHosted({
      UPSTREAM_URL: await startSecureBackend('elsewhere'),
      UPSTREAM_CA_FILE: authorityFile,
    })
    expect((await ask(other)).status).toBe(502)
    await other.waitForLine(/"reason":"Hostname\/IP does not match.*the backend failed/)
  })
})

describe('a client that ends its direction', () => {
  test.each([
    ['nothing', ''],
    ['the head of a record', '\x16\x03\x01\x02'],
    ['a part of its first message', `\x16\x03\x01\x02\x00\x01${'\0'.repeat(99)}`],
  ])(
    'a client that ends its direction is disconnected at once if it has sent %s of a handshake',
    async (_, sent) => {
      const gateway = await startHosted({ ...tlsSettings(), HEADERS_TIMEOUT: '1h' })
      const socket = connectTcp({ port: gateway.port, host: '127.0.0.1', allowHalfOpen: true })
      socket.resume().end(sent, 'latin1')
      // With `allowHalfOpen`, this waits only for the end of the gateway's direction.
      await once(socket, 'end')
      socket.destroy()
    },
  )

  test('still gets the 400 for its request after the handshake', async () => {
    const gateway = await startHosted({ ...tlsSettings(), HEADERS_TIMEOUT: '1h' })
    const socket = await handshake(gateway.port)
    const received = text(socket)
    socket.end('GET / HTTP/1.1\r\nHost: a\r\nX-Unfin')
    expect(await received).toMatch(/^HTTP\/1\.1 400 /)
  })
})
