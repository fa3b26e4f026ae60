import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

// The backend behind the attacked proxy, in its own process. `/bytes/N` returns N bytes, `/events` an event stream that stays open,
// `/tiny-chunks` chunks of one byte without end, and everything else `ok`. Prints its port.

const eventEveryMs = 10_000
const turnMs = 100
/** A megabyte a second, including the framing. */
const tinyChunks = Buffer.from('1\r\nx\r\n'.repeat(1_666))
const tinyChunksMs = 10
const bytes = Buffer.alloc(16 * 1024 * 1024, 'x')
/** Each stream gets its events in one of these turns, spread over the interval: clients of an application are not synchronized. */
const turns: readonly Set<ServerResponse>[] = Array.from({ length: eventEveryMs / turnMs }, () => new Set())
let streams = 0

const server = createServer((request, response) => {
  request.resume()
  response.on('error', () => undefined)
  const size = /^\/bytes\/(\d+)$/.exec(request.url ?? '')?.[1]
  if (request.url === '/events') openStream(response)
  else if (request.url === '/tiny-chunks') sendTinyChunks(request.socket)
  else if (size !== undefined) response.end(bytes.subarray(0, Number(size)))
  else request.on('end', () => response.end('ok'))
})

function openStream(response: ServerResponse): void {
  const others = turns[streams++ % turns.length]
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
  response.write('data: first\n\n')
  others?.add(response)
  response.on('close', () => others?.delete(response))
}

function sendTinyChunks(socket: Socket): void {
  socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
  const timer = setInterval(() => {
    if (!socket.writableNeedDrain) socket.write(tinyChunks)
  }, tinyChunksMs)
  socket.on('close', () => clearInterval(timer))
}

let turn = 0
setInterval(() => {
  for (const response of turns[turn++ % turns.length] ?? []) response.write('data: next\n\n')
}, turnMs)

server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
})
