import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { authorityFile, tlsSettings } from '../support/network/certificates.ts'
import { readPorts, startGateway } from './processes.ts'

// HTTP/2 with third-party clients: curl, and h2load with 100 concurrent streams on each connection.

const missing = ['curl', 'h2load'].filter((name) => spawnSync(name, ['--version']).error)
if (missing.length > 0) {
  console.log(
    `HTTP/2 was not tried: ${missing.join(' and ')} could not be found; Debian has them as curl and nghttp2-client.`,
  )
  process.exit(1)
}

const backend = createServer((request, response) => {
  if (request.url === '/events') {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: one\n\n')
    setTimeout(() => response.end('data: two\n\n'), 100)
    return
  }
  let bytes = 0
  request.on('data', (chunk: Buffer) => (bytes += chunk.length))
  request.on('end', () => response.end(`${bytes} bytes`))
})
backend.listen(0, '127.0.0.1')
await once(backend, 'listening')
const gateway = startGateway({
  HOST: '127.0.0.1',
  PORT: '0',
  ADMIN_PORT: '0',
  CONFIG_FILE: 'test/support/gateway/defaults.yaml',
  MAX_BODY_SIZE: '8m',
  UPSTREAM_URL: `http://127.0.0.1:${(backend.address() as AddressInfo).port}`,
  ...tlsSettings(),
})
const { port } = await readPorts(gateway)
const address = `https://localhost:${port}`

const failures: string[] = []
await curl('a request', '/', 0, '0 bytes 2 200')
await curl('an upload', '/upload', 5_000_000, '5000000 bytes 2 200')
await curl('an upload over the limit', '/upload', 9_000_000, /"code":413.* 2 413$/)
await curl('events', '/events', 0, /^data: one\s+data: two\s+2 200$/)
const load = await run('h2load', ['-n', '20000', '-c', '4', '-m', '100', `${address}/`])
show('100 streams at a time', load, /20000 succeeded, 0 failed, 0 errored, 0 timeout/)
gateway.stop()
process.exit(failures.length === 0 ? 0 : 1)

/** @param bodyBytes the size of the upload, which is not announced; 0 for a GET */
async function curl(name: string, path: string, bodyBytes: number, expected: string | RegExp): Promise<void> {
  const upload = bodyBytes === 0 ? [] : ['--upload-file', '-']
  const report = ['--write-out', ' %{http_version} %{http_code}']
  const common = ['--silent', '--show-error', '--max-time', '20', '--http2', '--cacert', authorityFile]
  show(name, await run('curl', [...common, ...report, ...upload, address + path], bodyBytes), expected)
}

/** Resolves with the whole output of a program. */
async function run(program: string, args: readonly string[], inputBytes = 0): Promise<string> {
  const child = spawn(program, args)
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  // A client that has its response may leave the rest unread.
  child.stdin.on('error', () => undefined)
  child.stdin.end(Buffer.alloc(inputBytes))
  await once(child, 'close')
  return output
}

function show(name: string, output: string, expected: string | RegExp): void {
  const holds = typeof expected === 'string' ? output === expected : expected.test(output.trim())
  console.log(`HTTP/2, ${name}: ${holds ? 'works' : `FAILED, got ${output}`}`)
  if (!holds) failures.push(name)
}
