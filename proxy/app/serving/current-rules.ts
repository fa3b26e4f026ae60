import type { GatewaySettings } from '../../config/settings.ts'
import type { Rule } from '../../policy.ts'

/** Returns the current rules; empty if rate limiting is disabled. */
export function currentRules({ rateLimitingDisabled, rules }: GatewaySettings): readonly Rule[] {
  return rateLimitingDisabled ? [] : rules
}
