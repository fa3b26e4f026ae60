import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runNode } from '../support/gateway/process.ts'
import { runs } from '../support/random/runs.ts'

/*
 * The attack: bytes that cost more to read than to send. Each reader gets the worst inputs of its largest size, those that are known
 * and others that are drawn, whole and in single bytes. They may take 20 ms of CPU and 40 bytes of memory a byte, time in proportion
 * to size, and no more memory where they never end. `test/support/cost/row.ts` says how a reader is added.
 */

const folder = join(import.meta.dirname, 'costs')

test.each(readdirSync(folder))(
  'what a byte costs: %s',
  async (file) => {
    const seed = process.env['COST_SEED'] ?? '1'
    const args = [join(folder, file), String(runs(30)), seed]
    const { status, stdout, stderr } = await runNode('test/support/cost/run.ts', {}, args)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(JSON.parse(stdout)).toEqual([])
  },
  300_000,
)
