import { join } from 'node:path'
import { spawnCommand } from '../gateway/process.ts'
import type { Cost, Excess } from './measure.ts'

export const repositoryRoot = join(import.meta.dirname, '../../..')
/** The folder of the rows, from the root. */
export const rowsFolder = 'test/property/costs'

/** Without a compile cache, a process would take longer to compile the readers than to measure some of them. */
const cached = { NODE_COMPILE_CACHE: join(repositoryRoot, 'node_modules/.cache/compiled') }

/** The number of further processes in which an excess has to show again. */
const CONFIRMATIONS = 3

/**
 * Measures the readers of a file. Returns those that cost too much in one process and again in each of several more, as V8 compiles a
 * reader differently from process to process.
 *
 * @param root of the source that is measured
 * @param draws how many units are drawn in addition to those of a row
 * @param part measures only the readers whose names contain it: all unless given
 */
export async function measureRows(
  root: string,
  file: string,
  costs: readonly Cost[],
  draws: number,
  part = '',
): Promise<Excess[]> {
  let found = await measureOnce(root, file, costs, draws, part)
  for (let again = 0; again < CONFIRMATIONS && found.length > 0; again++) {
    const rows = [...new Set(found.map(({ row }) => row))]
    const confirmed = await Promise.all(rows.map((row) => measureOnce(root, file, costs, draws, row)))
    const places = new Set(confirmed.flat().map(placeOf))
    found = found.filter((excess) => places.has(placeOf(excess)))
  }
  return found
}

function placeOf({ row, unit, way }: Excess): string {
  return JSON.stringify([row, unit, way])
}

async function measureOnce(
  root: string,
  file: string,
  costs: readonly Cost[],
  draws: number,
  part: string,
): Promise<Excess[]> {
  const seed = process.env['COST_SEED'] ?? '1'
  const script = join(root, 'test/support/cost/run.ts')
  const args = [script, join(root, rowsFolder, file), costs.join(), String(draws), seed, part]
  // The time would include V8's own threads. With a large young generation, V8 copies less before memory is counted.
  const options = costs.includes('time')
    ? ['--single-threaded']
    : ['--single-threaded', '--min-semi-space-size=64', '--max-semi-space-size=64']
  const measuring = spawnCommand(process.execPath, cached, [...options, ...args])
  if ((await measuring.exit) !== 0) throw new Error(`${file} cannot be measured: ${measuring.output()}`)
  return JSON.parse(measuring.stdout()) as Excess[]
}
