import type { Running } from '../measure/processes.ts'

/** What a subject is started with. */
export type Setup = {
  readonly port: number
  readonly backendPort: number
  /** Where those that can keep their counters; in the process where undefined. */
  readonly redisUrl: string | undefined
  /** PEM files of the certificate for clients, `pair` with both; undefined without TLS. */
  readonly tls: { readonly cert: string; readonly key: string; readonly pair: string } | undefined
  /** Connections that the load opens. */
  readonly connections: number
  /** For configuration and other files; removed at the end. */
  readonly directory: string
  /** For a process of Node: options before the script, such as `--cpu-prof`. */
  readonly nodeArgs?: readonly string[]
}

/**
 * Something that is measured. Each is configured as somebody would who knows it well: the usual forwarded fields are
 * added, the client's address is read from `X-Forwarded-For` where the peer is on loopback, connections are kept alive
 * on both sides, nothing is logged for a request, and one process does the work. `/limited` has a limit that is never
 * reached, `/refused` one request in an hour, and no other path has any.
 */
export type Subject = {
  readonly name: string
  readonly kind: 'sluice' | 'floor' | 'node' | 'system'
  /** Why it cannot be measured here, or undefined. */
  missing(): string | undefined
  start(setup: Setup): Promise<Running>
}
