import { createServer, type AddressInfo, type Socket } from 'node:net'
import { BackendConnection } from './backend-connection.ts'
import type { Exchange } from './plan.ts'

/** One arrival of a request at the backend. */
export type Attempt = {
  readonly method: string
  readonly connection: number
  /** Whether the connection has carried or waited for a request before, so that the gateway may find it closing. */
  readonly onReused: boolean
  /** Whether the backend had already ended the connection, so that it does not answer. */
  readonly tooLate: boolean
  uploadBytes: number
  /** Whether the request's end has arrived. */
  whole: boolean
  /** Whether the gateway closed the connection before the whole response was sent. */
  cutOff: boolean
}

/** Answers requests as their exchanges say, and records them. */
export type PlannedBackend = {
  readonly url: string
  /** The number of the gateway's open connections. */
  readonly openConnections: number
  /** Sets the exchanges whose requests will arrive, and forgets the earlier ones. */
  expect(exchanges: readonly Exchange[]): void
  attemptsOf(id: number): readonly Attempt[]
  /** Returns, and then forgets, the faults in what the gateway sent on all connections since the last call. */
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
