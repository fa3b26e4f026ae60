import { expect } from 'vitest'
import { send } from '../support/gateway/gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { parseExposition } from '../support/metrics/prometheus.ts'
import { eventually } from '../support/wait/eventually.ts'
import type { Way } from './stage.ts'

/** The number of requests that a rule has refused at the gateway of a way. */
export async function countRefusals(way: Way, policy: string): Promise<number> {
  const { body } = await send(adminPortOf(way), 'GET', '/metrics')
  const refused = parseExposition(body).samples.filter(
    ({ name, labels }) =>
      name === 'sluice_decisions_total' && labels['policy'] === policy && labels['outcome'] === 'refused',
  )
  return refused.reduce((sum, { value }) => sum + value, 0)
}

/**
 * Resets the quota of a rule for the client at 127.0.0.1, as an operator does. These limits last an hour, so that no machine is too slow
 * for them.
 */
export async function letIn(way: Way, policy: string): Promise<void> {
  const client = { ip: '127.0.0.1' }
  const { status } = await askOperator({ adminPort: adminPortOf(way) }, 'POST', '/api/clients/reset', {
    policy,
    client,
  })
  expect(status).toBe(200)
}

/**
 * Waits for a client that retries by itself, and resets its quota each time that it is refused.
 *
 * @returns whether it was refused, and its result
 */
export async function letInWhenRefused<Value>(
  way: Way,
  policy: string,
  client: Promise<Value>,
): Promise<{ value: Value; isRefused: boolean }> {
  let isDone = false
  const end = (): void => void (isDone = true)
  client.then(end, end)
  const before = await countRefusals(way, policy)
  let seen = before
  const look = async (): Promise<boolean> => {
    const refused = await countRefusals(way, policy)
    if (refused > seen) await letIn(way, policy)
    seen = refused
    return isDone
  }
  await eventually('the client is done', look, { endMs: 100_000 })
  return { value: await client, isRefused: seen > before }
}

/** Runs a client that does not retry by itself until it succeeds, and resets its quota each time. */
export async function untilLetIn<Value>(
  way: Way,
  policy: string,
  start: () => Promise<Value>,
): Promise<Value> {
  const tries = async (): Promise<{ value: Value }> => {
    await letIn(way, policy)
    return { value: await start() }
  }
  return (await eventually('the client ends well', tries, { endMs: 100_000 })).value
}

function adminPortOf({ name, adminPort }: Way): number {
  if (adminPort === undefined) throw new Error(`there is no gateway on the way "${name}"`)
  return adminPort
}
