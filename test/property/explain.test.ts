import { noPlans } from '../../proxy/limits/plans/plan-store.ts'
import { connect } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createLog } from '../../shared/log.ts'
import { composeServing } from '../../proxy/app/serving/compose.ts'
import { createClientTable } from '../../proxy/limits/clients/client-table.ts'
import { explainRequest } from '../../proxy/cli/explain/verb.ts'
import type { GatewaySettings } from '../../proxy/config/settings.ts'
import type { Explanation } from '../../proxy/limits/explain/explain.ts'
import type { Charge } from '../../proxy/limits/limiter.ts'
import { Devices } from '../../proxy/limits/keys/devices/devices.ts'
import { DEVICE_SECRET } from '../support/gateway/every-kind.ts'
import {
  bytesOf,
  fileOfEveryKind,
  loadTableOfEveryKind,
  requestOfAnyKind,
} from '../support/random/random-tables.ts'

/** The number of requests sent to each table. */
const REQUESTS = 20
const isLong = process.env['PROPERTY_RUNS'] === 'all'
const numRuns = isLong ? 500 : 12

const log = createLog('test', 'silent')

/** A gateway in this process. Its limiter records its arguments, and reports the store as unavailable. */
async function serve(settings: GatewaySettings) {
  let charged: readonly Charge[] = []
  const serving = await composeServing(settings, log, {
    count: (telemetry) => ({
      limiter: {
        decide(charges) {
          charged = charges
          return { outcome: 'unavailable', uncertain: false }
        },
        settle: () => undefined,
      },
      operations: {
        inspect: () => Promise.resolve([]),
        reset: () => Promise.resolve('done'),
        plans: noPlans,
      },
      clientTable: createClientTable(
        { policies: [], now: () => 0, telemetry, logAddresses: true, log },
        undefined,
      ),
      storeState: () => 'memory',
      useRules: () => Promise.resolve(),
      ready: () => Promise.resolve(),
      close: () => Promise.resolve(),
    }),
  })
  const listening = await serving.listen({ port: 0, host: '127.0.0.1' })
  return {
    async send(bytes: string, from: string): Promise<{ status: number; charged: readonly Charge[] }> {
      charged = []
      const status = await statusOf(listening?.port ?? 0, bytes, from)
      return { status, charged }
    },
    close: () => serving.close(),
  }
}

/** The final status. */
function statusOf(port: number, sent: string, localAddress: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect({ host: '127.0.0.1', port, localAddress }, () => socket.write(sent, 'latin1'))
    socket.on('error', reject)
    socket.on('data', (bytes) => {
      text = (text + bytes.toString('latin1')).replace(/^HTTP\/1\.1 1\d\d [^]*?\r\n\r\n/, '')
      if (!text.includes('\r\n')) return
      socket.destroy()
      resolve(Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]))
    })
    socket.once('close', () => reject(new Error('closed without a response')))
  })
}

type Explained = Explanation['rules'][number]

/** A charge, with the fields of its policy that `explain` shows. */
function describeCharge({ policy, partitionKey }: Charge, explained: readonly Explained[]): unknown[] {
  const { name, quota, override = 0, windowMs, calendar, algorithm, mode, over, plan } = policy
  const { requests, why = '' } = explained.find((rule) => rule.name === name) ?? {}
  // If an override applies to only some accounts of a request, its reason states the quota for these.
  const told = why.includes(`override ${override + 1} (${quota} requests) applies`) ? requests : quota
  return [name, told, windowMs / 1000, calendar, algorithm, mode, over, plan, partitionKey]
}

function describeExplained(rule: Explained): unknown[][] {
  const { name, requests, windowSeconds, calendar, algorithm, mode, over, plan, keys } = rule
  return keys.map((key) => [name, requests, windowSeconds, calendar, algorithm, mode, over, plan, key])
}

/** The devices of a client after a request with these charges has signed in, as one cookie; empty if there are none. */
function deviceCookieAfter(charged: readonly Charge[], cookie: string): string {
  const devices = new Devices({ secrets: [DEVICE_SECRET] })
  const [set] = devices.setCookies(charged, { status: 200, cookies: cookie, isSecure: false })
  return set?.split(';', 1)[0] ?? cookie
}

test(
  'for random requests and tables, explain says what the gateway asks its limiter',
  { timeout: 3_600_000 },
  async () => {
    const outcomes = new Set<string>()
    await fc.assert(
      fc.asyncProperty(
        fileOfEveryKind,
        fc.array(requestOfAnyKind, { minLength: REQUESTS, maxLength: REQUESTS }),
        async (written, requests) => {
          const settings = loadTableOfEveryKind(written)
          fc.pre(settings !== undefined)
          const gateway = await serve(settings)
          let cookie = ''
          try {
            for (const each of requests) {
              const { from, body, hasDevices } = each
              const lines = hasDevices && cookie !== '' ? [...each.lines, `Cookie: ${cookie}`] : each.lines
              const { head, content } = bytesOf({ ...each, lines })
              const { status, charged } = await gateway.send(head + content, from)
              cookie = deviceCookieAfter(charged, cookie)
              const explained = await explainRequest(settings, head, from, body?.text)
              outcomes.add(explained.outcome)
              const told = explained.rules.filter(({ counts }) => counts).flatMap(describeExplained)
              const about = `${head}${content.slice(0, 200)}`
              expect(told, about).toEqual(charged.map((charge) => describeCharge(charge, explained.rules)))
              if (explained.status !== undefined) expect(explained.status, about).toBe(status)
              else expect(status, about).toBe(explained.outcome === 'limited' ? 503 : 502)
            }
          } finally {
            await gateway.close()
          }
        },
      ),
      { numRuns },
    )
    // All outcomes have occurred.
    if (isLong)
      expect([...outcomes].toSorted()).toEqual(['answered', 'denied', 'forwarded', 'limited', 'rejected'])
  },
)
