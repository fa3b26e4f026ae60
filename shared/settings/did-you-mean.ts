/**
 * Maximum number of typing mistakes. Words whose lengths differ by more are not compared, because the directory of `sluice.yaml` may have
 * thousands of files.
 */
const MAX_DISTANCE = 3

/**
 * Returns the known word that a mistyped word probably stands for. The two are equal except for case, `-` and `_`, or differ by one or two
 * typing mistakes, in long words by three, as a plural in `ies` differs from its singular by three. Made for use at the start of the
 * process.
 */
export function nearestWord(word: string, known: readonly string[]): string | undefined {
  const plainWord = plain(word)
  const ranked = known
    .filter((candidate) => Math.abs(plain(candidate).length - plainWord.length) <= MAX_DISTANCE)
    .map((candidate) => ({ candidate, distance: editDistance(plainWord, plain(candidate)) }))
    .toSorted((a, b) => a.distance - b.distance)
  const best = ranked[0]
  if (!best) return undefined
  const shorter = Math.min(plainWord.length, plain(best.candidate).length)
  const allowed = shorter < 6 ? 1 : shorter < 12 ? 2 : MAX_DISTANCE
  return best.distance <= allowed ? best.candidate : undefined
}

/** The form in which words are compared: in lower case, without `-` and `_`. */
export function plain(word: string): string {
  return word.toLowerCase().replace(/[-_]/g, '').slice(0, 40)
}

/** The number of insertions, deletions, replacements and swaps of neighbours between two words (optimal string alignment). */
function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  const at = (i: number, j: number): number => rows[i]?.[j] ?? Infinity
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    rows.push(row)
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? at(i - 2, j - 2) + 1 : Infinity
      row.push(Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, replaced, swapped))
    }
  }
  return at(a.length, b.length)
}
