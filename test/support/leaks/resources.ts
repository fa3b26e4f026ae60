import { ChildProcess } from 'node:child_process'
import { Server, Socket } from 'node:net'

/** What this process has open, to be compared with what it has later. */
export type Resources = {
  /** Sockets, servers, child processes, watchers: whatever would keep the process alive. */
  readonly handles: ReadonlySet<object>
  /** How many of each kind: timers, queued turns, listeners of the process. */
  readonly counts: ReadonlyMap<string, number>
}

/** The name of timers in the counts. */
export const TIMER = 'timer'
const countedTurns: Readonly<Record<string, string>> = {
  Timeout: TIMER,
  Immediate: 'queued turn (setImmediate)',
}
/** An `exit` listener does nothing before the end. */
const ignoredEvents: readonly (string | symbol)[] = ['exit', 'beforeExit', 'newListener', 'removeListener']
/**
 * Where it is loaded, signal-exit, which several libraries have in common, listens to every signal, once and for good. Nobody
 * else listens to this one.
 */
const libraries = 'SIGSYS'
const kept = new WeakSet()

/** Says that these stay when the test file ends, since other files use them. */
export function keepAfterFile(...handles: readonly object[]): void {
  for (const handle of handles) kept.add(handle)
}

export function listResources(): Resources {
  const counts = new Map<string, number>()
  const add = (what: string, count: number): unknown => counts.set(what, (counts.get(what) ?? 0) + count)
  for (const kind of process.getActiveResourcesInfo()) {
    const turn = countedTurns[kind]
    if (turn !== undefined) add(turn, 1)
  }
  for (const event of process.eventNames()) {
    const ofLibraries = String(event).startsWith('SIG') ? process.listenerCount(libraries) : 0
    if (!ignoredEvents.includes(event))
      add(`process.on('${String(event)}')`, process.listenerCount(event) - ofLibraries)
  }
  return { handles: new Set(activeHandles()), counts }
}

/** A text for each resource that exists `now` and did not exist `before`. */
export function describeNew(before: Resources, now: Resources): string[] {
  const counted = [...now.counts].flatMap(([what, count]) => {
    const more = count - (before.counts.get(what) ?? 0)
    return more > 0 ? [`${more} × ${what}`] : []
  })
  return [...newHandles(before, now).map(describeHandle), ...counted]
}

/** Closes what can be closed, so that the next test file has nothing to do with it. */
export function closeNew(before: Resources, now: Resources): void {
  for (const handle of newHandles(before, now)) {
    if (handle instanceof ChildProcess) handle.kill('SIGKILL')
    else if (handle instanceof Server) handle.close()
    else if (handle instanceof Socket) handle.destroy()
  }
}

function newHandles(before: Resources, now: Resources): object[] {
  return [...now.handles].filter((handle) => !before.handles.has(handle) && !kept.has(handle))
}

function activeHandles(): object[] {
  // Undocumented, and all that tells one handle from another: `getActiveResourcesInfo` gives the kinds only.
  const own = process as unknown as { _getActiveHandles(): object[] }
  return own._getActiveHandles().filter((handle) => !isStandardStream(handle))
}

/** Standard input is made when a library first looks at it. */
function isStandardStream(handle: object): boolean {
  return 'fd' in handle && [0, 1, 2].includes(handle.fd as number)
}

function describeHandle(handle: object): string {
  if (handle instanceof ChildProcess) return `child process ${handle.pid}: ${handle.spawnargs.join(' ')}`
  if (handle instanceof Server) return `server at ${JSON.stringify(handle.address())}`
  if (handle instanceof Socket) {
    const { localAddress, localPort } = handle
    const peer = peerOf(handle)
    if (!peer) return describeUnconnected(handle)
    return `socket from ${localAddress}:${localPort} to ${peer.address}:${peer.port}`
  }
  return handle.constructor.name
}

type Peer = { address?: string; port?: number }

/** The peer as the system knows it now: `socket.remoteAddress` keeps its first answer. Undefined without one, and for a pipe. */
export function peerOf(socket: Socket): Peer | undefined {
  const { _handle: handle } = socket as Socket & {
    readonly _handle?: { getpeername?(peer: Peer): number } | null
  }
  const peer: Peer = {}
  return handle?.getpeername?.(peer) === 0 ? peer : undefined
}

/** A pipe to a child process, a socket that is not connected yet, or one that is not any more. */
function describeUnconnected(socket: Socket): string {
  const { connecting, destroyed, readableEnded, writableEnded, localPort, bytesRead, bytesWritten } = socket
  const state = Object.entries({
    connecting,
    destroyed,
    readableEnded,
    writableEnded,
    paused: socket.isPaused(),
  })
    .filter(([, is]) => is)
    .map(([name]) => name)
  const what = localPort === undefined ? 'a pipe' : `of port ${localPort} without a peer`
  return `socket, ${[what, ...state, `${bytesRead} bytes read`, `${bytesWritten} written`].join(', ')}`
}
