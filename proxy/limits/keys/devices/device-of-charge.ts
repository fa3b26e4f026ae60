import type { DeviceOutcome } from '../../../telemetry/telemetry.ts'

/** How a request that counts under a policy with `device` names its account, and whether its device is known there. */
export type DeviceOfCharge = {
  /** The partition key of the account, which differs from the charge's if the device is known. */
  readonly accountKey: string
  /**
   * Method, host and path of the request, and the account as it was spelled; undefined if that is ambiguous, where the request names no
   * account, and where the backend may take it for another than a sign-in.
   */
  readonly account: string | undefined
  /** The backend may take it for another than a sign-in: a header, or a field `_method`, may override the method. */
  readonly mayOverrideMethod?: true
  readonly outcome: DeviceOutcome
  /** The token that a new one takes the place of. */
  readonly replaced?: string
}
