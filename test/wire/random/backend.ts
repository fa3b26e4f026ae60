import { createServer, type AddressInfo, type Socket } from 'node:net'
import { BackendConnection } from './backend-connection.ts'
import type { Exchange } from './plan.ts'

/** One time that a request has arrived at the backend. */
export type Attempt = {
  readonly method: string
  readonly connection: number
  /** The connection has carried another request before, or has waited for one: a gateway may find it closing. */
  readonly onReused: boolean
  /** The backend had ended the connection already, and does not answer. */
  readonly tooLate: boolean
  uploadBytes: number
  /** The request's end has arrived. */
  whole: boolean
  /** The connection was closed by the gateway before the answer was out. */
  cutOff: boolean
}

/** Serves requests as their exchanges say, and keeps what it saw of them. */
export type PlannedBackend = {
  readonly url: string
  /** Connections of the gateway that are open. */
  readonly openConnections: number
  /** Makes the exchanges known whose requests will come, and forgets those before. */
  expect(exchanges: readonly Exchange[]): void
  attemptsOf(id: number): readonly Attempt[]
  /** What no gateway may send, of all connections since it was last asked. */
  takeFaults(): string[]
  close(): Promise<void>
}

export async function startPlannedBackend(): Promise<PlannedBackend> {
  const sockets = new Set<Socket>()
  let exchanges: ReadonlyMap<number, Exchange> = new Map()
  const attempts = new Map<number, Attempt[]>()
  let faults: string[] = []
  let held: (() => void)[] = []
  let connections = 0

  const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    new BackendConnection(socket, {
      number: ++connections,
      exchangeOf: (id) => exchanges.get(id),
      note(id, attempt) {
        const before = attempts.get(id)
        if (before) before.push(attempt)
        else attempts.set(id, [attempt])
      },
      fault: (text) => void faults.push(text),
      hold: (count) =>
        new Promise((resolve) => {
          held.push(resolve)
          if (held.length < count) return
          for (const release of held) release()
          held = []
        }),
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  return {
    url: `http://127.0.0.1:${port}`,
    get openConnections() {
      return sockets.size
    },
    expect(next) {
      exchanges = new Map(next.map((exchange) => [exchange.id, exchange]))
      attempts.clear()
      held = []
    },
    attemptsOf: (id) => attempts.get(id) ?? [],
    takeFaults() {
      const taken = faults
      faults = []
      return taken
    },
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
}
