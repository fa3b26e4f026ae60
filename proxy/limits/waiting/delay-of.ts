import { maxDelayMs } from '../../policy.ts'
import type { PolicyState } from '../limiter.ts'

/** Rounding errors of the counters; nobody waits for so little. */
const MIN_DELAY_MS = 0.01

/**
 * How long a counted request has to wait for its turn, in milliseconds; 0 if it passes at once. It took more than the bucket held, so
 * `resetMs` is the time until the bucket has refilled the missing units, and then one more.
 */
export function delayMsOf({ policy, exceeded, remaining, resetMs }: PolicyState): number {
  if (exceeded || remaining > 0 || policy.mode === 'shadow' || maxDelayMs(policy) === 0) return 0
  const delayMs = resetMs - policy.windowMs / policy.quota
  return delayMs < MIN_DELAY_MS ? 0 : delayMs
}
