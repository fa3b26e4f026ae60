import { describe, expect, test } from 'vitest'
import { runNode } from '../support/gateway/process.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

// Lists of a million entries, in a process that holds and reloads them as a gateway does.

type Figures = {
  readonly entries: readonly number[]
  readonly hits: readonly number[]
  /** Growth after the first reading, and after each of four more. */
  readonly grownMb: readonly number[]
  readonly lookupNs: Readonly<Record<'ten' | 'million' | 'parse', number>>
  /** Whether the process had to wait for a core, as on a busy machine. */
  readonly hadToWait: boolean
  readonly longestTurn: Readonly<Record<'quiet' | 'reload', { readonly cpuMs: number }>>
}

const MAX_LOOKUP_NS = 1000
/** Maximum ratio of the time for a lookup among a million entries to one among ten entries, both including reading the address. */
const MAX_TIMES_TEN = 3

async function measure(family: string): Promise<Figures> {
  const args = [makeTemporaryDirectory(), family, String(MAX_LOOKUP_NS), String(MAX_TIMES_TEN)]
  const { status, stdout, stderr } = await runNode('test/support/load/large-lists-process.ts', {}, args, {})
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return JSON.parse(stdout) as Figures
}

// An entry takes 8 or 18 bytes. The rest is memory that threads leave behind.
const MAX_MB = 40

describe.each(['ipv4', 'ipv6'])('a million entries of %s', { timeout: 300_000 }, (family) => {
  test('large lists take little memory, are searched fast, and are reloaded while the process works', async () => {
    const { entries, hits, grownMb, lookupNs, hadToWait, longestTurn } = await measure(family)
    expect(entries).toEqual([10, 1_000_000])
    // Half of the addresses looked up are in the first list, the other half in the list after the first reload.
    expect(hits).toEqual([2048, 2048])

    expect(Math.max(...grownMb), `grown by ${grownMb.join(', ')} MB`).toBeLessThan(MAX_MB)
    const [first = NaN, , , , last = NaN] = grownMb
    expect(last - first, `grown by ${grownMb.join(', ')} MB`).toBeLessThan(16)

    const { ten, million, parse } = lookupNs
    expect(million).toBeLessThan(MAX_LOOKUP_NS)
    // Including reading the address, a lookup costs about as much as in a short list, unless other processes occupy the caches of the
    // processor.
    const ratio = (million + parse) / (ten + parse)
    if (hadToWait) console.log(`a lookup takes ${ratio} times as long, not judged on a busy machine`)
    else expect(ratio, JSON.stringify(lookupNs)).toBeLessThan(MAX_TIMES_TEN)

    // In CPU time, which does not depend on other load.
    expect(longestTurn.reload.cpuMs, JSON.stringify(longestTurn)).toBeLessThan(20)
  })
})
