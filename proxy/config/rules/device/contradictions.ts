import { namesAccount } from '../../../limits/keys/devices/accounts.ts'
import type { DevicePolicy, StatusRange } from '../../../policy.ts'
import { partName, singleParts, type PartitionPart } from '../../../policy/partition.ts'

type RuleWithDevice = {
  readonly device?: DevicePolicy | undefined
  readonly key: readonly PartitionPart[]
  readonly countStatus?: readonly StatusRange[] | undefined
  readonly concurrency?: number | undefined
}

/** Why `device` cannot be combined with the other fields of a rule. */
export function mistakesOfDevice({ device, key, countStatus = [], concurrency }: RuleWithDevice): string[] {
  if (!device) return []
  const found: string[] = []
  if (concurrency !== undefined)
    found.push('cannot be combined with concurrency: give it to a rule with requests and window')
  const parts = singleParts(key)
  const unfit = key.find((part) => part.kind !== 'first' && !namesAccount(part) && part.kind !== 'host')
  const own = parts.find((part) => part.kind === 'cookie' && part.name === device.cookie)
  if (!parts.some(namesAccount))
    found.push(`cannot be combined with a key that names no account, unlike ${accountKeys}`)
  else if (own) found.push(`cannot hide ${partName(own)} from the backend, which key has`)
  else if (unfit) found.push(`cannot be combined with ${nameOf(unfit)} in key: ${whyUnfit(unfit)}`)
  const both = device.status.find((one) => countStatus.some((other) => overlaps(one, other)))
  if (both)
    found.push(`names ${nameOfRange(both)} in status, which countStatus takes for a sign-in that failed`)
  return found
}

const accountKeys = 'body:NAME, query:NAME, path:NAME, and header:NAME other than authorization'

function nameOf(part: PartitionPart): string {
  return part.kind === 'first' ? 'first' : partName(part)
}

function whyUnfit({ kind }: PartitionPart): string {
  return kind === 'ip' || kind === 'network'
    ? 'strangers have other addresses than the owner of an account already'
    : 'it says who has signed in, and not who tries to'
}

function overlaps(one: StatusRange, other: StatusRange): boolean {
  return one.first <= other.last && other.first <= one.last
}

function nameOfRange({ first, last }: StatusRange): string {
  return first === last ? String(first) : `${first / 100}xx`
}
