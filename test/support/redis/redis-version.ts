import { execFileSync } from 'node:child_process'
import { givenRedisBinary } from './redis-server.ts'

/**
 * Whether the server that the tests start has the features of a Redis version. It may be older only if `REDIS_SERVER` names it. Valkey has
 * all features of Redis 7.2.
 *
 * @param version such as 6.2
 */
export function isSince(version: number): boolean {
  if (givenRedisBinary === undefined) return true
  const output = execFileSync(givenRedisBinary, ['--version'], { encoding: 'utf8' })
  const [, given = ''] = /\bv=(\d+\.\d+)/.exec(output) ?? []
  return Number(given) >= version
}
