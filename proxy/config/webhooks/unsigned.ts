import { problemAt, type PlaceOf, type Problem } from '../../../shared/settings/problems.ts'
import type { Webhook } from '../../telemetry/webhooks/webhook-event.ts'

/** Finds webhooks without a secret. A receiver cannot distinguish an unsigned message from a forged one. */
export function findUnsigned(
  webhooks: readonly Webhook[] | undefined,
  { webhookSecret }: { readonly webhookSecret?: string | undefined },
  isSecretRead: boolean,
  placeOf: PlaceOf,
): Problem[] {
  // An invalid secret is reported elsewhere.
  if (!webhooks || webhooks.length === 0 || webhookSecret !== undefined || !isSecretRead) return []
  return [problemAt(placeOf(['webhooks']), 'needs WEBHOOK_SECRET in the environment, which signs them')]
}
