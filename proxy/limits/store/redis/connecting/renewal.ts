import type { Redis, RedisOptions } from 'ioredis'
import { isDeepStrictEqual } from 'node:util'
import { errorCodeOf } from '../errors.ts'
import {
  loginOptions,
  retryDelayMs,
  sentinelLoginOptions,
  tlsOptions,
  type ReadCredentials,
} from './options.ts'
import type { RedisAddress } from './url.ts'

/**
 * Credentials that are renewed while the process runs. The library makes each connection with the options that its client has
 * at that time, so they are put there before it does. Redis keeps a connection whose login is not valid any more.
 */
export type Renewal = {
  /** Puts the credentials as they are now into the options of a client, for its next connection. */
  apply(options: RedisOptions): void
  /** Does so for the clients that the library makes like this one, such as those that ask for the slots of a cluster. */
  applyToDuplicates(client: Redis): void
  /**
   * Whether an error of Redis says that the connection is not logged in, or has no right to a command although there are
   * other credentials by now: then the caller must open a new connection.
   */
  isNeeded(options: RedisOptions, error: unknown): boolean
}

/** @param readCredentials called for each connection: reads the current ones */
export function createRenewal(address: RedisAddress, readCredentials: ReadCredentials): Renewal {
  const read = (): RedisOptions => {
    const credentials = readCredentials()
    const atSentinels = address.topology === 'sentinel' ? sentinelLoginOptions(address, credentials) : {}
    return { ...loginOptions(address, credentials), ...atSentinels }
  }
  return {
    apply: (options) => void Object.assign(options, read()),
    applyToDuplicates(client) {
      const duplicate = client.duplicate.bind(client)
      client.duplicate = (options) => duplicate({ ...read(), ...options })
    },
    isNeeded({ username, password }, error) {
      const code = errorCodeOf(error)
      if (code === 'NOAUTH') return true
      if (code !== 'NOPERM') return false
      const now = read()
      return !isDeepStrictEqual([username ?? '', password ?? ''], [now.username ?? '', now.password ?? ''])
    },
  }
}

/** Returns when to reconnect to the sentinel that announces failovers, on a client of its own. The library calls it on its options. */
export function renewSentinelLogin(address: RedisAddress, readCredentials: ReadCredentials) {
  return function (this: RedisOptions, attempt: number): number {
    const credentials = readCredentials()
    const { sentinelUsername: username, sentinelPassword: password } = credentials
    Object.assign(this, { username, password, ...(address.tls ? { tls: tlsOptions(credentials) } : {}) })
    return retryDelayMs(attempt)
  }
}
