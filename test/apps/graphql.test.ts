import { expect, test } from 'vitest'
import { runClient } from './client.ts'
import { startNodeServer } from './server.ts'
import { setStage } from './stage.ts'

// GraphQL Yoga and graphql-sse: subscriptions as server-sent events.

const { direct, ways } = setStage({
  start: async () => ({ port: await startNodeServer('yoga.js'), probe: '/graphql?query={__typename}' }),
  http2: true,
})

let directly: Promise<object> | undefined

test.for(ways)('a GraphQL client gets the same responses and events, $name', async (way) => {
  const expected = await (directly ??= runClient('graphql-sse.js', direct))
  expect(expected).toMatchObject({ echo: true, left: 'event 0 of left', streams: { length: 8 } })
  const protocols = { http: ['none'], https: ['http/1.1'], http2: ['h2'] }[way.protocol]
  expect(await runClient('graphql-sse.js', way)).toEqual({ ...expected, protocols })
})
