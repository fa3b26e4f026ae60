import { problemAt, type Place, type Problem } from '../../../shared/settings/problems.ts'
import { includesStatus, type Rule } from '../../policy.ts'
import type { PlaceOfRule } from './table.ts'

/** Finds rules with `device` if `DEVICE_SECRET` is not set, because anybody could forge their cookies. */
export function findWithoutSecret(
  rules: readonly Rule[] = [],
  values: { readonly deviceSecret?: readonly string[] | undefined },
  placeOf: PlaceOfRule,
): Problem[] {
  // An invalid secret is reported elsewhere.
  if (values.deviceSecret !== undefined || !('deviceSecret' in values)) return []
  const index = rules.findIndex(({ policy }) => policy.device !== undefined)
  if (index === -1) return []
  const text = 'needs DEVICE_SECRET in the environment (or DEVICE_SECRET_FILE), which signs its cookies'
  return [problemAt(placeOf(index, 'device'), text)]
}

/**
 * Warns of rules that also recognize devices by responses to requests other than sign-ins. Any such request that succeeds and names an
 * account, such as a search with an added field, makes its client a known device of that account.
 */
export function warnOfSharedPaths(rules: readonly Rule[], placeOf: PlaceOfRule): string[] {
  return [...rules.entries()].flatMap(([index, { policy, match }]) => {
    const { device } = policy
    if (!device || !usualStatuses.some((status) => includesStatus(device.status, status))) return []
    const shared = match.find(({ path }) => servesOtherForms(path))
    if (!shared) return []
    const what = `any request to ${shared.path} that succeeds and names an account can make its client a known device of that account`
    return [`${placeOf(index, 'device').label}: ${what}; limit match to the paths of sign-ins`]
  })
}

/** The statuses with which services answer other forms. A rule may name a status that only its sign-in sends. */
const usualStatuses = [200, 201, 204, 302, 303]

function servesOtherForms(path: string): boolean {
  return path === '/' || path.endsWith('/*') || path.endsWith('/index.php')
}

/** Warns of a secret without a rule that uses it. */
export function warnOfIdleSecret(
  rules: readonly Rule[],
  { deviceSecret }: { readonly deviceSecret?: readonly string[] | undefined },
  { label }: Place,
): string[] {
  if (deviceSecret === undefined || rules.some(({ policy }) => policy.device)) return []
  return [`${label}: has no effect, as no rule has device`]
}
