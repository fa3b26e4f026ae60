import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

// The backend behind the proxy that is attacked, as a process of its own. `/bytes/N` is answered with N bytes, `/events`
// with an event stream that stays open, everything else with `ok`. Prints its port.

const eventEverySeconds = 10
const bytes = Buffer.alloc(16 * 1024 * 1024, 'x')
/** One event stream in so many gets its event each second: together they never write all at once. */
const turns: readonly Set<ServerResponse>[] = Array.from({ length: eventEverySeconds }, () => new Set())
let streams = 0

const server = createServer((request, response) => {
  request.resume()
  response.on('error', () => undefined)
  const size = /^\/bytes\/(\d+)$/.exec(request.url ?? '')?.[1]
  if (request.url === '/events') openStream(response)
  else if (size !== undefined) response.end(bytes.subarray(0, Number(size)))
  else request.on('end', () => response.end('ok'))
})

function openStream(response: ServerResponse): void {
  const turn = turns[streams++ % turns.length]
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
  response.write('data: first\n\n')
  turn?.add(response)
  response.on('close', () => turn?.delete(response))
}

let second = 0
setInterval(() => {
  for (const response of turns[second++ % turns.length] ?? []) response.write('data: next\n\n')
}, 1_000)

server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
})
