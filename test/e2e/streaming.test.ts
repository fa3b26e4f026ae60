import { readFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { startBackend } from '../support/backend.ts'
import { startGateway } from '../support/gateway.ts'

const mebibyte = 1024 ** 2
const gibibyte = 1024 * mebibyte
/** What a gateway may grow by at most: its buffers, and what the collector leaves lying until it has to run. */
const maxGrowthBytes = 128 * mebibyte
/** Of that, what may come after the first quarter has passed: nothing but noise. */
const maxLaterGrowthBytes = 32 * mebibyte

function residentBytes(pid: number): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1])
  return pages * 4096
}

function* bytes(count: number): Generator<Buffer> {
  const piece = Buffer.alloc(256 * 1024, 'x')
  for (let sent = 0; sent < count; sent += piece.length) yield piece
}

type Meter = Writable & { total: number; firstPeakBytes: number; laterPeakBytes: number }

/** Counts what it is given, and looks at the process's memory as it goes. */
function startMeter(pid: number): Meter {
  const sink = new Writable({
    write(chunk: Buffer, _, done) {
      meter.total += chunk.length
      if (meter.total % (8 * mebibyte) < chunk.length) {
        const resident = residentBytes(pid)
        if (meter.total < gibibyte / 4) meter.firstPeakBytes = Math.max(meter.firstPeakBytes, resident)
        else meter.laterPeakBytes = Math.max(meter.laterPeakBytes, resident)
      }
      done()
    },
  })
  const meter = Object.assign(sink, { total: 0, firstPeakBytes: 0, laterPeakBytes: 0 })
  return meter
}

function expectFlat({ total, firstPeakBytes, laterPeakBytes }: Meter, beforeBytes: number): void {
  expect(total).toBe(gibibyte)
  expect(laterPeakBytes - beforeBytes).toBeLessThan(maxGrowthBytes)
  expect(laterPeakBytes - firstPeakBytes).toBeLessThan(maxLaterGrowthBytes)
}

test.runIf(process.platform === 'linux')(
  'a gibibyte passes each way without growing the gateway',
  async () => {
    let uploaded: Meter | undefined
    const backend = await startBackend((request, response) => {
      if (request.method === 'GET') {
        response.writeHead(200)
        void pipeline(Readable.from(bytes(gibibyte)), response)
        return
      }
      uploaded = startMeter(pid)
      void pipeline(request, uploaded).then(() => response.end('done'))
    })
    const gateway = await startGateway({ UPSTREAM_URL: backend.url })
    const pid = gateway.process.child.pid ?? 0
    const before = residentBytes(pid)

    const download = httpRequest({ port: gateway.port, path: '/' }).end()
    const [response] = (await once(download, 'response')) as [Readable]
    const downloaded = startMeter(pid)
    await pipeline(response, downloaded)
    expectFlat(downloaded, before)

    const upload = httpRequest({ port: gateway.port, path: '/', method: 'PUT' })
    const answered = once(upload, 'response')
    await pipeline(Readable.from(bytes(gibibyte)), upload)
    await answered
    if (!uploaded) throw new Error('nothing was uploaded')
    expectFlat(uploaded, before)
  },
  60_000,
)
