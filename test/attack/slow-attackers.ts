import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { parseArgs } from 'node:util'

// A process that keeps slow connections open to a port of this machine, from many loopback addresses: half of them send their head, half
// their body, each at a byte a second. A closed connection is replaced. Prints the number of open connections twice a second until it is
// killed.

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    connections: { type: 'string', default: '0' },
    tls: { type: 'boolean', default: false },
  },
})
const port = Number(values.port)
const wanted = Number(values.connections)
const addresses = 200
/** Connections opened at once, and the interval: 400 a second, of which replacements for evicted connections need half. */
const step = 4
const stepMs = 10

const open = { head: 0, body: 0 }
let opened = 0
let connecting = 0
/**
 * Each connection sends a byte a second. The connections are spread over turns within the second, as those of strangers are. With timers of
 * their own, more and more of them would send at the same time.
 */
const turns: readonly Set<Socket>[] = Array.from({ length: 1_000 / stepMs }, () => new Set())
let turnsDone = 0

function attack(): void {
  const kind = open.head + connecting / 2 < wanted / 2 ? 'head' : 'body'
  const to = { host: '127.0.0.1', port, localAddress: `127.1.${opened++ % addresses}.1` }
  const socket: Socket = values.tls
    ? connectTls({ ...to, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
    : connectTcp(to)
  connecting++
  const due = turns[opened % turns.length]
  socket.on('error', () => undefined)
  socket.resume()
  socket.once(values.tls ? 'secureConnect' : 'connect', () => {
    connecting--
    open[kind]++
    socket.write(
      kind === 'head'
        ? 'GET / HTTP/1.1\r\nHost: a\r\nX-Slow: '
        : 'POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n',
    )
    due?.add(socket)
  })
  socket.on('close', () => {
    if (due?.delete(socket)) open[kind]--
    else connecting--
  })
}

setInterval(() => {
  for (; turnsDone < performance.now() / stepMs; turnsDone++)
    for (const socket of turns[turnsDone % turns.length] ?? []) if (socket.writable) socket.write('x')
  for (let i = 0; i < step && open.head + open.body + connecting < wanted; i++) attack()
}, stepMs)

setInterval(
  () => process.stdout.write(`${JSON.stringify({ open: open.head + open.body, ...open, opened })}\n`),
  500,
)
