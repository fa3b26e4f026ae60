import { expect, test } from 'vitest'
import config from '../../../vitest.config.ts'
import { stepsOfAll, stepsOfChange } from '../../tiers/steps.ts'

type Project = { readonly test: { readonly name: string; readonly include: readonly string[] } }

const projects = (config.test?.projects ?? []) as unknown as readonly Project[]
const selectionsOfAll = stepsOfAll([], 1).map(({ command, tests = '' }) => ({
  command,
  project: /^--project (\S+)/.exec(tests)?.[1],
  paths: tests.split(' ').slice(2),
}))
const commands = ['npx vitest run', '.ci/test-on-node 24']

test.each(commands)('before a release %s runs each file of the project fault in one step', (command) => {
  const include = projects.find(({ test: { name } }) => name === 'fault')?.test.include ?? []
  expect(include.length).toBeGreaterThan(5)
  // The step of mutations repeats what another has.
  const folders = selectionsOfAll
    .filter((selection) => selection.command === command && selection.project === 'fault')
    .map(({ paths }) => paths)
    .filter((paths) => paths.every((path) => !path.endsWith('.ts')))
  const selectedBy = include.map((pattern) =>
    folders.filter((paths) => paths.some((path) => pattern.startsWith(`${path}/`))),
  )
  expect(include.filter((_, index) => selectedBy[index]?.length !== 1)).toEqual([])
})

test('before a release every project has a step, but for suites of other projects', () => {
  const tests = stepsOfAll([], 1).map(({ tests = '' }) => tests)
  const selected = new Set(
    tests.flatMap((each) => [...each.matchAll(/--project (\S+)/g)].map(([, name]) => name)),
  )
  const names = projects.map(({ test: { name } }) => name)
  expect(names.filter((name) => name !== 'peers' && !selected.has(name))).toEqual([])
})

test('no step of a change is killed because the machine is busy', () => {
  const seeds = [{ seed: 1, project: 'pure', file: 'test/a.test.ts', test: 'counts' }]
  const short = stepsOfChange(seeds).filter(({ limitMinutes }) => limitMinutes < 30)
  expect(short.map(({ name }) => name)).toEqual([])
})
