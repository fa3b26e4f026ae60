import type { Policy } from '../../policy.ts'
import type { Algorithm } from './algorithm.ts'
import { concurrency } from './concurrency/concurrency.ts'
import { fixed } from './fixed/fixed.ts'
import { sliding } from './sliding/sliding.ts'
import { tokenBucket } from './token-bucket/token-bucket.ts'

/** All algorithms, in the order in which settings and documentation name them. */
export const algorithms: readonly Algorithm[] = [fixed, sliding, tokenBucket, concurrency]

const byName = new Map(algorithms.map((algorithm) => [algorithm.name, algorithm]))

export function algorithmOf({ algorithm }: Pick<Policy, 'algorithm'>): Algorithm {
  const found = byName.get(algorithm)
  if (!found) throw new RangeError(`no algorithm is called ${algorithm}`)
  return found
}
