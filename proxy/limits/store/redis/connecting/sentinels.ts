import { SentinelConnector, type Redis, type RedisOptions, type SentinelConnectionOptions } from 'ioredis'

/** Collects the reasons why sentinels have not named the master. */
export type SentinelReasons = {
  /** The connector with which the library asks the sentinels. */
  readonly Connector: new (options: unknown) => SentinelConnector
  /** Listens to a client that uses this connector. */
  listen(server: Redis): void
  /**
   * Returns the error to log for an error of this client; undefined if it adds nothing. The library reports "All sentinels are
   * unreachable" even after one of them has named the master, and reports a refused connection merely as closed.
   */
  explain(problem: Error): Error | undefined
}

type Place = { readonly host?: string | undefined; readonly port?: number | undefined }
/** A private field of the library. */
type Dialling = { connectToSentinel(sentinel: Place, options?: RedisOptions): Redis }

/** Makes the connector of one client, and the record of its sentinels' problems. */
export function createSentinelReasons(): SentinelReasons {
  /** By host and port, the reason why each sentinel could not be asked, since a sentinel last named the master. */
  const reasons = new Map<string, string>()
  /** By host and port, the error of the last connection to each sentinel. */
  const problems = new Map<string, string>()

  class ReportingConnector extends SentinelConnector {
    constructor(options: unknown) {
      super(options as SentinelConnectionOptions)
      const own = this as unknown as Dialling
      const dial = own.connectToSentinel.bind(this)
      own.connectToSentinel = (sentinel, options) => {
        const place = `${sentinel.host}:${sentinel.port}`
        problems.delete(place)
        const client = dial(sentinel, options)
        client.once('error', ({ message }: Error) => void problems.set(place, message))
        return client
      }
    }
  }

  return {
    Connector: ReportingConnector,
    listen(server) {
      server.on('sentinelError', ({ message }: Error) => {
        const [, place = '', reason = 'it knows no master of this name'] = FAILED.exec(message) ?? []
        reasons.set(
          place,
          reason === CLOSED ? (problems.get(place) ?? reason) : (WORDS.get(reason) ?? reason),
        )
      })
      // A sentinel has named the master, and the client has connected to it, or tried to.
      server.on('connect', () => reasons.clear())
      server.on('close', () => reasons.clear())
    },
    explain(problem) {
      if (!problem.message.startsWith('All sentinels are unreachable')) return problem
      if (reasons.size === 0) return undefined
      const replies = [...reasons].sort().map(([place, reason]) => `sentinel ${place}: ${reason}`)
      reasons.clear()
      return new Error(replies.join('; '))
    },
  }
}

/** The library's wording, and then the sentinel's reply. */
const FAILED =
  /^(?:failed to connect to|connected to) sentinel (\S+) (?:because (.*)|successfully, but got an invalid reply: null)$/s
const CLOSED = 'Connection is closed.'
const WORDS = new Map([['Command timed out', 'no answer in time']])
