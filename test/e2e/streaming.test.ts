import { readFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { startBackend } from '../support/backend.ts'
import { startGateway } from '../support/gateway.ts'

const gibibyte = 1024 ** 3
/** What a gateway may grow by while a gibibyte passes through it: its buffers and the collector's slack. */
const maxGrowthBytes = 64 * 1024 ** 2

function residentBytes(pid: number): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1])
  return pages * 4096
}

function* bytes(count: number): Generator<Buffer> {
  const piece = Buffer.alloc(256 * 1024, 'x')
  for (let sent = 0; sent < count; sent += piece.length) yield piece
}

/** Counts what it is given, and looks at the process's memory as it goes. */
function meter(pid: number): Writable & { total: number; peakBytes: number } {
  const sink = new Writable({
    write(chunk: Buffer, _, done) {
      sink.total += chunk.length
      if (sink.total % (16 * 1024 ** 2) < chunk.length)
        sink.peakBytes = Math.max(sink.peakBytes, residentBytes(pid))
      done()
    },
  }) as Writable & { total: number; peakBytes: number }
  sink.total = 0
  sink.peakBytes = 0
  return sink
}

test.runIf(process.platform === 'linux')(
  'a gibibyte passes each way without growing the gateway',
  async () => {
    let uploaded: ReturnType<typeof meter> | undefined
    const backend = await startBackend((request, response) => {
      if (request.method === 'GET') {
        response.writeHead(200)
        void pipeline(Readable.from(bytes(gibibyte)), response)
        return
      }
      uploaded = meter(pid)
      void pipeline(request, uploaded).then(() => response.end('done'))
    })
    const gateway = await startGateway({ UPSTREAM_URL: backend.url })
    const pid = gateway.process.child.pid ?? 0
    const before = residentBytes(pid)

    const download = httpRequest({ port: gateway.port, path: '/' }).end()
    const [response] = (await once(download, 'response')) as [Readable]
    const downloaded = meter(pid)
    await pipeline(response, downloaded)
    expect(downloaded.total).toBe(gibibyte)
    expect(downloaded.peakBytes - before).toBeLessThan(maxGrowthBytes)

    const upload = httpRequest({ port: gateway.port, path: '/', method: 'PUT' })
    const answered = once(upload, 'response')
    await pipeline(Readable.from(bytes(gibibyte)), upload)
    await answered
    expect(uploaded?.total).toBe(gibibyte)
    expect((uploaded?.peakBytes ?? 0) - before).toBeLessThan(maxGrowthBytes)
  },
  60_000,
)
