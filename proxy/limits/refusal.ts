import type { Policy } from '../policy.ts'

/** What a refused request is answered in place of the default. */
export type Refusal = {
  readonly status: number
  readonly contentType: string
  readonly body: Buffer
  /** For clients that prefer HTML. */
  readonly html: Buffer | undefined
  /** Name, value, name, value… to add. */
  readonly headers: readonly string[]
}

export type Refusals = {
  /** Of rules without one of their own. */
  readonly everyRule: Refusal | undefined
  /** By the name of the rule. */
  readonly ofRules: ReadonlyMap<string, Refusal>
}

/** @returns undefined for the default */
export function refusalOf({ everyRule, ofRules }: Refusals, policy: Policy | undefined): Refusal | undefined {
  return (policy && ofRules.get(policy.name)) ?? everyRule
}

/** The names of the headers that refusals add, each once. */
export function addedNames({ everyRule, ofRules }: Refusals): string[] {
  const refusals = [...(everyRule ? [everyRule] : []), ...ofRules.values()]
  return [...new Set(refusals.flatMap(({ headers }) => headers.filter((_, index) => index % 2 === 0)))]
}
