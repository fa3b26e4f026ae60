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
/** Private methods of the library. */
type Dialling = {
  connectToSentinel(sentinel: Place, options?: RedisOptions): Redis
  /** Listens to the sentinel that the iterator returned last, and no longer to the one before. */
  initFailoverDetector(): Promise<void>
}

/** How often the connection to the sentinel that is listened to may fail in a row. */
const FAILURES_TO_GO_ON = 5

/** Learns of failovers for as long as any sentinel can be reached. */
class ListeningConnector extends SentinelConnector {
  /**
   * Listens to the next sentinel if the one of this client is away. If the master is away too, the sentinels are asked for a new one
   * anyway, and the one that names it is listened to.
   */
  protected goOnAfterFailures(client: Redis): void {
    let failures = 0
    client.on('ready', () => (failures = 0))
    client.on('reconnecting', () => {
      failures += 1
      const isConnected = !this.stream.destroyed && !this.stream.connecting
      if (failures < FAILURES_TO_GO_ON || !isConnected) return
      // The sentinel that is listened to has the first place.
      this.sentinelIterator.next()
      this.sentinelIterator.next()
      void (this as unknown as Dialling).initFailoverDetector()
    })
  }
}

/**
 * Makes the connector of one client, and the record of its sentinels' problems.
 *
 * @param atReplica called when the server that a sentinel has named reports that it is not a master
 */
export function createSentinelReasons(atReplica: () => void): SentinelReasons {
  /** By host and port, the reason why each sentinel could not be asked, since a sentinel last named the master. */
  const reasons = new Map<string, string>()
  /** By host and port, the error of the last connection to each sentinel. */
  const problems = new Map<string, string>()

  class ReportingConnector extends ListeningConnector {
    constructor(options: unknown) {
      super(options as SentinelConnectionOptions)
      const own = this as unknown as Dialling
      const dial = own.connectToSentinel.bind(this)
      own.connectToSentinel = (sentinel, options) => {
        const place = `${sentinel.host}:${sentinel.port}`
        problems.delete(place)
        const client = dial(sentinel, options)
        client.on('error', ({ message }: Error) => void problems.set(place, message))
        // Only a client that listens to a sentinel has options of its own.
        if (options) this.goOnAfterFailures(client)
        return client
      }
    }

    override check(info: { role?: string }): boolean {
      const isMaster = super.check(info)
      if (!isMaster) atReplica()
      return isMaster
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
