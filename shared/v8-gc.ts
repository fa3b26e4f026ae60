import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Options of Node for a gateway process, which takes them at start only: V8's helpers, which mark and copy while JavaScript
 * runs, use one thread instead of four, so that they do not starve the main thread (docs/decisions/connection-churn.md).
 */
export const gatewayOptions: readonly string[] = ['--v8-pool-size=1']

/**
 * Replaces this process by one with `gatewayOptions`, which has the same process id, if it was started without them: by
 * `sluice run`, or as `node proxy/main.ts`. Takes some 30 ms. Returns where it has them, and where Node cannot do that: on
 * Windows, and in a process that its parent talks to, whose channel would be lost.
 */
export function restartWithGatewayOptions(): void {
  const given = `${process.execArgv.join(' ')} ${process.env['NODE_OPTIONS'] ?? ''}`
  if (given.includes('--v8-pool-size') || process.channel || process.platform === 'win32') return
  const [node, ...command] = process.argv
  if (node) process.execve?.(node, [node, ...process.execArgv, ...gatewayOptions, ...command])
}

/** Node's modules that a gateway loads, without those that they load themselves. */
const nodeModules = [
  'cluster',
  'dns',
  'dns/promises',
  'fs/promises',
  'http2',
  'https',
  'os',
  'perf_hooks',
  'process',
  'timers/promises',
  'tty',
  'worker_threads',
  'zlib',
]

/**
 * Sets the flag of V8 that a gateway runs with, however it was started: buffers count as part of the heap. Otherwise V8 marks the
 * whole heap for every 64 MiB of them, some ten times a second while large bodies pass (docs/decisions/large-bodies.md).
 *
 * Loads Node's own modules before: their code is in the executable, compiled without the flag. With it Node would compile them again at
 * each start, which takes 40 ms.
 */
export function setGatewayFlags(): void {
  for (const name of nodeModules) process.getBuiltinModule(name)
  setFlagsFromString('--external-memory-accounted-in-global-limit')
}

type Collect = (
  options: { readonly type: 'major'; readonly flavor: 'last-resort' } | { readonly type: 'minor' },
) => void

let collect: Collect | undefined

/**
 * Collects all garbage and gives free pages back to the system, which V8 does for itself only when memory runs out: it
 * keeps a heap that has grown, and garbage that dies young gives it no reason to look at the old. Stops the process for
 * 20 ms after a start, for about a tenth of a second after thousands of connections.
 */
export function collectGarbage(): void {
  collect ??= exposeCollector()
  collect({ type: 'major', flavor: 'last-resort' })
}

/**
 * Does the same, and makes the C library return freed memory to the system: freed buffers of 64 KiB lie between ones that stay, and glibc
 * by itself returns only free memory at the end of the heap. Takes a few milliseconds more, up to 50. If Node cannot call the C library
 * (before version 26.1), or that has no such function, only V8's memory is returned.
 */
export function returnMemory(): void {
  collectGarbage()
  trim ??= findTrim()
  trim()
}

let trim: (() => void) | undefined

type Ffi = {
  dlopen(
    path: null,
    functions: { readonly malloc_trim: { readonly arguments: readonly ['u64']; readonly return: 'i32' } },
  ): { readonly functions: { malloc_trim(keptBytes: bigint): number } }
}

function findTrim(): () => void {
  const emitWarning = process.emitWarning.bind(process)
  // Loading it warns on standard error that it is experimental.
  process.emitWarning = () => undefined
  try {
    const ffi = process.getBuiltinModule('node:ffi') as unknown as Ffi | undefined
    const library = ffi?.dlopen(null, { malloc_trim: { arguments: ['u64'], return: 'i32' } })
    return () => void library?.functions.malloc_trim(0n)
  } catch {
    return () => undefined
  } finally {
    process.emitWarning = emitWarning
  }
}

/** Collects the garbage among recently allocated objects. Stops the process for as long as it takes to copy the rest of that. */
export function collectYoungGarbage(): void {
  collect ??= exposeCollector()
  collect({ type: 'minor' })
}

/**
 * V8 exposes its collector to code compiled under this flag. It is taken back, as code in Node's compile cache is only
 * good for the flags that it was made under.
 */
function exposeCollector(): Collect {
  setFlagsFromString('--expose-gc')
  const exposed = runInNewContext('gc') as Collect
  setFlagsFromString('--no-expose-gc')
  return exposed
}
