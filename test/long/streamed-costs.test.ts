import { request as httpRequest } from 'node:http'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startGateway } from '../support/gateway/gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

// A language model's server streams its response event by event, and reports the cost in the last event. The gateway reads the cost as the
// events pass through, which must not delay them.

const events = 100
const everyMs = 20
const streams = 5
const rounds = 5
/** The maximum delay of the 99th percentile of all events, compared with the same streams without a gateway. */
const maxDelayMs = 20

const from = '127.0.0.31'
const tokensOf = (stream: number): number => 100 + stream

async function startStreaming() {
  const backend = await startBackend((request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    void (async () => {
      for (let event = 1; event <= events && !response.destroyed; event++) {
        await sleep(everyMs)
        const usage =
          event === events ? { total_tokens: tokensOf(Number(request.headers['x-stream'])) } : null
        response.write(`data: ${JSON.stringify({ sentMs: performance.now(), usage })}\n\n`)
      }
      response.end('data: [DONE]\n\n')
    })()
  })
  const file = join(makeTemporaryDirectory(), 'sluice.yaml')
  writeFileSync(
    file,
    'limits:\n  - name: tokens\n    match: POST /chat\n    requests: 1000000\n    window: 1h\n' +
      '    cost: { reserve: json:max_tokens, settle: "json:usage.total_tokens" }\n',
  )
  const gateway = await startGateway({ UPSTREAM_URL: backend.url, CONFIG_FILE: file })
  return { backend, gateway }
}

/** Returns the delay of each event. Disconnects after `most` events. */
function stream(port: number, index: number, most = Infinity): Promise<number[]> {
  return new Promise((resolve, reject) => {
    const delaysMs: number[] = []
    const headers = { 'content-type': 'application/json', 'x-stream': String(index) }
    const request = httpRequest({
      host: '127.0.0.1',
      port,
      method: 'POST',
      path: '/chat',
      headers,
      localAddress: from,
      agent: false,
    })
    request.on('error', (error) => (delaysMs.length >= most ? resolve(delaysMs) : reject(error)))
    request.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => {
        const nowMs = performance.now()
        text += piece
        const whole = text.split('\n\n')
        text = whole.pop() ?? ''
        for (const event of whole) {
          if (event === 'data: [DONE]') continue
          delaysMs.push(nowMs - (JSON.parse(event.slice('data: '.length)) as { sentMs: number }).sentMs)
        }
        if (delaysMs.length < most) return
        request.destroy()
        resolve(delaysMs)
      })
      response.on('error', () => resolve(delaysMs))
      response.on('end', () => resolve(delaysMs))
    })
    request.end(JSON.stringify({ messages: [], max_tokens: 500 }))
  })
}

function percentile(delaysMs: readonly number[], share: number): number {
  const sorted = delaysMs.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Infinity
}

test('events of a streamed answer come as soon as without a gateway, and are settled to the token', async () => {
  const { backend, gateway } = await startStreaming()
  const usedUnits = async (): Promise<unknown> => {
    const client = { policy: 'tokens', client: { ip: from } }
    const { body } = await askOperator(gateway, 'POST', '/api/clients/inspect', client)
    return (body as { states: { used: number }[] }).states[0]?.used
  }
  // Warms the gateway up, as a new process runs its code slowly.
  for (let round = 0; round < 3; round++)
    await Promise.all([0, 1, 2].map((index) => stream(gateway.port, index)))
  const indexes = Array.from({ length: streams }, (_, index) => index)
  const cost = indexes.reduce((sum, index) => sum + tokensOf(index), 0)
  const delaysMs: number[] = []
  // Other processes only ever add to the delay, so the best of a few rounds is the gateway's own.
  for (let round = 0; round < rounds && !delaysMs.some((delayMs) => delayMs < maxDelayMs); round++) {
    const before = Number(await usedUnits())
    const [direct = [], through = []] = await Promise.all(
      [backend.port, gateway.port].map(async (port) =>
        (await Promise.all(indexes.map((index) => stream(port, index)))).flat(),
      ),
    )
    expect(through).toHaveLength(events * streams)
    const [p99Direct, p99Through] = [percentile(direct, 0.99), percentile(through, 0.99)]
    console.log(
      `p99 of an event: ${p99Direct.toFixed(1)} ms direct, ${p99Through.toFixed(1)} ms through the gateway`,
    )
    delaysMs.push(p99Through - p99Direct)
    await eventually('the cost is charged', async () => expect(await usedUnits()).toBe(before + cost))
  }
  expect(Math.min(...delaysMs)).toBeLessThan(maxDelayMs)

  // A client that hangs up after ten events, before the usage, pays the reserved units.
  const before = Number(await usedUnits())
  expect((await stream(gateway.port, 0, 10)).length).toBeGreaterThanOrEqual(10)
  await sleep(100)
  expect(await usedUnits()).toBe(before + 500)
})
