import type { ProxyName } from './proxies.ts'

/** The attackers' report about themselves: `CrowdReport`, and the counts of their kind. */
export type AttackReport = Readonly<Record<string, number>>

/** One attack, and what a client at another address does meanwhile. */
export type Scenario = {
  readonly name: string
  /** The title for the table. */
  readonly title: string
  readonly tls: boolean
  /** The listener that is attacked, and that the normal client uses. A proxy without an admin listener is left out. */
  readonly listener: 'clients' | 'admin'
  /** The path and the rate of the normal client's requests. */
  readonly path: string
  readonly perSecond: number
  /** The attackers' script, in this folder. */
  readonly script: string
  /** @param most maximum number of connections that the proxy accepts */
  readonly args: (most: number) => readonly string[]
  /** Whether the attack is in progress. If not, the run has shown nothing. */
  readonly underWay: (report: AttackReport, most: number) => boolean
  /** Whether the load was served, checked at its end. Only for load that is not an attack. */
  readonly served?: (report: AttackReport) => boolean
  /** The servers attacked in the same way, for comparison; nginx by default. */
  readonly beside?: readonly ProxyName[]
  /** Runs only if named, because the gateway is not expected to pass. */
  readonly onlyNamed?: true
}

const eventStreams = 5_000
const slowConnections = 4_000

const usual = { tls: false, listener: 'clients', path: '/', perSecond: 50 } as const

const slowSenders = {
  ...usual,
  perSecond: 400,
  script: 'slow-attackers.ts',
  args: () => ['--connections', String(slowConnections)],
  // Bodies that do not fit into the queue for the backend are refused at once.
  underWay: ({ head = 0, body = 0 }: AttackReport) => head > 1_800 && body > 1_000,
} as const

const closedWindows = (
  connections: number,
  ...request: string[]
): Pick<Scenario, 'script' | 'args' | 'underWay'> => ({
  script: 'closed-windows.ts',
  args: () => ['--tls', '--connections', String(connections), '--streams', '100', ...request],
  underWay: ({ requested = 0 }) => requested >= connections * 100,
})

const tinyPieces = (
  kind: string,
  tls = false,
): Pick<Scenario, 'script' | 'args' | 'underWay' | 'tls' | 'beside'> => ({
  script: 'tiny-pieces.ts',
  args: () => ['--kind', kind, '--connections', '1', ...(tls ? ['--tls'] : [])],
  underWay: ({ sent = 0, received = 0 }) => sent + received > 50_000,
  tls,
  beside: ['nginx', 'haproxy'],
})

export const scenarios: readonly Scenario[] = [
  { ...slowSenders, name: 'slow-senders', title: '4,000 connections that send a byte a second' },
  {
    ...slowSenders,
    name: 'slow-senders-https',
    title: 'the same over HTTPS',
    tls: true,
    args: () => [...slowSenders.args(), '--tls'],
    beside: ['nginx', 'haproxy', 'node'],
    onlyNamed: true,
  },
  {
    ...usual,
    ...closedWindows(3, '--path', '/bytes/200000'),
    name: 'closed-windows',
    title: '300 HTTP/2 streams of 200 KB with closed windows',
    tls: true,
  },
  {
    ...usual,
    name: 'unread-responses',
    title: '300 HTTP/1.1 clients that do not read 8 MB',
    script: 'unread-responses.ts',
    args: () => ['--connections', '300', '--per-second', '100', '--path', '/bytes/8000000'],
    underWay: ({ opened = 0 }) => opened >= 300,
  },
  {
    ...usual,
    name: 'event-streams',
    title: '5,000 open event streams',
    script: 'event-streams.ts',
    args: () => ['--connections', String(eventStreams), '--addresses', '5', '--per-second', '800'],
    underWay: ({ opened = 0 }) => opened >= eventStreams,
    served: ({ served = 0 }) => served >= eventStreams,
  },
  {
    ...usual,
    name: 'full-house',
    title: 'two addresses that take all connections',
    script: 'idle-connections.ts',
    args: (most) => ['--connections', String(most), '--addresses', '2', '--per-second', '1200'],
    underWay: ({ opened = 0 }, most) => opened >= most,
  },
  {
    ...usual,
    name: 'admin-port',
    title: '200 idle connections to the admin port',
    listener: 'admin',
    path: '/livez',
    script: 'idle-connections.ts',
    args: () => ['--connections', '200', '--per-second', '100'],
    underWay: ({ opened = 0 }) => opened >= 200,
  },
  {
    ...usual,
    ...closedWindows(150, '--path', '/bytes/60000'),
    name: 'unread-60k',
    title: '15,000 HTTP/2 streams of 60 KB with closed windows',
    tls: true,
  },
  {
    ...usual,
    ...closedWindows(150, '--method', 'POST', '--path', '/forgot-password'),
    name: 'unread-429s',
    title: '15,000 HTTP/2 streams of 429s with closed windows',
    tls: true,
  },
  {
    ...usual,
    ...tinyPieces('chunks'),
    name: 'tiny-chunks',
    title: 'an upload of 1 MB/s in chunks of one byte',
  },
  {
    ...usual,
    ...tinyPieces('endless-heads'),
    name: 'endless-heads',
    title: 'ten heads of 1 MB/s that never end',
    args: () => ['--kind', 'endless-heads', '--connections', '10'],
    // A proxy that closes these connections immediately gets few of them.
    underWay: ({ opened = 0 }) => opened >= 10,
  },
  {
    ...usual,
    ...tinyPieces('extensions'),
    name: 'tiny-extensions',
    title: 'the same with chunk extensions',
  },
  {
    ...usual,
    ...tinyPieces('data', true),
    name: 'tiny-data',
    title: 'an upload of 1 MB/s in DATA frames of one byte',
  },
  {
    ...usual,
    ...tinyPieces('data-on-many-streams', true),
    name: 'tiny-data-streams',
    title: 'the same on 100 streams in turns',
  },
  {
    ...usual,
    ...tinyPieces('padded', true),
    name: 'tiny-padded',
    title: 'the same in padded frames',
  },
  {
    ...usual,
    ...tinyPieces('windows', true),
    name: 'tiny-windows',
    title: '1 MB/s of WINDOW_UPDATE of one byte for 100 streams',
  },
  {
    ...usual,
    ...tinyPieces('connection-windows', true),
    name: 'tiny-connection-windows',
    title: '1 MB/s of WINDOW_UPDATE of one byte for the connection',
  },
  {
    ...usual,
    ...tinyPieces('responses'),
    name: 'tiny-responses',
    title: 'a response of 1 MB/s in chunks of one byte',
  },
]
