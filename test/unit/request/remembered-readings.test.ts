import { expect, test } from 'vitest'
import { readTarget, type Target, type TargetOptions } from '../../../proxy/request/target/target.ts'

/*
 * The attack: over HTTP/2 a client sends a path once, and then refers to it by its index in the HPACK table. A request of 15 bytes with a
 * path of 4 KB took 4 ms to refuse, as if all of its bytes had been sent.
 */

/** A path that is refused for its number of readings, after the maximum work for a path. */
function endless(start: string): string {
  return `/${start}${';/'.repeat(1900)}%252e%252e/a;b//c%2f..%5c&%3fx;a.php/b.c`
}

const manyReadings = '/a;b//c%2fd/e.tar.gz'

/** Reads a path often enough that it is cached: of texts that follow many others, one in eight is. */
function readOften(path: string, options?: TargetOptions): Target | string {
  for (let i = 0; i < 15; i++) readTarget('POST', path, options)
  return readTarget('POST', path, options)
}

function cpuMs(paths: readonly string[]): number {
  const before = process.threadCpuUsage()
  for (const path of paths) expect(readTarget('POST', path)).toBe('the path can be read in too many ways')
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

test('a path that is named again costs a tenth of the first time at most', () => {
  const count = 30
  cpuMs(Array.from({ length: 5 }, (_, i) => endless(`warm-up-${i}`)))
  const first = cpuMs(Array.from({ length: count }, (_, i) => endless(`other-${i}`)))
  const same = endless('same')
  readOften(same)
  expect(cpuMs(Array.from({ length: count }, () => same))).toBeLessThan(first / 10)
})

test('what a path was read as is remembered', () => {
  const [one, other] = [readOften(manyReadings), readTarget('POST', manyReadings)]
  expect(one).toEqual(other)
  if (typeof one === 'string' || typeof other === 'string') throw new Error('refused')
  expect(one.otherMatchPaths.length).toBeGreaterThan(2)
  expect(one.otherMatchPaths).toBe(other.otherMatchPaths)
})

test('a path that is read in another way has readings of its own', () => {
  const climbing = '/x/../a;b//c.json'
  const asSent = { headers: {}, isForwardedAsSent: true }
  const read = (): unknown[] => [
    readTarget('POST', climbing),
    readTarget('GET', climbing),
    readTarget('POST', climbing, asSent),
    readTarget('POST', '/a;b//c.json'),
  ]
  const first = read()
  for (let i = 0; i < 16; i++) expect(read()).toEqual(first)
  const [post, get, sent, resolved] = first.map((target) => new Set(readingsOf(target)))
  expect(post).toEqual(resolved)
  expect(get?.size).toBeLessThan(post?.size ?? 0)
  expect(sent?.size).toBeGreaterThan(post?.size ?? 0)
})

function readingsOf(target: unknown): readonly string[] {
  const { matchPath, otherMatchPaths } = target as Target
  return [matchPath, ...otherMatchPaths]
}
