import { PagedTable } from './paged-table.ts'

/**
 * Returns the indexes of a table's rows in sorted order. Uses a merge sort, because the engine's sort with a comparator would copy the
 * indexes to its heap.
 *
 * @param width the number of words per row
 */
export function sortRows(words: Uint32Array, count: number, width: number): Uint32Array {
  let from = new PagedTable(Uint32Array, count)
  let into = new PagedTable(Uint32Array, count)
  from.reserve(count)
  into.reserve(count)
  for (let i = 0; i < count; i++) from.values[i] = i
  for (let run = 1; run < count; run *= 2) {
    const [sorted, merged] = [from.values, into.values]
    for (let start = 0; start < count; start += 2 * run) {
      const middle = Math.min(start + run, count)
      const end = Math.min(middle + run, count)
      let left = start
      let right = middle
      for (let at = start; at < end; at++) {
        const one = sorted[left] ?? 0
        const other = sorted[right] ?? 0
        const takesLeft =
          left < middle && (right === end || compareRows(words, one * width, other * width, width) <= 0)
        merged[at] = takesLeft ? one : other
        if (takesLeft) left++
        else right++
      }
    }
    ;[from, into] = [into, from]
  }
  into.truncate(0)
  return from.values.subarray(0, count)
}

function compareRows(words: Uint32Array, at: number, otherAt: number, width: number): number {
  for (let word = 0; word < width; word++) {
    const difference = (words[at + word] ?? 0) - (words[otherAt + word] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
