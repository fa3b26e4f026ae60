import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { authorityFile } from '../support/network/certificates.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { run } from './run.ts'
import type { Way } from './stage.ts'

/** A response as the client sees it, without headers that the gateway adds and hop-by-hop headers. */
export type CurlReply = {
  readonly status: number
  /** Names are lower-case. */
  readonly headers: Readonly<Record<string, readonly string[]>>
  /** SHA-256 and length where it is long. */
  readonly body: string
}

/** Set by the gateway, or one connection's own, or the time. */
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
 * One request with curl. The way's origin is `ORIGIN` in the headers and text of the reply, so that replies over two
 * ways can be compared.
 *
 * @param args curl's own, such as `['--data', 'a=1']`
 */
export async function curl(way: Way, path: string, args: readonly string[] = []): Promise<CurlReply> {
  const file = join(directory, `${++requests}`)
  const output = await run([
    'curl',
    '--silent',
    '--show-error',
    // Brackets of a query stay as they are.
    '--globoff',
    ...['--max-time', '90'],
    ...['--cacert', authorityFile],
    way.protocol === 'http2' ? '--http2' : '--http1.1',
    ...['--output', file],
    // A response without a body leaves no file.
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
        // Over HTTP/2 a line that says the same as the one before it is sent once.
        .map(([name, values]) => [name, [...new Set(values)]]),
    ),
    // curl gives a head as the body of a HEAD.
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
