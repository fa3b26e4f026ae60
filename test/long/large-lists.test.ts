import { describe, expect, test } from 'vitest'
import { runNode } from '../support/gateway/process.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

// Lists of a million entries, in a process of their own that holds and reloads them as a gateway does.

type Figures = {
  readonly entries: readonly number[]
  readonly hits: readonly number[]
  /** By the first reading, and by each of four more. */
  readonly grownMb: readonly number[]
  readonly lookupNs: Readonly<Record<'ten' | 'million' | 'parse', number>>
  /** Whether the process had to wait for a core, as on a machine that is busy with something else. */
  readonly hadToWait: boolean
  readonly longestTurn: Readonly<Record<'quiet' | 'reload', { readonly cpuMs: number }>>
}

const MAX_LOOKUP_NS = 1000
/** What a lookup takes in a list of a million, with the address read, in terms of what it takes in one of ten. */
const MAX_TIMES_TEN = 3

async function measure(family: string): Promise<Figures> {
  const args = [makeTemporaryDirectory(), family, String(MAX_LOOKUP_NS), String(MAX_TIMES_TEN)]
  const { status, stdout, stderr } = await runNode('test/support/load/large-lists-process.ts', {}, args, {})
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return JSON.parse(stdout) as Figures
}

// An entry of these has 8 or 18 bytes. The rest is what threads leave behind.
const MAX_MB = 40

describe.each(['ipv4', 'ipv6'])('a million entries of %s', { timeout: 300_000 }, (family) => {
  test('large lists take little memory, are searched fast, and are reloaded while the process works', async () => {
    const { entries, hits, grownMb, lookupNs, hadToWait, longestTurn } = await measure(family)
    expect(entries).toEqual([10, 1_000_000])
    // Half of the addresses that are looked up are of the first list, half of the one after the first reload.
    expect(hits).toEqual([2048, 2048])

    expect(Math.max(...grownMb), `grown by ${grownMb.join(', ')} MB`).toBeLessThan(MAX_MB)
    const [first = NaN, , , , last = NaN] = grownMb
    expect(last - first, `grown by ${grownMb.join(', ')} MB`).toBeLessThan(16)

    const { ten, million, parse } = lookupNs
    expect(million).toBeLessThan(MAX_LOOKUP_NS)
    // With the address read, which comes before, it costs what it costs in a short list, if the caches of the processor are not taken up
    // by other processes.
    const ratio = (million + parse) / (ten + parse)
    if (hadToWait) console.log(`a lookup takes ${ratio} times as long, not judged on a busy machine`)
    else expect(ratio, JSON.stringify(lookupNs)).toBeLessThan(MAX_TIMES_TEN)

    // By its CPU, which does not hang on what else the machine does.
    expect(longestTurn.reload.cpuMs, JSON.stringify(longestTurn)).toBeLessThan(20)
  })
})
