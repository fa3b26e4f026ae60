import { ChildProcess } from 'node:child_process'
import { Server, Socket } from 'node:net'

/** The open resources of this process, to compare with those at a later time. */
export type Resources = {
  /** Sockets, servers, child processes, watchers: everything that would keep the process alive. */
  readonly handles: ReadonlySet<object>
  /** The number of resources of each kind: timers, queued turns, listeners of the process. */
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
 * Several libraries load signal-exit, which adds a permanent listener to every signal. Nothing else listens to this signal, so its
 * listeners are those of signal-exit.
 */
const libraries = 'SIGSYS'
const kept = new WeakSet()

/** Excludes handles from the check at the end of a test file, because other files use them. */
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

/** Closes what can be closed, so that it does not affect the next test file. */
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
  // Undocumented, but the only way to tell handles apart: `getActiveResourcesInfo` returns only their kinds.
  const own = process as unknown as { _getActiveHandles(): object[] }
  return own._getActiveHandles().filter((handle) => !isStandardStream(handle))
}

/** Standard streams are excluded, as Node creates standard input when a library first accesses it. */
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

/** The peer as the system knows it now; `socket.remoteAddress` caches its first value. Undefined for a pipe or without a peer. */
export function peerOf(socket: Socket): Peer | undefined {
  const { _handle: handle } = socket as Socket & {
    readonly _handle?: { getpeername?(peer: Peer): number } | null
  }
  const peer: Peer = {}
  return handle?.getpeername?.(peer) === 0 ? peer : undefined
}

/** Describes a pipe to a child process, or a socket that is not connected yet or not any more. */
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
