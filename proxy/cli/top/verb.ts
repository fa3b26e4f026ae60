import { setTimeout as sleep } from 'node:timers/promises'
import { askForEvent, type AdminOptions } from '../operate/admin-client.ts'
import { CommandError, print, printJson, status as exit } from '../output.ts'
import { linesOf } from './lines.ts'
import { openScreen } from './screen.ts'
import { makeSnapshot, readCounts, type Reading, type Snapshot } from './snapshot.ts'

export type TopOptions = AdminOptions & { readonly once?: true; readonly interval: string }

/**
 * Shows a running gateway until the user quits; with `--once`, or if standard output is not a terminal, shows it once. While a gateway
 * restarts, it is shown as away.
 *
 * @returns the exit status
 * @throws CommandError if the gateway does not answer the first time, or the only time
 */
export async function top(options: TopOptions): Promise<number> {
  const intervalMs = readInterval(options.interval)
  const isLive = !options.once && (options.json === true || process.stdout.isTTY)
  // Rates need two readings.
  let before: Reading = readCounts(await askForEvent(options))
  const ended = new AbortController()
  const isOver = (): boolean => ended.signal.aborted
  const pause = (): Promise<unknown> =>
    sleep(intervalMs, undefined, { signal: ended.signal }).catch(() => undefined)

  async function look(): Promise<Snapshot> {
    try {
      const event = await askForEvent(options, ended.signal)
      const snapshot = makeSnapshot(options.admin, event, before)
      before = readCounts(event)
      return snapshot
    } catch (error) {
      if (!(error instanceof CommandError) || !isLive) throw error
      const at = new Date().toISOString()
      return { at, gateway: options.admin, away: error.message, rules: [], clients: [] }
    }
  }

  const screen = isLive && !options.json ? openScreen({ onQuit: () => ended.abort() }) : undefined
  try {
    do {
      await pause()
      if (isOver()) break
      const snapshot = await look()
      if (isOver()) break
      if (screen) screen.draw((rows) => linesOf(snapshot, rows))
      else if (options.json) printJson(snapshot)
      else print(linesOf(snapshot).join('\n'))
    } while (isLive)
  } finally {
    screen?.close()
  }
  return exit.yes
}

/** @returns milliseconds */
function readInterval(text: string): number {
  const seconds = /^\d{1,4}(?:\.\d)?$/.test(text) ? Number(text) : 0
  if (seconds < 0.5 || seconds > 3600)
    throw new CommandError('--interval needs seconds from 0.5 to 3600', exit.usage)
  return seconds * 1000
}
