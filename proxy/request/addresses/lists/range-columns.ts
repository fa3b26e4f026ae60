import type { RangeData } from './sorted-ranges.ts'

/** Returns the columns of a list as bytes, in the order that `dataOfColumns` expects. */
export function columnsOf({ ipv4Starts, ipv4Ends, ipv4Index, ipv6Short, ipv6Long }: RangeData): Buffer[] {
  const networks = [ipv6Short, ipv6Long].flatMap(({ starts, bits, sample }) => [starts, bits, sample])
  return [ipv4Starts, ipv4Ends, ipv4Index, ...networks].map(({ buffer, byteOffset, byteLength }) =>
    Buffer.from(buffer, byteOffset, byteLength),
  )
}

/** @param columns the pieces of each column */
export function dataOfColumns(columns: readonly (readonly Buffer[])[]): RangeData {
  const bytes = (column: number): Uint8Array<ArrayBuffer> =>
    new Uint8Array(Buffer.concat(columns[column] ?? []))
  const words = (column: number): Uint32Array<ArrayBuffer> => new Uint32Array(bytes(column).buffer)
  return {
    ipv4Starts: words(0),
    ipv4Ends: words(1),
    ipv4Index: words(2),
    ipv6Short: { starts: words(3), bits: bytes(4), sample: words(5) },
    ipv6Long: { starts: words(6), bits: bytes(7), sample: words(8) },
  }
}
