import type { Log } from '../../../shared/log.ts'
import type { LimiterPort } from '../store/workers/worker-messages.ts'
import type { Policy } from '../../policy.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { ClientEntries } from './client-entries.ts'
import type { ClientEntry, EntryId } from './client-entry.ts'
import { observeEntries, type ClientTable } from './client-table.ts'

/** The primary process's message about an entry that was set or, without `entry`, removed. */
type EntryMessage = {
  readonly clients: 'entry'
  readonly id: EntryId
  readonly entry?: ClientEntry
  readonly leftMs: number
}
/** A worker's messages: a refusal to count, and the message that the worker is listening. */
type RefusalMessage = { readonly clients: 'refused'; readonly policy: string; readonly partitionKey: string }
type HelloMessage = { readonly clients: 'hello' }

/**
 * Milliseconds between two refusals that a worker sends while the primary process does not read its messages. Clients determine the number
 * of refusals, and the worker would have to buffer all of them. A refusal that is not sent only delays a ban; the log reports how many were
 * not sent.
 */
const PAUSE_MS = 1000

/** Makes a worker's copy of the primary process's table. Operators use the primary process. */
export function createWorkerClientTable(
  port: LimiterPort,
  {
    now,
    telemetry,
    log,
  }: {
    readonly now: () => number
    readonly telemetry: Pick<Telemetry, 'observeTable'>
    readonly log: Pick<Log, 'warn'>
  },
): ClientTable {
  const entries = new ClientEntries(now)
  observeEntries(telemetry, entries)
  port.listen((message) => {
    if (!isEntryMessage(message)) return
    if (message.entry) entries.set(message.entry, message.leftMs)
    else entries.delete(message.id)
  })
  const hello: HelloMessage = { clients: 'hello' }
  send(port, hello)
  const reports = reportRefusals(port, now, log)
  return {
    entries,
    refused: ({ name }, partitionKey) => reports.send({ clients: 'refused', policy: name, partitionKey }),
    operations: {
      list: () => Promise.resolve([]),
      put: () => Promise.resolve('unavailable'),
      remove: () => Promise.resolve('unavailable'),
    },
    // The primary process counts refusals, and answers operators.
    readPolicies: () => [],
    usePolicies: () => undefined,
    ready: () => Promise.resolve(),
    close: () => reports.logLeftOut(),
  }
}

function reportRefusals(port: LimiterPort, now: () => number, log: Pick<Log, 'warn'>) {
  let pausedUntilMs = -Infinity
  let leftOut = 0
  let timer: NodeJS.Timeout | undefined
  const logLeftOut = (): void => {
    clearTimeout(timer)
    if (leftOut === 0) return
    log.warn(
      { refusals: leftOut },
      'refusals not counted for bans: the primary process did not read its messages',
    )
    leftOut = 0
  }
  return {
    logLeftOut,
    send(message: RefusalMessage): void {
      const nowMs = now()
      if (nowMs < pausedUntilMs) {
        leftOut += 1
        return
      }
      if (send(port, message)) {
        if (leftOut > 0) logLeftOut()
        return
      }
      pausedUntilMs = nowMs + PAUSE_MS
      // Logs the number if no refusal follows the pause.
      clearTimeout(timer)
      timer = setTimeout(logLeftOut, 2 * PAUSE_MS).unref()
    },
  }
}

/**
 * Counts a worker's refusals in the primary process, and sends the table to the worker once it is listening.
 *
 * @param policyNamed finds a policy of the current rules by its name
 */
export function serveClientTable(
  table: Pick<ClientTable, 'entries' | 'refused'>,
  policyNamed: (name: string) => Policy | undefined,
  port: LimiterPort,
): void {
  port.listen((message) => {
    if (isHello(message)) {
      for (const { entry, id, leftMs } of table.entries.all()) sendEntry(port, id, entry, leftMs)
    } else if (isRefusal(message)) {
      const policy = policyNamed(message.policy)
      if (policy) table.refused(policy, message.partitionKey)
    }
  })
}

/** Sends a change to a worker. `entry` is undefined if it was removed. */
export function sendEntry(
  port: LimiterPort,
  id: EntryId,
  entry: ClientEntry | undefined,
  leftMs: number,
): void {
  const message: EntryMessage = { clients: 'entry', id, ...(entry && { entry }), leftMs }
  send(port, message)
}

/** Returns false if the other process has ended, or does not read its messages. */
function send(port: LimiterPort, message: object): boolean {
  try {
    return port.send(message) !== false
  } catch {
    return false
  }
}

function isMessage(message: unknown, kind: string): boolean {
  return typeof message === 'object' && message !== null && 'clients' in message && message.clients === kind
}

function isEntryMessage(message: unknown): message is EntryMessage {
  return isMessage(message, 'entry')
}

function isRefusal(message: unknown): message is RefusalMessage {
  return isMessage(message, 'refused')
}

function isHello(message: unknown): message is HelloMessage {
  return isMessage(message, 'hello')
}
