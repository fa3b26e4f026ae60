import { z } from 'zod'
import { nearestWord } from '../../../shared/settings/did-you-mean.ts'
import type { Kind } from '../../../shared/settings/table.ts'
import type { Policy, Rule } from '../../policy.ts'

const needs = 'a time zone such as Europe/Berlin or UTC'

/** A time zone by its name in the IANA database. */
export const timezone: Kind<string> = {
  needs,
  schema: z
    .string(`needs ${needs}`)
    .refine(isTimezone, { error: ({ input }) => `needs ${needs}${hintFor(String(input))}` }),
}

function isTimezone(name: string): boolean {
  // The default. Without this check, Node would load its locale data: 6 MB of memory.
  if (name === 'UTC') return true
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

/** Suggests the zone that is probably meant, for texts such as `Berlin`, `Europe/Berln` and `europe-berlin`. */
function hintFor(written: string): string {
  const names = Intl.supportedValuesOf('timeZone')
  const plain = (name: string): string => name.toLowerCase().replace(/[\s_-]+/g, '_')
  const city = (name: string): string => plain(name.slice(name.lastIndexOf('/') + 1))
  const near = names.find((name) => city(name) === plain(written)) ?? nearestWord(written, names)
  return near === undefined ? '' : `, did you mean ${near}?`
}

/** Sets the table's time zone in rules that have a calendar window but no time zone of their own. */
export function withTimezone(rules: readonly Rule[], timezone: string): readonly Rule[] {
  const withZone = (policy: Policy): Policy =>
    policy.calendar && policy.calendar.timezone === undefined
      ? { ...policy, calendar: { ...policy.calendar, timezone } }
      : policy
  if (!rules.some(({ policy }) => policy.calendar)) return rules
  return rules.map((rule) => ({
    ...rule,
    policy: withZone(rule.policy),
    ...(rule.overrides && {
      overrides: rule.overrides.map((override) => ({ ...override, policy: withZone(override.policy) })),
    }),
  }))
}
