/**
 * How often to try a property: a tenth of `times` in `npm test`, and `times` in the long tests (`PROPERTY_RUNS=all`).
 */
export function runs(times: number): number {
  return process.env['PROPERTY_RUNS'] === 'all' ? times : Math.ceil(times / 10)
}
