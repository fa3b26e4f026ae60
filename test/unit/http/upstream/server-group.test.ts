import { expect, test } from 'vitest'
import type { UpstreamExchange } from '../../../../proxy/http/upstream/exchange.ts'
import type { ServerPool } from '../../../../proxy/http/upstream/servers/server-pool.ts'
import { UpstreamFailure, type FailureKind } from '../../../../proxy/http/upstream/failure.ts'
import { createRoundRobin } from '../../../../proxy/http/upstream/servers/balancer.ts'
import { ServerGroup } from '../../../../proxy/http/upstream/servers/group.ts'
import { Server } from '../../../../proxy/http/upstream/servers/server.ts'

/** A server that fails each request in this way, or takes it, and adds its name to `asked`. */
function createServer(name: string, asked: string[], kind?: FailureKind): Server {
  const send = (exchange: UpstreamExchange): void => {
    asked.push(name)
    if (kind) exchange.onFailure(new UpstreamFailure(kind, 'failed'))
  }
  const pool = { send, retry: send, busy: 0 }
  return new Server(
    { url: new URL(`http://${name}`), address: undefined },
    () => pool as unknown as ServerPool,
  )
}

function createExchange(isRetryable: boolean): UpstreamExchange {
  return { method: 'GET', client: '', isCancelled: false, isRetryable, onFailure: () => undefined } as never
}

test.each<[FailureKind, boolean, string]>([
  ['busy', true, 'abababab'],
  ['aborted', true, 'abababab'],
  ['reset', false, 'ababab'],
  ['reset', true, 'ababab'],
  ['refused', false, 'ababab'],
])('a failed request takes no turn of the others: %s, may be sent again: %s', (kind, isRetryable, order) => {
  const asked: string[] = []
  const servers = [createServer('a', asked, kind), createServer('b', asked)]
  const group = new ServerGroup(servers, createRoundRobin(), () => 0)
  while (asked.length < order.length) group.send(createExchange(isRetryable))
  expect(asked.join('')).toBe(order)
})
