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
 * at that time, so the credentials are put there before. Redis keeps a connection whose login is no longer valid.
 */
export type Renewal = {
  /** Puts the current credentials into the options of a client, for its next connection. */
  apply(options: RedisOptions): void
  /** Does the same for clients that the library duplicates from this one, such as those that ask for the slots of a cluster. */
  applyToDuplicates(client: Redis): void
  /**
   * Whether the caller must open a new connection, because an error of Redis says that this one is not logged in, or that it has
   * no right to a command and there are other credentials by now.
   */
  isNeeded(options: RedisOptions, error: unknown): boolean
}

/** @param readCredentials called for each connection; returns the current credentials */
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

/**
 * Makes the reconnect strategy for the sentinel that announces failovers, which has its own client. The library calls the strategy on the
 * options of that client. It renews the credentials in these options, and returns the milliseconds to wait.
 */
export function renewSentinelLogin(address: RedisAddress, readCredentials: ReadCredentials) {
  return function (this: RedisOptions, attempt: number): number {
    const credentials = readCredentials()
    const { sentinelUsername: username, sentinelPassword: password } = credentials
    Object.assign(this, { username, password, ...(address.tls ? { tls: tlsOptions(credentials) } : {}) })
    return retryDelayMs(attempt)
  }
}
