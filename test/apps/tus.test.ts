import { expect, test } from 'vitest'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { runClient } from './client.ts'
import { startNodeServer } from './server.ts'
import { setStage } from './stage.ts'

// The tus server and its client: uploads that are interrupted and resumed.

const { direct, ways } = setStage({
  start: async () => ({
    port: await startNodeServer('tus.js', { FILES: makeTemporaryDirectory() }),
    probe: '/',
  }),
  http2: false,
})

const kept = { own: true, whole: true }

test.for([direct, ...ways])('a tus client uploads and resumes as without a proxy, $name', async (way) => {
  expect(await runClient('tus.js', way)).toEqual({
    whole: kept,
    chunked: kept,
    sideBySide: [kept, kept, kept],
    resumed: { ...kept, fromTheMiddle: true },
    resumedAfterCut: kept,
    gone: 404,
  })
})
