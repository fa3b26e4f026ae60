import type { Policy } from '../../policy.ts'
import { partName } from '../../policy/partition.ts'

const names = new WeakMap<object, string>()

/**
 * The key by which clients have their plan, such as `header:x-api-key`: parts with a comma between them, those of `first` with `|`. The
 * same value of another key is another client: a plan set for `jwt:sub` is not for anybody to claim in a header.
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
