import { doInTurns, type Steps } from '../../../../shared/steps.ts'
import { endedWithin } from '../../../../shared/within.ts'
import type { LimiterPort } from '../../store/workers/worker-messages.ts'
import type { Decision } from './decision.ts'
import { DecisionTable, type DecisionChange } from './decision-table.ts'

/** A worker's message that it is listening. */
type Hello = { readonly crowdsec: 'hello' }

/** Makes a worker's copy of the decisions that the primary process polls. */
export function createWorkerDecisions(
  port: LimiterPort,
  now: () => number,
): { readonly table: DecisionTable; ready(limitMs: number): Promise<void>; close(): void } {
  const table = new DecisionTable(now)
  let complete = (): void => undefined
  const first = new Promise<void>((resolve) => (complete = resolve))
  port.listen((message) => {
    if (!isMessage(message) || message.crowdsec === 'hello') return
    table.apply(message)
    if (message.crowdsec === 'end') complete()
  })
  const hello: Hello = { crowdsec: 'hello' }
  port.send(hello)
  return {
    table,
    ready: (limitMs) => endedWithin(limitMs, first),
    close: () => undefined,
  }
}

const DECISIONS_IN_MESSAGE = 500

/**
 * Sends the decisions from the primary process to its workers: all decisions when a worker begins to listen and after each complete read,
 * and the differences in between. Changes are sent in order, a part in each turn of the event loop, because without Redis this process also
 * counts for its workers.
 */
export class DecisionBroadcast {
  readonly #table: Pick<DecisionTable, 'all'>
  readonly #ports: () => readonly LimiterPort[]
  #isReadingAll = false
  #last: Promise<void> = Promise.resolve()

  /** @param ports returns the ports of the current workers */
  constructor(table: Pick<DecisionTable, 'all'>, ports: () => readonly LimiterPort[]) {
    this.#table = table
    this.#ports = ports
  }

  /** Call it for each worker right after the fork. */
  add(port: LimiterPort): void {
    port.listen((message) => {
      if (isMessage(message) && message.crowdsec === 'hello') this.#inTurn(() => this.#sendAll([port]))
    })
  }

  /** Call it when the table has changed. */
  changed(change: DecisionChange): void {
    if (change.crowdsec === 'begin') this.#isReadingAll = true
    else if (change.crowdsec === 'end') {
      this.#isReadingAll = false
      this.#inTurn(() => this.#sendAll(this.#ports()))
    } else if (!this.#isReadingAll) this.#inTurn(() => sendOne(this.#ports(), change))
  }

  #inTurn(makeSteps: () => Steps<void>): void {
    this.#last = this.#last.then(() => doInTurns(makeSteps()))
  }

  *#sendAll(ports: readonly LimiterPort[]): Steps<void> {
    const all = this.#table.all()
    if (!all) return
    yield* sendOne(ports, { crowdsec: 'begin' })
    let decisions: Decision[] = []
    for (const decision of all) {
      decisions.push(decision)
      if (decisions.length < DECISIONS_IN_MESSAGE) continue
      yield* sendOne(ports, { crowdsec: 'set', decisions })
      decisions = []
    }
    yield* sendOne(ports, { crowdsec: 'set', decisions })
    yield* sendOne(ports, { crowdsec: 'end' })
  }
}

function* sendOne(ports: readonly LimiterPort[], change: DecisionChange): Steps<void> {
  for (const port of ports) {
    try {
      port.send(change)
    } catch {
      // The worker has ended.
    }
    yield
  }
}

function isMessage(message: unknown): message is DecisionChange | Hello {
  return typeof message === 'object' && message !== null && 'crowdsec' in message
}
