import { installNpmPackages } from '../support/run/packages.ts'
import { freePort } from '../support/network/ports.ts'
import { freshAddress, sendAndLeave } from '../support/http/raw-client.ts'
import { startRecordingBackend } from '../support/http/recording-backend.ts'
import { vectorsByTheme } from '../wire/vectors.ts'
import { explained, explainedBesideHttpProxy } from './explained.ts'
import { missingPrograms, startProxy, type Proxy, type ProxyName } from './proxies.ts'

// Sends the same bytes to nginx, HAProxy, http-proxy and this gateway, all in front of the same recording backend:
// `npm run test:differential`. A request that only this gateway forwards is one that it may read too leniently.

const names: readonly ProxyName[] = ['sluice', 'nginx', 'haproxy', 'http-proxy']
const bothOthers: readonly ProxyName[] = ['nginx', 'haproxy']

const missing = missingPrograms()
if (missing.length > 0) {
  console.log(
    `Nothing was compared: ${missing.join(' and ')} could not be found; Debian has them as packages.`,
  )
  process.exit(1)
}
installNpmPackages(import.meta.dirname)

const backend = await startRecordingBackend()
const proxies: Proxy[] = []
for (const name of names) proxies.push(await startProxy(name, await freePort(), backend.port))
process.on('exit', () => {
  for (const proxy of proxies) proxy.stop()
})

const vectors = Object.entries(vectorsByTheme).flatMap(([theme, list]) =>
  list.map((vector) => ({ key: `${theme}: ${vector.name}`, bytes: vector.bytes })),
)

/** The number of whole requests that the backend sees, by proxy. */
type Seen = Readonly<Record<ProxyName, number>>

const seenByKey = new Map<string, Seen>()
await sendAll(vectors, 16, 400)
// On a busy machine a late request looks like a refused one: requests that differ are sent again, with more patience.
await sendAll(
  vectors.filter(
    ({ key }) =>
      isMoreThan(key, bothOthers) || isMoreThan(key, ['http-proxy']) || explained[key] !== undefined,
  ),
  4,
  2_000,
)
await backend.close()
report()
process.exit(process.exitCode)

/** @param quietMs long enough for nginx and HAProxy to give up waiting for more bytes */
async function sendAll(list: typeof vectors, parallel: number, quietMs: number): Promise<void> {
  const left = list.values()
  await Promise.all(
    Array.from({ length: parallel }, async () => {
      for (const { key, bytes } of left) {
        const counts = await Promise.all(proxies.map((proxy) => countForwarded(proxy, bytes, quietMs)))
        const [sluice = 0, nginx = 0, haproxy = 0, httpProxy = 0] = counts
        seenByKey.set(key, { sluice, nginx, haproxy, 'http-proxy': httpProxy })
      }
    }),
  )
}

function isMoreThan(key: string, others: readonly ProxyName[]): boolean {
  const seen = seenByKey.get(key)
  return seen !== undefined && others.every((name) => seen.sluice > seen[name])
}

async function countForwarded({ port }: Proxy, bytes: string, quietMs: number): Promise<number> {
  const from = freshAddress()
  await sendAndLeave(port, [bytes], from, quietMs)
  return backend.requestsFrom(from).filter(({ complete }) => complete).length
}

function report(): void {
  const all = [...seenByKey.values()]
  const count = (holds: (seen: Seen) => boolean): number => all.filter(holds).length
  console.log(`${all.length} vectors`)
  for (const name of names) console.log(`  forwarded by ${name}: ${count((seen) => seen[name] > 0)}`)
  console.log(`  forwarded by all four: ${count((seen) => names.every((name) => seen[name] > 0))}`)
  console.log(`  refused by all four: ${count((seen) => names.every((name) => seen[name] === 0))}`)
  console.log(
    `  refused here, forwarded by nginx and haproxy: ${count((seen) => seen.sluice === 0 && seen.nginx > 0 && seen.haproxy > 0)}`,
  )
  console.log(
    `  refused here, forwarded by http-proxy: ${count((seen) => seen.sluice === 0 && seen['http-proxy'] > 0)}`,
  )
  const unlikeBoth = reportMore(bothOthers, explained)
  const unlikeHttpProxy = reportMore(['http-proxy'], explainedBesideHttpProxy)
  const isFine = unlikeBoth.unexplained + unlikeBoth.notSeen + unlikeHttpProxy.unexplained === 0
  process.exitCode = isFine ? 0 : 1
}

/**
 * Prints the requests that only Sluice forwards.
 *
 * @returns how many of these are not explained, and how many explained requests do not differ
 */
function reportMore(
  others: readonly ProxyName[],
  explanations: Readonly<Record<string, string>>,
): { unexplained: number; notSeen: number } {
  const more = [...seenByKey].filter(([key]) => isMoreThan(key, others))
  console.log(`\nMore forwarded here than by ${others.join(' and ')}: ${more.length}`)
  for (const [key, seen] of more) {
    const counts = others.map((name) => `${name} ${seen[name]}`).join(', ')
    console.log(`  ${key} (${seen.sluice}, ${counts}): ${explanations[key] ?? 'NOT EXPLAINED'}`)
  }
  const unexplained = more.filter(([key]) => explanations[key] === undefined)
  const gone = Object.keys(explanations).filter((key) => !more.some(([other]) => other === key))
  for (const key of gone) console.log(`  ${key} is explained and does not differ`)
  console.log(`  ${unexplained.length} of them not explained`)
  return { unexplained: unexplained.length, notSeen: gone.length }
}
