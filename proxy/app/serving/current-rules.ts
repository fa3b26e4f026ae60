import type { GatewaySettings } from '../../config/settings.ts'
import type { Rule } from '../../policy.ts'

/** The current rules: none with rate limiting off. */
export function currentRules({ rateLimitingDisabled, rules }: GatewaySettings): readonly Rule[] {
  return rateLimitingDisabled ? [] : rules
}
