import { maxDelayMs } from '../../policy.ts'
import type { PolicyState } from '../limiter.ts'

/** Shorter delays are rounding errors of the counters; no request waits for them. */
const MIN_DELAY_MS = 0.01

/**
 * Returns how long a counted request has to wait for its turn, in milliseconds; 0 if it passes at once. A request that waits took more
 * than the bucket held, so `resetMs` is the time until the bucket has refilled the missing units and one more.
 */
export function delayMsOf({ policy, exceeded, remaining, resetMs }: PolicyState): number {
  if (exceeded || remaining > 0 || policy.mode === 'shadow' || maxDelayMs(policy) === 0) return 0
  const delayMs = resetMs - policy.windowMs / policy.quota
  return delayMs < MIN_DELAY_MS ? 0 : delayMs
}
