import { existsSync, readFileSync, writeFileSync } from 'node:fs'

/** A seed with which a test file once failed. `.ci/run` runs the file with this seed from then on. */
export type FoundSeed = {
  readonly seed: number
  readonly project: string
  /** Path from the repository's root. */
  readonly file: string
  /** The name of the failed test, for readers. */
  readonly test: string
}

const FILE = new URL('../seeds.json', import.meta.url)

/** Reads the seeds whose file still exists. */
export function readSeeds(): FoundSeed[] {
  return (JSON.parse(readFileSync(FILE, 'utf8')) as FoundSeed[]).filter(({ file }) => existsSync(file))
}

export function addSeed(found: FoundSeed): void {
  const known = JSON.parse(readFileSync(FILE, 'utf8')) as FoundSeed[]
  if (known.some(({ seed, file }) => seed === found.seed && file === found.file)) return
  writeFileSync(FILE, `${JSON.stringify([...known, found], undefined, 2)}\n`)
}
