import fc from 'fast-check'
import { afterAll, chai } from 'vitest'
import { endFile } from './at-end.ts'
import { checkFile } from '../leaks/check.ts'
import { listResources } from '../leaks/resources.ts'
import { closeSharedConnections } from '../leaks/shared-connections.ts'
import { testSeed } from '../random/seed.ts'
import { seededRandom } from '../random/seeded-random.ts'

// Run by vitest at the start of every test file.
fc.configureGlobal({ seed: testSeed() })
// A Proxy for each assertion finds misspelt matchers, as TypeScript does, and takes more than half of the time of `expect`.
chai.config.useProxy = false
Math.random = seededRandom(testSeed())

const before = listResources()

// The first `afterAll` is the last to run.
afterAll(async () => {
  await endFile()
  await closeSharedConnections()
  await checkFile(before)
})
