import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { authorityFile } from '../support/network/certificates.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { run } from './run.ts'
import type { Way } from './stage.ts'

/** A response as the client sees it, without hop-by-hop headers and headers that the gateway adds. */
export type CurlReply = {
  readonly status: number
  /** Names are lower-case. */
  readonly headers: Readonly<Record<string, readonly string[]>>
  /** The text, or its SHA-256 and length if it is long. */
  readonly body: string
}

/** Headers that the gateway sets, that belong to one connection, or that contain the time. */
const notCompared = new Set([
  'connection',
  'date',
  'keep-alive',
  'ratelimit',
  'ratelimit-policy',
  'transfer-encoding',
  'via',
  'x-request-id',
])

const MAX_TEXT_LENGTH = 4_000
const directory = makeTemporaryDirectory()
let requests = 0

/**
 * Sends one request with curl. In the headers and text of the reply, the way's origin is replaced with `ORIGIN`, so that replies over two
 * ways can be compared.
 *
 * @param args arguments of curl, such as `['--data', 'a=1']`
 */
export async function curl(way: Way, path: string, args: readonly string[] = []): Promise<CurlReply> {
  const file = join(directory, `${++requests}`)
  const output = await run([
    'curl',
    '--silent',
    '--show-error',
    // Keeps brackets in a query literal.
    '--globoff',
    ...['--max-time', '90'],
    ...['--cacert', authorityFile],
    way.protocol === 'http2' ? '--http2' : '--http1.1',
    ...['--output', file],
    // Without a body curl writes no file, so its folder must be created.
    '--create-dirs',
    ...['--write-out', '%{http_code}\n%{http_version}\n%{header_json}'],
    ...args,
    way.origin + path,
  ])
  const [status = '', version = '', ...rest] = output.split('\n')
  const expected = way.protocol === 'http2' ? '2' : '1.1'
  if (version !== expected) throw new Error(`${way.name}: HTTP/${version} was spoken, not HTTP/${expected}`)
  const headers = JSON.parse(rest.join('\n').replaceAll(way.origin, 'ORIGIN')) as Record<string, string[]>
  return {
    status: Number(status),
    headers: Object.fromEntries(
      Object.entries(headers)
        .filter(([name]) => !notCompared.has(name))
        // HTTP/2 sends a line once if it repeats the line before it.
        .map(([name, values]) => [name, [...new Set(values)]]),
    ),
    // For HEAD, curl outputs the head as the body.
    body: args.includes('--head') ? '' : readBody(file, way.origin),
  }
}

function readBody(file: string, origin: string): string {
  let bytes: Buffer
  try {
    bytes = readFileSync(file)
  } catch {
    return ''
  }
  if (bytes.length <= MAX_TEXT_LENGTH) return bytes.toString('latin1').replaceAll(origin, 'ORIGIN')
  return `${bytes.length} bytes, ${createHash('sha256').update(bytes).digest('hex')}`
}
