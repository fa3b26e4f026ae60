import { setTimeout as sleep } from 'node:timers/promises'

/** Milliseconds between two requests of a client, which leave the cores to the processes under test. */
const PAUSE_MS = 10

/** Starts four clients that send requests one after another, some on new connections and some on a kept one. */
export function startLoad(url: string): { end(): Promise<{ statuses: string[]; isLong: boolean }> } {
  const outcomes = new Map<string, number>()
  let isOver = false
  const work = async (headers: Record<string, string>): Promise<void> => {
    while (!isOver) {
      const outcome = await fetch(url, { headers }).then(
        async (response) => (await response.arrayBuffer(), String(response.status)),
        (error: unknown) => String((error as Error).cause ?? error),
      )
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      await sleep(PAUSE_MS)
    }
  }
  const workers = Array.from({ length: 4 }, (_, i) => work(i < 2 ? { connection: 'close' } : {}))
  return {
    async end() {
      isOver = true
      await Promise.all(workers)
      return { statuses: [...outcomes.keys()], isLong: (outcomes.get('200') ?? 0) > 100 }
    },
  }
}
