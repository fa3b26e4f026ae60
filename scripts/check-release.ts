import { readFileSync } from 'node:fs'
import { findReleaseProblems } from './release.ts'

// Run by the release workflow before it publishes: node scripts/check-release.ts v1.2.3

const read = (name: string): string => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8')
const { version } = JSON.parse(read('package.json')) as { version: string }
const problems = findReleaseProblems(process.argv[2] ?? '', version, read('CHANGELOG.md'))
for (const problem of problems) console.error(problem)
process.exitCode = problems.length > 0 ? 1 : 0
