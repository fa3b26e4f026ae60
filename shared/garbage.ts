import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Options of Node for the process of a gateway: V8's helpers, which mark garbage meanwhile, are one thread and not four, so
 * that they do not take the processors from all that waits (docs/decisions/connection-churn.md). Node takes it at the
 * start only.
 */
export const gatewayOptions: readonly string[] = ['--v8-pool-size=1']

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

/** Collects the garbage among what was made lately. Stops the process for as long as it takes to copy the rest of that. */
export function collectYoungGarbage(): void {
  collect ??= exposeCollector()
  collect({ type: 'minor' })
}

/**
 * V8 shows its collector to what is compiled under this flag. It is taken back, as code in Node's compile cache is only
 * good for the flags that it was made under.
 */
function exposeCollector(): Collect {
  setFlagsFromString('--expose-gc')
  const exposed = runInNewContext('gc') as Collect
  setFlagsFromString('--no-expose-gc')
  return exposed
}
