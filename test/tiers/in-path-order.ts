import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { seededRandom } from '../support/random/seeded-random.ts'
import { testSeed } from '../support/random/seed.ts'

/**
 * Runs test files by path, in the order in which the configuration lists their projects. The order does not depend on which files took long
 * or failed last time. With `TEST_ORDER=random` the seed determines the order.
 */
export class InPathOrder extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const random = process.env['TEST_ORDER'] === 'random' ? seededRandom(testSeed()) : undefined
    const byPath = files.toSorted((a, b) => (a.moduleId < b.moduleId ? -1 : 1))
    const keys = new Map(
      byPath.map((file, index) => {
        const { config, vitest } = file.project
        const project = vitest.projects.indexOf(file.project)
        return [file, [config.sequence.groupOrder, project, random?.() ?? index] as const]
      }),
    )
    const key = (file: TestSpecification) => keys.get(file) ?? ([0, 0, 0] as const)
    return Promise.resolve(byPath.toSorted((a, b) => compare(key(a), key(b))))
  }
}

type Key = readonly [group: number, project: number, place: number]

function compare(a: Key, b: Key): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2]
}
