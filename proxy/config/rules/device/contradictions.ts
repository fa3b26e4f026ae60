import { namesAccount } from '../../../limits/keys/devices/accounts.ts'
import type { DevicePolicy, StatusRange } from '../../../policy.ts'
import { partName, singleParts, type PartitionPart } from '../../../policy/partition.ts'
import { rangeName } from '../rule-cost.ts'

type RuleWithDevice = {
  readonly device?: DevicePolicy | undefined
  readonly key: readonly PartitionPart[]
  readonly countStatus?: readonly StatusRange[] | undefined
  readonly concurrency?: number | undefined
}

/** Returns why `device` cannot be combined with the other fields of a rule. */
export function mistakesOfDevice({ device, key, countStatus = [], concurrency }: RuleWithDevice): string[] {
  if (!device) return []
  const found: string[] = []
  if (concurrency !== undefined)
    found.push('cannot be combined with concurrency: give it to a rule with requests and window')
  const parts = singleParts(key)
  const unfit = key.find((part) => part.kind !== 'first' && !namesAccount(part) && part.kind !== 'host')
  const own = parts.find((part) => part.kind === 'cookie' && part.name === device.cookie)
  if (!parts.some(namesAccount))
    found.push(`cannot be combined with this key, which names no account: use ${accountKeys}`)
  else if (own)
    found.push(
      `cannot be combined with ${partName(own)} in key: the backend does not get the cookie of device`,
    )
  else if (unfit) found.push(`cannot be combined with ${nameOf(unfit)} in key: ${whyUnfit(unfit)}`)
  const both = device.status.find((one) => countStatus.some((other) => overlaps(one, other)))
  if (both) found.push(`names ${rangeName(both)} in status, which countStatus counts as a failed sign-in`)
  return found
}

const accountKeys = 'body:NAME, query:NAME, path:NAME, or header:NAME other than authorization'

function nameOf(part: PartitionPart): string {
  return part.kind === 'first' ? 'first' : partName(part)
}

function whyUnfit({ kind }: PartitionPart): string {
  return kind === 'ip' || kind === 'network'
    ? 'strangers and the owner of an account have different addresses anyway'
    : 'it says who has signed in, not who tries to sign in'
}

function overlaps(one: StatusRange, other: StatusRange): boolean {
  return one.first <= other.last && other.first <= one.last
}
