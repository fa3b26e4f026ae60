import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runs } from '../support/random/runs.ts'
import { measureRows, repositoryRoot, rowsFolder } from '../support/cost/run-rows.ts'

/*
 * The attack: bytes that cost more to read than to send. Each reader gets the worst inputs of its largest size, both known and randomly
 * drawn ones, whole and in single bytes. Each input may take 20 ms of CPU, or what its row says, and the time must be proportional to its
 * size. `memory-of-a-byte` measures memory. `test/support/cost/row.ts` says how to add a reader.
 */

test.concurrent.each(readdirSync(join(repositoryRoot, rowsFolder)))(
  'a byte from a client costs bounded CPU time: %s',
  async (file) => {
    expect(await measureRows(repositoryRoot, file, ['time'], runs(10))).toEqual([])
  },
  600_000,
)
