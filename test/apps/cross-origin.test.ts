import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { startGateway } from '../support/gateway/gateway.ts'
import { freePort } from '../support/network/ports.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { runClient } from './client.ts'
import type { Way } from './stage.ts'

// A page of another origin, in Chromium. Without `cors`, a 429 looks like a network error to its scripts.

const page = '<!doctype html><title>Later</title><h1>Too many requests</h1>'
const ports = { plain: 0, tls: 0, without: 0 }
let pagePort: number

beforeAll(async () => {
  pagePort = await freePort()
  const origin = `http://127.0.0.1:${pagePort}`
  // The backend allows the page everything, including preflights.
  const { url } = await startBackend((request, response) => {
    response.writeHead(200, {
      'access-control-allow-origin': origin,
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'PUT',
      'access-control-allow-headers': 'x-own',
      'content-type': 'text/plain',
    })
    request.resume().on('end', () => response.end('passed'))
  })
  const directory = makeTemporaryDirectory()
  writeFileSync(join(directory, 'page.html'), page)
  const limits = `
refusal: { html: ${directory}/page.html }
limits:
  - { name: fetched, match: '* /:way/fetched', key: [ip, 'path:way'], requests: 1, window: 1h }
  - { name: form, match: '* /:way/form', key: [ip, 'path:way'], requests: 1, window: 1h }
`
  const start = async (name: string, cors: string, env: Record<string, string> = {}): Promise<number> => {
    const file = join(directory, `${name}.yaml`)
    writeFileSync(file, cors + limits)
    return (await startGateway({ UPSTREAM_URL: url, CONFIG_FILE: file, ...env })).port
  }
  const cors = `cors: { origins: ['${origin}'] }\n`
  ports.plain = await start('plain', cors)
  ports.tls = await start('tls', cors, tlsSettings())
  ports.without = await start('without', '')
})

function visit(port: number, protocol: Way['protocol'], prefix: string): Promise<object> {
  const origin = `${protocol === 'http' ? 'http' : 'https'}://127.0.0.1:${port}`
  const way = { name: prefix, protocol, origin }
  return runClient('cross-origin.js', way, [prefix, String(pagePort)])
}

test.for(['http', 'https', 'http2'] as const)(
  'a page on another origin reads a 429, and a form shows it, over %s',
  async (protocol) => {
    const seen = await visit(protocol === 'http' ? ports.plain : ports.tls, protocol, `/${protocol}`)
    expect(seen).toEqual({
      passed: { status: 200, body: 'passed', retryAfter: null, limit: null, requestId: null },
      refused: {
        status: 429,
        body: '{"code":429,"error":"Too many requests, Please try after a while!"}',
        retryAfter: expect.stringMatching(/^3[56][0-9]{2}$/) as string,
        limit: expect.stringMatching(/^"fetched";r=0;t=3[56][0-9]{2}$/) as string,
        requestId: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      },
      forms: ['passed', 'Too many requests'],
    })
  },
)

test('without cors the preflight uses up the limit, and nothing can be read', async () => {
  expect(await visit(ports.without, 'http', '/without')).toMatchObject({
    passed: 'TypeError: Failed to fetch',
    refused: 'TypeError: Failed to fetch',
    forms: ['passed', 'Too many requests'],
  })
})
