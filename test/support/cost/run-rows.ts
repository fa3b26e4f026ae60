import { join } from 'node:path'
import { runNode } from '../gateway/process.ts'
import type { Excess } from './measure.ts'

export const repositoryRoot = join(import.meta.dirname, '../../..')
/** Where the rows are, from the root. */
export const rowsFolder = 'test/property/costs'

/**
 * Measures the readers of a file, and returns what costs too much.
 *
 * @param root of the source that is measured
 * @param draws how many units are drawn beside those of a row
 * @param part of the names of those that are meant: all unless given
 */
export async function measureRows(root: string, file: string, draws: number, part = ''): Promise<Excess[]> {
  const seed = process.env['COST_SEED'] ?? '1'
  const args = [join(root, rowsFolder, file), String(draws), seed, part]
  const { status, stdout, stderr } = await runNode(join(root, 'test/support/cost/run.ts'), {}, args)
  if (status !== 0) throw new Error(`${file} cannot be measured: ${stdout}${stderr}`)
  return JSON.parse(stdout) as Excess[]
}
