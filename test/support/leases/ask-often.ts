import { setTimeout as sleep } from 'node:timers/promises'
import type { Charge, Decision, Limiter } from '../../../proxy/limits/limiter.ts'

/** Asks each limiter `perMs` times a turn for `forMs` turns of about a millisecond, as busy clients do. */
export async function askOften(
  limiters: readonly Limiter[],
  charges: readonly Charge[],
  { perMs = 5, forMs = 150 } = {},
): Promise<{ readonly decisions: readonly Decision[]; readonly decidedHere: number }> {
  const answers: (Decision | Promise<Decision>)[] = []
  for (let turn = 0; turn < forMs; turn++) {
    for (const limiter of limiters)
      for (let asked = 0; asked < perMs; asked++) answers.push(limiter.decide(charges))
    await sleep(1)
  }
  const decidedHere = answers.filter((answer) => !(answer instanceof Promise)).length
  return { decisions: await Promise.all(answers.map((answer) => Promise.resolve(answer))), decidedHere }
}
