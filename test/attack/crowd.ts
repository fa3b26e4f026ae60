import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { parseArgs } from 'node:util'

const tickMs = 10

const { values } = parseArgs({
  strict: false,
  options: {
    port: { type: 'string', default: '0' },
    connections: { type: 'string', default: '0' },
    /** The number of loopback addresses that the connections come from: 127.0.0.1 and the following ones. */
    addresses: { type: 'string', default: '1' },
    'per-second': { type: 'string', default: '400' },
    tls: { type: 'boolean', default: false },
  },
})

/** The state of a crowd's connections. Each kind of attack adds its own counts. */
export type CrowdReport = {
  /** The number of open connections. */
  readonly open: number
  /** The total number of connections opened. It exceeds `open` if the proxy has closed some. */
  readonly opened: number
}

/**
 * Keeps as many connections open as the command line says, and replaces each one that is closed, as an attacker does. Prints a line of JSON
 * twice a second until the process is killed.
 *
 * @param begin called for each connection once it is writable
 * @param count returns additions to the report
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
