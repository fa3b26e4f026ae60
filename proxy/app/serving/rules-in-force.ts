import type { GatewaySettings } from '../../config/settings.ts'
import type { Rule } from '../../policy.ts'

/** The rules in force: none with rate limiting off. */
export function rulesInForce({ rateLimitingDisabled, rules }: GatewaySettings): readonly Rule[] {
  return rateLimitingDisabled ? [] : rules
}
