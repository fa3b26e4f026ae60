import { request as httpRequest } from 'node:http'
import { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { readResidentBytes, readUsedBytes } from '../support/load/memory-use.ts'

const mebibyte = 1024 ** 2
const gibibyte = 1024 * mebibyte
/** How much a gateway's memory may grow at most: its buffers, and garbage until the next collection. */
const maxGrowthBytes = 128 * mebibyte
/** How much the minimum of used memory may grow from the first quarter to the last: only noise. */
const maxLaterGrowthBytes = 32 * mebibyte

function* bytes(count: number): Generator<Buffer> {
  const piece = Buffer.alloc(256 * 1024, 'x')
  for (let sent = 0; sent < count; sent += piece.length) yield piece
}

type Meter = Writable & { total: number; peakBytes: number; readonly minUsedBytes: number[] }

/** A sink that counts bytes, and reads the gateway's memory in each quarter of the stream. */
function startMeter({ adminPort, process }: GatewayProcess): Meter {
  const pid = process.child.pid ?? 0
  async function look(): Promise<void> {
    meter.peakBytes = Math.max(meter.peakBytes, readResidentBytes(pid))
    const quarter = Math.floor((4 * meter.total) / gibibyte)
    const used = await readUsedBytes(adminPort)
    meter.minUsedBytes[quarter] = Math.min(meter.minUsedBytes[quarter] ?? Infinity, used)
  }
  const sink = new Writable({
    write(chunk: Buffer, _, done) {
      meter.total += chunk.length
      if (meter.total % (8 * mebibyte) >= chunk.length || meter.total === gibibyte) done()
      else look().then(() => done(), done)
    },
  })
  const minUsedBytes: number[] = []
  const meter = Object.assign(sink, { total: 0, peakBytes: 0, minUsedBytes })
  return meter
}

function expectFlat({ total, peakBytes, minUsedBytes }: Meter, beforeBytes: number): void {
  expect(total).toBe(gibibyte)
  expect(peakBytes - beforeBytes).toBeLessThan(maxGrowthBytes)
  const [first = NaN, , , last = NaN] = minUsedBytes
  expect(last - first).toBeLessThan(maxLaterGrowthBytes)
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
      uploaded = startMeter(gateway)
      void pipeline(request, uploaded).then(() => response.end('done'))
    })
    const gateway = await startGateway({ UPSTREAM_URL: backend.url })
    const before = readResidentBytes(gateway.process.child.pid ?? 0)

    const download = httpRequest({ port: gateway.port, path: '/' }).end()
    const [response] = (await once(download, 'response')) as [Readable]
    const downloaded = startMeter(gateway)
    await pipeline(response, downloaded)
    expectFlat(downloaded, before)

    const upload = httpRequest({ port: gateway.port, path: '/', method: 'PUT' })
    const answered = once(upload, 'response')
    await pipeline(Readable.from(bytes(gibibyte)), upload)
    await answered
    if (!uploaded) throw new Error('nothing was uploaded')
    expectFlat(uploaded, before)
  },
)
