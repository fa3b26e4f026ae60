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
// Chai's Proxy for each assertion takes more than half of the time of `expect`, only to find misspelt matchers, which TypeScript finds too.
chai.config.useProxy = false
Math.random = seededRandom(testSeed())

const before = listResources()

// The `afterAll` that is registered first runs last.
afterAll(async () => {
  await endFile()
  await closeSharedConnections()
  await checkFile(before)
})
