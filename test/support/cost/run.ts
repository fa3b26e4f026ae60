import { measure, type Cost } from './measure.ts'
import type { CostRow } from './row.ts'

/*
 * Measures the readers of one file in a process of its own, so that nothing else shares its heap and compiled code. Prints the readers over
 * a bound as a JSON list. Arguments: the file, which costs, how many units are drawn for each reader, the seed, and a part of the names.
 */

const [file = '', costs = '', draws = '0', seed = '1', part = ''] = process.argv.slice(2)
const { rows } = (await import(file)) as { readonly rows: readonly CostRow[] }
const meant = rows.filter(({ name }) => name.includes(part))
console.log(
  JSON.stringify(
    meant.flatMap((row) => measure(row, Number(draws), Number(seed), costs.split(',') as Cost[])),
  ),
)
