import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runs } from '../support/random/runs.ts'
import { measureRows, repositoryRoot, rowsFolder } from '../support/cost/run-rows.ts'

/*
 * The attack: bytes that cost more to read than to send. Each reader gets the worst inputs of its largest size, those that are known
 * and others that are drawn, whole and in single bytes. They may take 20 ms of CPU and 40 bytes of memory a byte, time in proportion
 * to size, and no more memory where they never end. `test/support/cost/row.ts` says how a reader is added.
 */

test.each(readdirSync(join(repositoryRoot, rowsFolder)))(
  'what a byte costs: %s',
  async (file) => {
    expect(await measureRows(repositoryRoot, file, runs(10))).toEqual([])
  },
  600_000,
)
