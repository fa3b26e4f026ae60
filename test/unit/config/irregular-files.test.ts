import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { LiveGeo } from '../../../proxy/app/addresses/live-geo.ts'
import { loadGatewaySettings } from '../../../proxy/config/settings.ts'
import { watchCertificate } from '../../../proxy/http/connection/tls/reload.ts'
import { readDecisionStream } from '../../../proxy/limits/clients/crowdsec/local-api.ts'
import { loadKeySet } from '../../../proxy/limits/keys/tokens/load-key-set.ts'
import { readRegularFile, readRegularFileSync } from '../../../shared/settings/regular-file.ts'
import { directoryWith, problemsOf } from '../../support/gateway/settings.ts'
import { atEndOfFile } from '../../support/run/at-end.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'
import { eventually } from '../../support/wait/eventually.ts'

// Opening a pipe waits for its writer. That blocks the start permanently, or all requests, or one of the four threads that also look up
// names. Reading a device may never end.

const pems = join(import.meta.dirname, 'mistakes/tls')
const NOT_REGULAR = 'it is not a regular file'

function makePipe(path = join(makeTemporaryDirectory(), 'pipe')): string {
  execFileSync('mkfifo', [path])
  return path
}

async function makeSocket(): Promise<string> {
  const path = join(makeTemporaryDirectory(), 'socket')
  const server = createServer().listen(path)
  await once(server, 'listening')
  atEndOfFile(() => void server.close())
  return path
}

const rule = 'name: a, match: POST /a, requests: 1, window: 1m'
const route = '[{ name: b, paths: [/b], upstream: ["https://b"], upstreamCaFile: FILE }]'

test.each<[file: string, env: Record<string, string>]>([
  ['geoip: { country: FILE }', {}],
  ['geoip: { asn: FILE }', {}],
  ['jwt: { jwksFile: FILE, issuer: i, audience: a }', {}],
  ['jwt: { secretFile: FILE, issuer: i, audience: a }', {}],
  ['crowdsec: { url: "http://127.0.0.1:8000", keyFile: FILE }', {}],
  ['refusal: { html: FILE }', {}],
  [`limits: [{ ${rule}, refusal: { bodyFile: FILE, contentType: text/plain } }]`, {}],
  [`routes: ${route}`, {}],
  ['tlsCertFile: FILE\ntlsKeyFile: FILE', {}],
  ['upstream: https://b\nupstreamCaFile: FILE', {}],
  [`allowList: [{ file: FILE }]`, {}],
  [`limits: [{ ${rule}, when: [{ ip: [{ file: FILE }] }] }]`, {}],
  ['limits: []', { TLS_CERT_FILE: `${pems}/cert.pem`, TLS_KEY_FILE: 'FILE' }],
  ['limits: []', { REDIS_URL: 'rediss://127.0.0.1/?ca=FILE' }],
  ['limits: []', { REDIS_URL: `rediss://127.0.0.1/?cert=${pems}/cert.pem&key=FILE` }],
])('%s %o names no pipe, device, folder or socket', async (yaml, env) => {
  for (const path of [makePipe(), '/dev/zero', makeTemporaryDirectory(), await makeSocket()]) {
    const named = (text: string): string => text.replaceAll('FILE', path)
    const given = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, named(value)]))
    const problems = problemsOf(given, directoryWith(named(yaml)))
    expect(problems.join('\n'), path).toContain(`(${NOT_REGULAR})`)
  }
})

test('a file that becomes a pipe while the gateway runs is not waited for', async () => {
  const path = makePipe()
  await expect(loadKeySet({ kind: 'file', path })).rejects.toThrow(NOT_REGULAR)
  await expect(loadKeySet({ kind: 'secret', path })).rejects.toThrow(NOT_REGULAR)
  const query = { startup: true, userAgent: 'a', signal: AbortSignal.timeout(60_000) }
  const crowdsec = { url: 'http://127.0.0.1:9', keyFile: path, everyMs: 1000 }
  await expect(readDecisionStream(crowdsec, query, () => undefined)).rejects.toThrow(NOT_REGULAR)
  const geo = new LiveGeo(pino({ level: 'silent' }))
  await expect(geo.prepare({ country: { file: 'a.mmdb', location: path } })).rejects.toThrow(NOT_REGULAR)
})

test('a certificate that becomes a pipe is reported, and the one in use stays', async () => {
  const lines: unknown[] = []
  const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const folder = makeTemporaryDirectory()
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const inUse = { cert: readFileSync(`${pems}/cert.pem`), key: readFileSync(`${pems}/key.pem`) }
  writeFileSync(certFile, inUse.cert)
  makePipe(keyFile)
  const watch = watchCertificate({ certFile, keyFile, inUse, use: () => expect.unreachable(), log })
  atEndOfFile(() => watch.close())
  await watch.reload()
  await eventually('the pipe is reported', () =>
    expect(lines).toMatchObject([{ level: 50, reason: NOT_REGULAR }]),
  )
})

test('a link to a file, as in a ConfigMap, and a file of /proc are read', async () => {
  const folder = makeTemporaryDirectory()
  writeFileSync(join(folder, 'first'), 'first')
  symlinkSync('first', join(folder, '..data'))
  symlinkSync('..data', join(folder, 'link'))
  for (const [path, content] of [
    [join(folder, 'link'), 'first'],
    ['/proc/self/cmdline', readFileSync('/proc/self/cmdline', 'utf8')],
  ] as const) {
    expect(readRegularFileSync(path).toString()).toBe(content)
    expect((await readRegularFile(path)).toString()).toBe(content)
  }
})

test('a file that is too large is not read', async () => {
  const path = join(makeTemporaryDirectory(), 'large')
  writeFileSync(path, 'x'.repeat(2049))
  expect(() => readRegularFileSync(path, 2048)).toThrow('the file is larger than 2 KiB')
  await expect(readRegularFile(path, 2048)).rejects.toThrow('the file is larger than 2 KiB')
  expect(readRegularFileSync(path, 3072)).toHaveLength(2049)
})

test('settings and secrets may come through pipes, which are read once', () => {
  const [settings, secret] = [makePipe(), makePipe()]
  for (const [path, text] of [
    [settings, 'port: 8181\n'],
    [secret, 'a-token-of-16-or-more\n'],
  ] as const) {
    const writer = execFile('sh', ['-c', 'printf %s "$1" > "$2"', 'sh', text, path])
    atEndOfFile(() => void writer.kill())
  }
  const loaded = loadGatewaySettings(
    { CONFIG_FILE: settings, ADMIN_TOKEN_FILE: secret },
    makeTemporaryDirectory(),
  )
  expect(loaded.settings).toMatchObject({ port: 8181, adminToken: 'a-token-of-16-or-more' })
})
