import { noPlans } from '../../proxy/limits/plans/plan-store.ts'
import { connect } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createLog } from '../../shared/log.ts'
import { composeServing } from '../../proxy/app/serving/compose.ts'
import { createClientTable } from '../../proxy/limits/clients/client-table.ts'
import { explainRequest } from '../../proxy/cli/explain/verb.ts'
import type { GatewaySettings } from '../../proxy/config/settings.ts'
import type { Charge } from '../../proxy/limits/limiter.ts'
import { file, headOf, loadTable, request } from '../support/random/random-requests.ts'

/** Requests sent to each table. */
const REQUESTS = 20
const isLong = process.env['PROPERTY_RUNS'] === 'all'
const numRuns = isLong ? 500 : 12

const log = createLog('test', 'silent')

/** A gateway in this process whose limiter notes what it is asked, and answers that the store is away. */
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
    async send(head: string, from: string): Promise<{ status: number; charged: readonly Charge[] }> {
      charged = []
      const status = await statusOf(listening?.port ?? 0, head, from)
      return { status, charged }
    },
    close: () => serving.close(),
  }
}

function statusOf(port: number, head: string, localAddress: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, localAddress }, () => socket.write(head, 'latin1'))
    socket.on('error', reject)
    socket.once('data', (bytes) => {
      socket.destroy()
      resolve(Number(/^HTTP\/1\.1 (\d{3})/.exec(bytes.toString('latin1'))?.[1]))
    })
    socket.once('close', () => reject(new Error('closed without a response')))
  })
}

test(
  'for random requests and tables, explain says what the gateway asks its limiter',
  { timeout: 3_600_000 },
  async () => {
    const outcomes = new Set<string>()
    await fc.assert(
      fc.asyncProperty(
        file,
        fc.array(request, { minLength: REQUESTS, maxLength: REQUESTS }),
        async (written, requests) => {
          const settings = loadTable(written)
          fc.pre(settings !== undefined)
          const gateway = await serve(settings)
          try {
            for (const each of requests) {
              const { from } = each
              const head = headOf(each)
              const { status, charged } = await gateway.send(head, from)
              const explained = await explainRequest(settings, head, from)
              outcomes.add(explained.outcome)
              const told = explained.rules
                .filter(({ counts }) => counts)
                .flatMap(({ name: rule, requests: quota, keys }) =>
                  keys.map((counter) => [rule, quota, counter]),
                )
              expect(told, head).toEqual(
                charged.map(({ policy, partitionKey }) => [policy.name, policy.quota, partitionKey]),
              )
              if (explained.status !== undefined) expect(explained.status, head).toBe(status)
              else expect(status, head).toBe(explained.outcome === 'limited' ? 503 : 502)
            }
          } finally {
            await gateway.close()
          }
        },
      ),
      { numRuns },
    )
    // All of them have been compared.
    if (isLong)
      expect([...outcomes].toSorted()).toEqual(['answered', 'denied', 'forwarded', 'limited', 'rejected'])
  },
)
