/** A server that speaks the Redis protocol, and the suite of Debian that packages it. */
export type Engine = {
  /** The name on the command line. */
  readonly name: string
  readonly suite: string
  readonly package: 'redis-server' | 'valkey-server'
}

/** The oldest and the newest engines that Debian's suites have, and the releases between them. */
export const engines: readonly Engine[] = [
  { name: 'redis-6.0', suite: 'bullseye', package: 'redis-server' },
  { name: 'redis-7.0', suite: 'bookworm', package: 'redis-server' },
  { name: 'redis-8.0', suite: 'sid', package: 'redis-server' },
  { name: 'valkey-8.1', suite: 'trixie', package: 'valkey-server' },
  { name: 'valkey-9.1', suite: 'sid', package: 'valkey-server' },
]
