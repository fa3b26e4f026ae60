import { expect } from 'vitest'
import { curl, type CurlReply } from './curl.ts'
import type { Way } from './stage.ts'

/** A request by curl: its path, and the arguments of curl. */
export type CurlRequest = readonly [path: string, ...args: string[]]

/** Compares each response over a way with the application's direct response, which is requested once. */
export function createComparison(direct: Way, requests: readonly CurlRequest[]): (way: Way) => Promise<void> {
  const replies: Promise<CurlReply>[] = []
  return async (way) => {
    for (const [index, [path, ...args]] of requests.entries()) {
      const expected = await (replies[index] ??= curl(direct, path, args))
      expect.soft(await curl(way, path, args), `${path} ${args.join(' ')}`).toEqual(expected)
    }
  }
}
