import { problemAt, type Place, type Problem } from '../../../shared/settings/problems.ts'
import type { Rule } from '../../policy.ts'
import type { PlaceOfRule } from './table.ts'

/** Finds rules that know devices where there is no secret: anybody could make their cookies. */
export function findWithoutSecret(
  rules: readonly Rule[] = [],
  values: { readonly deviceSecret?: readonly string[] | undefined },
  placeOf: PlaceOfRule,
): Problem[] {
  // One that is wrong by itself is reported as such.
  if (values.deviceSecret !== undefined || !('deviceSecret' in values)) return []
  const index = rules.findIndex(({ policy }) => policy.device !== undefined)
  if (index === -1) return []
  const text =
    'needs DEVICE_SECRET in the environment (or DEVICE_SECRET_FILE), with which its cookies are made'
  return [problemAt(placeOf(index, 'device'), text)]
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
