import { freePort } from '../support/ports.ts'
import { freshAddress, sendAndLeave } from '../support/raw-client.ts'
import { startRecordingBackend } from '../support/recording-backend.ts'
import { vectorsByTheme } from '../wire/vectors.ts'
import { explained } from './explained.ts'
import { missingPrograms, startProxy, type Proxy, type ProxyName } from './proxies.ts'

// The same bytes to nginx, to HAProxy and to this gateway, before the same recording backend: `npm run test:differential`.
// Where only this gateway forwards, it may be the one that reads too much into them.

const names: readonly ProxyName[] = ['sluice', 'nginx', 'haproxy']
const parallel = 16
/** HAProxy and nginx take a moment to give up what they wait for. */
const quietMs = 200

const missing = missingPrograms()
if (missing.length > 0) {
  console.log(
    `Nothing was compared: ${missing.join(' and ')} could not be found; Debian has them as packages.`,
  )
  process.exit(1)
}

const backend = await startRecordingBackend()
const proxies: Proxy[] = []
for (const name of names) proxies.push(await startProxy(name, await freePort(), backend.port))
process.on('exit', () => {
  for (const proxy of proxies) proxy.stop()
})

const vectors = Object.entries(vectorsByTheme).flatMap(([theme, list]) =>
  list.map((vector) => ({ key: `${theme}: ${vector.name}`, bytes: vector.bytes })),
)

/** How many whole requests the backend sees, by proxy. */
type Seen = Readonly<Record<ProxyName, number>>

const seenByKey = new Map<string, Seen>()
let next = 0
await Promise.all(
  Array.from({ length: parallel }, async () => {
    for (let vector = vectors[next++]; vector; vector = vectors[next++]) {
      const counts = await Promise.all(proxies.map((proxy) => countForwarded(proxy, vector.bytes)))
      const [sluice = 0, nginx = 0, haproxy = 0] = counts
      seenByKey.set(vector.key, { sluice, nginx, haproxy })
    }
  }),
)
await backend.close()
report()
process.exit(process.exitCode)

async function countForwarded({ port }: Proxy, bytes: string): Promise<number> {
  const from = freshAddress()
  await sendAndLeave(port, [bytes], from, quietMs)
  return backend.requestsFrom(from).filter(({ complete }) => complete).length
}

function report(): void {
  const all = [...seenByKey]
  const count = (holds: (seen: Seen) => boolean): number => all.filter(([, seen]) => holds(seen)).length
  console.log(`${all.length} vectors`)
  for (const name of names) console.log(`  forwarded by ${name}: ${count((seen) => seen[name] > 0)}`)
  console.log(`  forwarded by all three: ${count((seen) => names.every((name) => seen[name] > 0))}`)
  console.log(`  refused by all three: ${count((seen) => names.every((name) => seen[name] === 0))}`)
  console.log(
    `  refused here, forwarded by both: ${count((seen) => seen.sluice === 0 && seen.nginx > 0 && seen.haproxy > 0)}`,
  )

  const alone = all.filter(([, seen]) => seen.sluice > Math.max(seen.nginx, seen.haproxy))
  console.log(`\nMore forwarded here than by either: ${alone.length}`)
  for (const [key, { sluice, nginx, haproxy }] of alone)
    console.log(
      `  ${key} (${sluice}, nginx ${nginx}, haproxy ${haproxy}): ${explained[key] ?? 'NOT EXPLAINED'}`,
    )

  const unexplained = alone.filter(([key]) => explained[key] === undefined)
  const gone = Object.keys(explained).filter((key) => !alone.some(([other]) => other === key))
  for (const key of gone) console.log(`  ${key} is explained and does not differ any more`)
  console.log(`\n${unexplained.length} of them not explained`)
  process.exitCode = unexplained.length + gone.length > 0 ? 1 : 0
}
