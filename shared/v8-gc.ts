import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Node's options for a gateway process, which can only be set at start. V8's helpers, which mark and copy while JavaScript runs, use one
 * thread instead of four, so that they do not starve the main thread (docs/decisions/connection-churn.md).
 */
export const gatewayOptions: readonly string[] = ['--v8-pool-size=1']

/**
 * If this process was started without `gatewayOptions` (by `sluice run`, or as `node proxy/main.ts`), replaces it with one that has them,
 * under the same process id. This takes some 30 ms. Returns if the process has the options, or if it cannot be replaced: on Windows, and if
 * it has an IPC channel to its parent, which would be lost.
 */
export function restartWithGatewayOptions(): void {
  const given = `${process.execArgv.join(' ')} ${process.env['NODE_OPTIONS'] ?? ''}`
  if (given.includes('--v8-pool-size') || process.channel || process.platform === 'win32') return
  const [node, ...command] = process.argv
  if (node) process.execve?.(node, [node, ...process.execArgv, ...gatewayOptions, ...command])
}

/** The modules of Node that a gateway loads directly. */
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
 * Makes V8 count buffers as part of the heap, no matter how the gateway was started. Otherwise V8 marks the whole heap for every 64 MiB of
 * buffers, some ten times a second while large bodies pass (docs/decisions/large-bodies.md).
 *
 * Loads Node's own modules first. Their code is in the executable, compiled without the flag; with the flag set, Node would compile them
 * again at each start, which takes 40 ms.
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
 * Collects all garbage and returns free pages to the system. V8 does so by itself only when memory runs out: it keeps a heap that has
 * grown, and garbage that dies young gives it no reason to collect the old generation. Stops the process for 20 ms after a start, and for
 * about 100 ms after thousands of connections.
 */
export function collectGarbage(): void {
  collect ??= exposeCollector()
  collect({ type: 'major', flavor: 'last-resort' })
}

/**
 * Does what `collectGarbage` does, and makes the C library return freed memory to the system: glibc by itself returns only free memory at
 * the end of the heap, and freed buffers of 64 KiB lie between buffers still in use. Takes a few milliseconds more, up to 50. If Node
 * cannot call the C library (before version 26.1), or the library has no `malloc_trim`, only V8's memory is returned.
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
  // Loading `node:ffi` prints a warning that it is experimental.
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

/** Collects the garbage among recently allocated objects. Stops the process while V8 copies the objects that survive. */
export function collectYoungGarbage(): void {
  collect ??= exposeCollector()
  collect({ type: 'minor' })
}

/**
 * V8 exposes its collector to code compiled under this flag. The flag is unset again, because Node's compile cache is only valid under the
 * flags that it was made with.
 */
function exposeCollector(): Collect {
  setFlagsFromString('--expose-gc')
  const exposed = runInNewContext('gc') as Collect
  setFlagsFromString('--no-expose-gc')
  return exposed
}
