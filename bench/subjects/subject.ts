import type { Running } from '../measure/processes.ts'

/** The parameters with which a subject is started. */
export type Setup = {
  readonly port: number
  readonly backendPort: number
  /** The Redis for subjects that can use it; undefined to keep counters in the process. */
  readonly redisUrl: string | undefined
  /** PEM files of the certificate for clients; `pair` contains both certificate and key. Undefined without TLS. */
  readonly tls: { readonly cert: string; readonly key: string; readonly pair: string } | undefined
  /** Connections that the load opens. */
  readonly connections: number
  /** A directory for configuration and other files, removed at the end. */
  readonly directory: string
  /** For a process of Node: options before the script, such as `--cpu-prof`. */
  readonly nodeArgs?: readonly string[]
}

/**
 * A program that is measured. Each is configured as an expert would: it adds the usual forwarded fields, reads the client's address from
 * `X-Forwarded-For` if the peer is on loopback, keeps connections alive on both sides, logs nothing per request, and does its work in one
 * process. `/limited` has a limit that is never reached, `/refused` allows one request an hour, and no other path has a limit.
 */
export type Subject = {
  readonly name: string
  readonly kind: 'sluice' | 'floor' | 'node' | 'system'
  /** The reason why it cannot be measured here; undefined if it can. */
  missing(): string | undefined
  start(setup: Setup): Promise<Running>
}
