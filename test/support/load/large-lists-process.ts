import { closeSync, openSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { collectGarbage, setGatewayFlags } from '../../../shared/v8-gc.ts'
import { LiveLists } from '../../../proxy/app/addresses/live-lists.ts'
import { parseAddress, type IpAddress } from '../../../proxy/request/addresses/ip-address.ts'
import type { AddressList } from '../../../proxy/request/addresses/lists/address-lists.ts'
import { eventually } from '../wait/eventually.ts'
import { watchForWaiting } from './core-time.ts'
import { leastTimeSync } from './least-time.ts'

// Measures lists of a million entries as a gateway holds them, in a process of its own, and prints the figures as JSON.

setGatewayFlags()

const [folder = '', family = 'ipv4', maxLookupNs = '', maxTimesTen = ''] = process.argv.slice(2)
const ENTRIES = 1_000_000
const DOUBTFUL_TURN_MS = 10
const megabyte = 1e6

/** Addresses far from one another, so that no two become one range. */
function addressAt(index: number, version: number): string {
  const value = (index * 4294 + version) >>> 0
  if (family === 'ipv4')
    return `${value >>> 24}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.${value & 255}`
  return `2001:db8:${(value >>> 16).toString(16)}:${(value & 0xffff).toString(16)}::${(index & 0xffff).toString(16)}`
}

/** Writes a list in pieces, whose garbage is soon collected. */
function write(name: string, entries: number, version: number): string {
  const path = join(folder, name)
  const file = openSync(`${path}.new`, 'w')
  for (let i = 0; i < entries; i += 1000) {
    let text = ''
    for (let at = i; at < Math.min(entries, i + 1000); at++) text += `${addressAt(at, version)}\n`
    writeSync(file, text)
  }
  closeSync(file)
  renameSync(`${path}.new`, path)
  return path
}

/** Resident memory after some turns of the event loop, in which the memory of an old list is freed. */
async function residentMb(): Promise<number> {
  for (let turns = 0; turns < 200; turns++) await turn()
  collectGarbage()
  return process.memoryUsage().rss / megabyte
}

const asked: readonly IpAddress[] = Array.from(
  { length: 4096 },
  (_, i) => parseAddress(addressAt((i * 7919) % ENTRIES, i % 2)) ?? [],
)
const texts = asked.map((_, i) => addressAt((i * 7919) % ENTRIES, i % 2))

/** Nanoseconds per call in the fastest of several rounds, as other load on the machine only ever adds to a time. */
function nanosecondsOf(call: (index: number) => unknown): number {
  let fastest = Infinity
  for (let round = 0; round < 15; round++) {
    const startedMs = performance.now()
    let kept = 0
    for (let i = 0; i < asked.length; i++) kept += call(i) ? 1 : 0
    if (kept < 0) throw new Error('never')
    fastest = Math.min(fastest, ((performance.now() - startedMs) * 1e6) / asked.length)
  }
  return fastest
}

const lookupNs = { ten: Infinity, million: Infinity, parse: Infinity }

/** Called after each reload of the list, as other processes may occupy the caches of the processor for a while. */
function measureLookups(ten: AddressList, million: AddressList): void {
  const calls = {
    ten: (i: number) => ten.has(asked[i] ?? []),
    million: (i: number) => million.has(asked[i] ?? []),
    parse: (i: number) => parseAddress(texts[i] ?? ''),
  }
  for (const name of ['ten', 'million', 'parse'] as const)
    lookupNs[name] = Math.min(lookupNs[name], nanosecondsOf(calls[name]))
}

/** The longest turn of this thread until `isOver`: in CPU time, which does not depend on other load, and in wall-clock time. */
async function longestTurn(
  isOver: () => boolean,
  work: () => void,
): Promise<{ readonly cpuMs: number; readonly delayMs: number }> {
  const delays = monitorEventLoopDelay({ resolution: 1 })
  delays.enable()
  let cpuMs = 0
  let before = process.threadCpuUsage()
  while (!isOver()) {
    work()
    await turn()
    const { user, system } = process.threadCpuUsage(before)
    cpuMs = Math.max(cpuMs, (user + system) / 1000)
    before = process.threadCpuUsage()
  }
  delays.disable()
  return { cpuMs, delayMs: delays.max / 1e6 }
}

function hits(list: AddressList, addresses = asked): number {
  return addresses.reduce((sum, address) => sum + (list.has(address) ? 1 : 0), 0)
}

let reloads = 0
const hadToWait = watchForWaiting()
const log = { info: () => (reloads += 1), warn: () => undefined, error: () => undefined }
const lists = new LiveLists(log)

const tenPath = write('ten.txt', 10, 0)
const millionPath = write('million.txt', ENTRIES, 0)
const files = (...paths: string[]) => paths.map((path) => ({ file: path, location: path }))
const ten = await lists.prepare(files(tenPath))
ten.commit()
const beforeMb = await residentMb()
const prepared = await lists.prepare(files(tenPath, millionPath))
prepared.commit()
const grownMb = [(await residentMb()) - beforeMb]

const million = prepared.lists.of(millionPath)
const few = prepared.lists.of(tenPath)
measureLookups(few, million)
const some = asked.slice(0, 256)
const work = (): void => void hits(million, some)
const hitsBefore = hits(million)
const untilMs = performance.now() + 200
const quiet = await longestTurn(() => performance.now() > untilMs, work)
write('million.txt', ENTRIES, 1)
let reload = await longestTurn(() => reloads > 0, work)
const hitsAfter = hits(million)
grownMb.push((await residentMb()) - beforeMb)
for (const version of [2, 3, 4]) {
  write('million.txt', ENTRIES, version)
  // Cache misses cost CPU time too. A turn that is long by itself is long in each reload, so this measures again, for a second of CPU.
  if (reload.cpuMs > DOUBTFUL_TURN_MS) {
    const again = await longestTurn(() => reloads >= version, work)
    if (again.cpuMs < reload.cpuMs) reload = again
  } else await eventually('the list is read again', () => reloads >= version, { endMs: 300_000 })
  grownMb.push((await residentMb()) - beforeMb)
  measureLookups(few, million)
}

/** The largest ratio of a measurement to its bound: 1 or more is too slow. */
function slowness(): number {
  measureLookups(few, million)
  const { ten: tenNs, million: millionNs, parse } = lookupNs
  return Math.max(
    millionNs / Number(maxLookupNs),
    (millionNs + parse) / (tenNs + parse) / Number(maxTimesTen),
  )
}
leastTimeSync(1, slowness)

const figures = {
  entries: lists.readUse().map(({ entries }) => entries),
  hits: [hitsBefore, hitsAfter],
  grownMb,
  lookupNs,
  hadToWait: hadToWait(),
  longestTurn: { quiet, reload },
}
lists.close()
process.stdout.write(`${JSON.stringify(figures)}\n`)
