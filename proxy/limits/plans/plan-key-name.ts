import type { Policy } from '../../policy.ts'
import { partName } from '../../policy/partition.ts'

const names = new WeakMap<object, string>()

/**
 * The name of the key that a plan is set for, such as `header:x-api-key`: parts joined by commas, the parts of `first` by `|`. The same
 * value under another key is another client: a plan set for `jwt:sub` must not be claimed with a header.
 */
export function planKeyName({ partition }: Pick<Policy, 'partition'>): string {
  const known = names.get(partition)
  if (known !== undefined) return known
  const parts = partition.map((part) =>
    part.kind === 'first' ? part.of.map(partName).join('|') : partName(part),
  )
  const name = parts.join(',')
  names.set(partition, name)
  return name
}
