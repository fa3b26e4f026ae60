// For `AsyncDisposable`: without this the type of a gateway would be `any` in projects whose `lib` does not have it.
/// <reference lib="esnext.disposable" preserve="true" />
import type { SluiceClock } from './clock.ts'
import type { SluiceYaml } from '../../config/written/sluice-yaml.ts'

/** The variables that `secrets` may have. `REDIS_URL` is one because it may have a password. */
export type SecretName = 'DEVICE_SECRET' | 'WEBHOOK_SECRET' | 'REDIS_URL' | 'ADMIN_TOKEN'

/** What `startSluice` takes. */
export type SluiceOptions = {
  /** The backend: `http://127.0.0.1:5000`. */
  readonly upstream: string
  /** The table of limits, in the form of `limits` in `sluice.yaml`. Default: the built-in table. */
  readonly limits?: SluiceYaml['limits']
  /** The clock of the limits, from `createClock()`, for counters in memory only. Default: the real time. */
  readonly clock?: SluiceClock
  /** Secrets, which are variables and have no place in `sluice.yaml`. */
  readonly secrets?: Readonly<Partial<Record<SecretName, string>>>
  /** Further settings by their names in `sluice.yaml`. Nothing is read from the environment or from a file. */
  readonly settings?: Omit<SluiceYaml, 'upstream' | 'limits' | 'workers'>
}

/** A gateway in this process. */
export type Sluice = AsyncDisposable & {
  /** The URL for clients: `http://127.0.0.1:PORT`, `https:` with a certificate. */
  readonly url: string
  /** The port of `url`. */
  readonly port: number
  /** The URL of the admin listener, with health, metrics and the operators' interface. */
  readonly adminUrl: string
  /**
   * Clears all counters, bans and overrides.
   *
   * @throws Error if the counters are in Redis, where they may not belong to this gateway alone
   */
  reset(): Promise<void>
  /** Ends the requests in flight, and closes both ports. */
  close(): Promise<void>
}
