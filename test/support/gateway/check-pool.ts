import type { Socket } from 'node:net'
import type { UpstreamConnection } from '../../../proxy/http/upstream/connection.ts'
import { UpstreamPool } from '../../../proxy/http/upstream/pool.ts'

// Loaded into every gateway that tests start (`test/support/gateway/process.ts`). A connection in the pool must be readable, without a
// listener of the exchange before; otherwise the next request on it would wait for a response that nobody reads. If a connection breaks
// this rule, the process exits, and its test fails.

const pool = UpstreamPool.prototype
const onFree = Object.getOwnPropertyDescriptor(pool, 'onFree')?.value as (
  this: UpstreamPool,
  connection: UpstreamConnection,
) => void

pool.onFree = function (connection) {
  const problem = problemOf(connection.socket)
  if (problem !== undefined) {
    process.stderr.write(`upstream pool: ${problem}\n`)
    process.exit(70)
  }
  onFree.call(this, connection)
}

/** One listener that the connection itself adds, and those that Node adds to every socket or TLS socket. */
const maxListeners: Readonly<Record<string, number>> = { data: 1, drain: 0, error: 3, end: 3, close: 3 }

function problemOf(socket: Socket): string | undefined {
  if (socket.isPaused()) return 'a free connection is paused'
  const event = Object.keys(maxListeners).find(
    (name) => socket.listenerCount(name) > (maxListeners[name] ?? 0),
  )
  return event === undefined ? undefined : `a free connection has a listener for '${event}' left`
}
