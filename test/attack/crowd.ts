import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { parseArgs } from 'node:util'

const tickMs = 10

const { values } = parseArgs({
  strict: false,
  options: {
    port: { type: 'string', default: '0' },
    connections: { type: 'string', default: '0' },
    /** How many addresses of loopback they come from: 127.0.0.1 and those after it. */
    addresses: { type: 'string', default: '1' },
    'per-second': { type: 'string', default: '400' },
    tls: { type: 'boolean', default: false },
  },
})

/** What the connections of a crowd have come to; each kind of attack adds what it counts itself. */
export type CrowdReport = {
  /** Connections that are open now. */
  readonly open: number
  /** The connections opened in all: more than are open if the proxy has closed some. */
  readonly opened: number
}

/**
 * Keeps as many connections open as the command line says, and opens another for each that is closed, as an attacker
 * does. Prints a line of JSON twice a second, until the process is killed.
 *
 * @param begin called for each connection once it can be written to
 * @param count what to add to the report
 */
export function keepCrowd(
  begin: (socket: Socket, index: number) => void,
  count: () => Readonly<Record<string, number>> = () => ({}),
  { alpn = 'http/1.1', paused = false } = {},
): void {
  const wanted = Number(values.connections)
  const perTick = (Number(values['per-second']) * tickMs) / 1_000
  let attempts = 0
  let pending = 0
  let open = 0
  let opened = 0
  let due = 0

  const openOne = (): void => {
    const index = attempts++
    const localAddress = `127.0.0.${1 + (index % Number(values.addresses))}`
    const to = { host: '127.0.0.1', port: Number(values.port), localAddress }
    const socket = values.tls
      ? connectTls({ ...to, rejectUnauthorized: false, ALPNProtocols: [alpn] })
      : connectTcp(to)
    if (paused) socket.pause()
    pending++
    let connected = false
    socket.on('error', () => undefined)
    socket.once(values.tls ? 'secureConnect' : 'connect', () => {
      connected = true
      pending--
      open++
      opened++
      begin(socket, index)
    })
    socket.once('close', () => {
      if (connected) open--
      else pending--
    })
  }

  setInterval(() => {
    // Unused shares are not saved up: evicted clients do not all return at once.
    for (due = Math.min(due + perTick, perTick + 1); due >= 1; due--) if (open + pending < wanted) openOne()
  }, tickMs)
  const report = (): CrowdReport => ({ open, opened, ...count() })
  setInterval(() => process.stdout.write(`${JSON.stringify(report())}\n`), 500)
}
