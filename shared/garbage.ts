import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type Collect = (options: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void

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
 * V8 shows its collector to what is compiled under this flag. It is taken back, as code in Node's compile cache is only
 * good for the flags that it was made under.
 */
function exposeCollector(): Collect {
  setFlagsFromString('--expose-gc')
  const exposed = runInNewContext('gc') as Collect
  setFlagsFromString('--no-expose-gc')
  return exposed
}
