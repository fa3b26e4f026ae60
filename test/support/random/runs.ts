/**
 * How often a property is tried: a tenth of `times` by `npm test`, and all of them with the long ones
 * (`PROPERTY_RUNS=all`).
 */
export function runs(times: number): number {
  return process.env['PROPERTY_RUNS'] === 'all' ? times : Math.ceil(times / 10)
}
