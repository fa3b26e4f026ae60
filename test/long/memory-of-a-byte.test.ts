import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runs } from '../support/random/runs.ts'
import { measureRows, repositoryRoot, rowsFolder } from '../support/cost/run-rows.ts'

/*
 * The attack: bytes of which more is kept than was sent. With the inputs of `cost-of-a-byte`, each reader may keep 40 bytes for each
 * byte, no more where they never end, and pass on no more pieces than there are reads. It is counted in processes of their own, and
 * does not hang on what else the machine does.
 */

test.concurrent.each(readdirSync(join(repositoryRoot, rowsFolder)))(
  'a byte from a client keeps bounded memory alive: %s',
  async (file) => {
    expect(await measureRows(repositoryRoot, file, ['memory'], runs(10))).toEqual([])
  },
  600_000,
)
