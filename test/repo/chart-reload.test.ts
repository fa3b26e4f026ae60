import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')

function listIn(path: string, list: RegExp, name: RegExp): string[] {
  const [, found = ''] = list.exec(readFileSync(join(root, path), 'utf8')) ?? []
  return Array.from(found.matchAll(name), ([, each = '']) => each).toSorted()
}

/** Pods that are replaced forget their counters, where those are in memory. */
test('the chart replaces no pod for a setting that a reload takes', () => {
  const reloaded = listIn('docs/operations.md', /\*\*Reloaded settings:\*\*([^.]*)\./, /`(\w+)`/g)
  expect(reloaded).toContain('limits')
  const inChart = /\$reloaded := list (.*) -\}\}/
  expect(listIn('deploy/helm/sluice/templates/_helpers.tpl', inChart, /"(\w+)"/g)).toEqual(reloaded)
})
