import { globSync } from 'node:fs'
import { matchesGlob } from 'node:path'
import { expect, test } from 'vitest'
import config from '../../vitest.config.ts'

type Project = {
  readonly test: {
    readonly name: string
    readonly include: string[]
    readonly exclude?: string[]
    readonly maxWorkers?: number
    readonly sequence?: { readonly groupOrder?: number }
  }
}

const projects = (config.test?.projects ?? []) as Project[]
const files = globSync('test/**/*.test.ts', { exclude: ['**/node_modules/**'] })

function projectsOf(file: string): string[] {
  const matches = (globs: readonly string[] = []): boolean => globs.some((glob) => matchesGlob(file, glob))
  return projects
    .filter(({ test: { include, exclude } }) => matches(include) && !matches(exclude))
    .map(({ test: { name } }) => name)
}

test('a project runs every test file, and only one project of npm test does', () => {
  const counts = files.map((file) => {
    const names = projectsOf(file)
    return [
      file,
      names.length > 0,
      names.filter((name) => ['pure', 'sockets', 'timing'].includes(name)).length <= 1,
    ]
  })
  expect(files.length).toBeGreaterThan(200)
  expect(counts.filter(([, isRun, isOnce]) => !isRun || !isOnce)).toEqual([])
})

test('vitest can run any of the projects together: those of one group have the same number of workers', () => {
  const groups = Map.groupBy(projects, ({ test: { sequence } }) => sequence?.groupOrder)
  const counts = [...groups.values()].map((group) => new Set(group.map((each) => each.test.maxWorkers)).size)
  expect(counts).toEqual(counts.map(() => 1))
})

test.each([
  ['test/unit/http/http1/connection.test.ts', ['sockets']],
  ['test/property/target.test.ts', ['timing', 'fault']],
  ['test/property/bounded-memory.test.ts', ['pure', 'fault']],
  ['test/long/failover.test.ts', ['fault']],
  ['test/e2e/limits.test.ts', ['sockets']],
  ['test/e2e/presets.test.ts', ['fault']],
  ['test/wire/mutations.test.ts', ['sockets', 'fault']],
  ['test/wire/requests.test.ts', ['sockets', 'fault']],
])('%s belongs to %s', (file, names) => {
  expect(projectsOf(file)).toEqual(names)
})
