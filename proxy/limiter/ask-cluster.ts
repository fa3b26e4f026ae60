import type { Charge } from './limiter.ts'

/**
 * Sends one command for charges whose counters are all on one node. Its reply is that of `RemoteCounters.ask`, and
 * behind it, where a window slides, the time that was counted.
 */
export type AskNode = (charges: readonly Charge[]) => Promise<readonly unknown[]>

/**
 * Asks a cluster about one request. Counters of one partition key share a hash slot, so a request whose rules count by
 * the same key, which is the rule, is one command and atomic. Where its rules count by different keys (an address here,
 * a header there) their counters may be on different nodes, and no command can decide about both: each part is decided
 * by itself, and where one refuses, what the others have counted is given back. For that moment a client may find less
 * left than there is; more than the quota never passes.
 *
 * @param giveBack takes back one from the charge's counter: whose window had `leftMs` to go, or to which the time
 *   `countedAt` was added
 */
export async function askCluster(
  charges: readonly Charge[],
  askNode: AskNode,
  giveBack: (charge: Charge, leftMs: number, countedAt: unknown) => Promise<unknown>,
): Promise<readonly unknown[]> {
  const parts = [...Map.groupBy(charges, ({ partitionKey }) => partitionKey).values()]
  if (parts.length === 1) return askNode(charges)

  const replies = await Promise.all(parts.map(askNode))
  const refusals = parts.map((part, index) => isRefusal(part, replies[index] ?? []))
  const isRefused = refusals.includes(true)
  const reply: unknown[] = Array.from({ length: 2 * charges.length })
  const givenBack: Promise<unknown>[] = []
  for (const [index, part] of parts.entries()) {
    for (const [at, charge] of part.entries()) {
      let left = replies[index]?.[2 * at]
      const resetMs = replies[index]?.[2 * at + 1]
      if (isRefused && !refusals[index] && isCounted(left) && typeof resetMs === 'number') {
        givenBack.push(giveBack(charge, resetMs, replies[index]?.[2 * part.length]))
        left += 1
      }
      const place = 2 * charges.indexOf(charge)
      reply[place] = left
      reply[place + 1] = resetMs
    }
  }
  // One that fails leaves a count too high by one, which is the side to err on.
  await Promise.allSettled(givenBack)
  return reply
}

function isRefusal(charges: readonly Charge[], reply: readonly unknown[]): boolean {
  return charges.some(({ policy }, at) => policy.mode === 'enforce' && reply[2 * at] === -1)
}

function isCounted(left: unknown): left is number {
  return typeof left === 'number' && left >= 0
}
