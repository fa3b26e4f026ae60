import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openLog } from '../../../../proxy/cli/replay/logs/read-lines.ts'
import { makeTemporaryDirectory } from '../../../support/run/temporary-directory.ts'

test('a byte-order mark before the first line of a log is not part of it', async () => {
  const path = join(makeTemporaryDirectory(), 'access.log')
  writeFileSync(path, '\ufefffirst\r\nsecond\n')
  const batches = await Array.fromAsync(openLog(path).batches)
  expect(batches.flat()).toEqual(['first\r', 'second'])
})
