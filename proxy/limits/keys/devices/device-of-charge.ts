import type { DeviceOutcome } from '../../../telemetry/telemetry.ts'

/** The account that a request names under a policy with `device`, and whether its device is known for this account. */
export type DeviceOfCharge = {
  /** The partition key of the account, which differs from the charge's if the device is known. */
  readonly accountKey: string
  /**
   * The method, host and path of the request, and the account as spelled; undefined if the account is ambiguous or missing, or if the
   * backend may not treat the request as a sign-in.
   */
  readonly account: string | undefined
  /** The backend may not treat the request as a sign-in: a header or a field `_method` may override the method. */
  readonly mayOverrideMethod?: true
  readonly outcome: DeviceOutcome
  /** The token that a new token replaces. */
  readonly replaced?: string
}
