/** What a rule allows clients by the name of their plan. Clients without one, or with a plan of another name, have the rule's own quota. */
export type Plans = {
  /** The claim of a verified token that names the plan. */
  readonly claim: string
  /** By the name of the plan. */
  readonly quotas: Readonly<Record<string, number>>
}

/** Names that plans cannot have, as metrics have them: for clients without a plan, and with one that the rule does not have. */
export const OTHER_PLANS = ['none', 'unknown'] as const

/** Where the plan of a client is read, in the syntax of the limits table. */
export function planSource({ claim }: Plans): string {
  return `jwt:${claim}`
}
