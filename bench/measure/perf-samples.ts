/** A sample of perf(1): functions from the running one to the thread's first one, as `perf script` names them. */
export type Stack = readonly Frame[]
type Frame = { readonly symbol: string; readonly object: string }

export type Share = { readonly name: string; readonly share: number; readonly kernelShare: number }

/** Reads the output of `perf script -F comm,ip,sym,dso`. */
export function readStacks(script: string): Stack[] {
  return script
    .split('\n\n')
    .map((block) =>
      block.split('\n').flatMap((line) => {
        const [, symbol, object] = /^\s+[0-9a-f]+ (.*) \((.*)\)$/.exec(line) ?? []
        return symbol === undefined || object === undefined ? [] : [{ symbol, object }]
      }),
    )
    .filter((stack) => stack.length > 0)
}

/** The shares of all samples by a name that each sample has, largest first. */
export function sharesBy(stacks: readonly Stack[], nameOf: (stack: Stack) => string): Share[] {
  return sharesByMany(stacks, (stack) => [nameOf(stack)])
}

/** Does what `sharesBy` does when a sample counts under several names. */
export function sharesByMany(stacks: readonly Stack[], namesOf: (stack: Stack) => string[]): Share[] {
  const counts = new Map<string, { all: number; kernel: number }>()
  for (const stack of stacks) {
    for (const name of new Set(namesOf(stack))) {
      const count = counts.get(name) ?? { all: 0, kernel: 0 }
      counts.set(name, count)
      count.all++
      if (isKernel(stack[0])) count.kernel++
    }
  }
  return [...counts]
    .map(([name, { all, kernel }]) => ({
      name,
      share: all / stacks.length,
      kernelShare: kernel / stacks.length,
    }))
    .sort((a, b) => b.share - a.share)
}

/** The kind of code that ran. */
export function layerOf(stack: Stack): string {
  const [top] = stack
  if (top === undefined || isOnOtherThread(stack)) return otherThreadOf(stack)
  if (isKernel(top)) return 'kernel'
  if (stack.some(({ symbol }) => symbol.includes('Heap::CollectGarbage'))) return 'garbage collection'
  if (scriptFunction(top) !== undefined) return 'JavaScript'
  if (top.symbol.startsWith('Builtins_')) return "V8's built-in functions"
  return 'native code of Node, V8 and libc'
}

/** V8 compiles hot functions and collects garbage on threads other than the one that runs JavaScript. */
function otherThreadOf(stack: Stack): string {
  const names = stack.map(({ symbol }) => symbol).join(' ')
  if (/Compil|Optimiz|maglev|turboshaft/.test(names)) return 'other threads: compiler'
  if (/Scaveng|Sweep|Mark|Heap|YoungGeneration|ArrayBuffer/.test(names))
    return 'other threads: garbage collection'
  return 'other threads: the rest'
}

function isOnOtherThread(stack: Stack): boolean {
  return stack.some(({ symbol }) => symbol === 'start_thread')
}

/** The JavaScript function that ran, or that called the code that ran: `proxy/http/forward/forward.ts:119 onHead`. */
export function nearestFunction(stack: Stack): string {
  for (const frame of stack) {
    const name = scriptFunction(frame)
    if (name !== undefined) return name
  }
  return isOnOtherThread(stack) ? '(other threads)' : '(none: event loop, parser)'
}

export function nearestFile(stack: Stack): string {
  return nearestFunction(stack).replace(/:\d+ .*$/, '')
}

/** All JavaScript functions on the stack. */
export function functionsOn(stack: Stack): string[] {
  return stack.map(scriptFunction).filter((name) => name !== undefined)
}

function isKernel(frame: Frame | undefined): boolean {
  return frame?.object.includes('[kernel') === true
}

/** Node names a function for perf in this form: `JS:*'send file:///…/proxy/http/upstream/pool.ts:88:7`. */
function scriptFunction({ symbol }: Frame): string | undefined {
  const [, name, url, line] = /^JS:[*^~+]?'?(.*?) ?((?:file:|node:|\/)\S*?):(\d+):\d+$/.exec(symbol) ?? []
  if (url === undefined || line === undefined) return undefined
  const root = new URL('../..', import.meta.url)
  const file = url
    .replace(root.href, '')
    .replace(root.pathname, '')
    .replace(/^.*\/node_modules\//, '')
  return `${file}:${line} ${name === undefined || name === '' ? '(anonymous)' : name}`
}
