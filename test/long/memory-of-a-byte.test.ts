import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runs } from '../support/random/runs.ts'
import { measureRows, repositoryRoot, rowsFolder } from '../support/cost/run-rows.ts'

/*
 * The attack: bytes that take more memory than was sent. With the inputs of `cost-of-a-byte`, each reader may keep 40 bytes for each byte,
 * and no more for endless input, and may pass on only about as many pieces as there are reads. Separate processes count memory and pieces,
 * so the results do not depend on other load.
 */

test.concurrent.each(readdirSync(join(repositoryRoot, rowsFolder)))(
  'a byte from a client keeps bounded memory alive: %s',
  async (file) => {
    expect(await measureRows(repositoryRoot, file, ['memory'], runs(10))).toEqual([])
  },
  600_000,
)
