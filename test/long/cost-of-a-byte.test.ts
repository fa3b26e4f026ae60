import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runs } from '../support/random/runs.ts'
import { measureRows, repositoryRoot, rowsFolder } from '../support/cost/run-rows.ts'

/*
 * The attack: bytes that cost more to read than to send. Each reader gets the worst inputs of its largest size, those that are known
 * and others that are drawn, whole and in single bytes. They may take 20 ms of CPU, or what their row says, in proportion to size; `memory-of-a-byte` says
 * what they may keep. `test/support/cost/row.ts` says how a reader is added.
 */

test.concurrent.each(readdirSync(join(repositoryRoot, rowsFolder)))(
  'a byte from a client costs bounded CPU time: %s',
  async (file) => {
    expect(await measureRows(repositoryRoot, file, ['time'], runs(10))).toEqual([])
  },
  600_000,
)
