import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { algorithms } from '../../proxy/limits/algorithms/registry.ts'
import { createMetrics } from '../../proxy/telemetry/metrics/metrics.ts'
import { watchProcess } from '../../proxy/telemetry/metrics/prometheus.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8')
const metrics = createMetrics({
  policies: [],
  limitsEnabled: true,
  version: '1.2.3',
  readNode: watchProcess('sluice_'),
  readConfig: () => ({ hash: '3f2a9c01be77', lastReadSucceeded: true, lastSuccessAtMs: 0 }),
})

/** The cells of the rows that begin with the name of a metric. */
const rows = page
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter(([, name]) => name?.startsWith('`sluice_'))
  .map((cells) => ({ name: cells[1]?.replaceAll('`', '') ?? '', text: cells.slice(2).join(' ') }))

// Node reads some of its metrics from /proc, which only Linux has.
test.runIf(process.platform === 'linux')('docs/operations.md lists every metric and no other', async () => {
  const names = (await metrics.takeSnapshot()).map((metric) => metric.name)
  const listed = rows.map((row) => row.name)
  expect(listed.sort()).toEqual(names.filter((name) => name.startsWith('sluice_')).sort())
  const ofNode = listed.filter((name) => /^sluice_(process|nodejs)_/.test(name))
  expect(names.filter((name) => !name.startsWith('sluice_')).sort()).toEqual(
    ofNode.map((name) => name.slice('sluice_'.length)),
  )
})

test('docs/operations.md names every label and label value that does not come from the configuration', async () => {
  for (const metric of await metrics.takeSnapshot()) {
    if (/^(sluice_)?nodejs_/.test(metric.name)) continue
    const { text = '' } = rows.find((row) => row.name === metric.name) ?? {}
    for (const [label, value] of metric.values.flatMap(({ labels }) => Object.entries(labels))) {
      if (label === 'le') continue
      expect(text, metric.name).toContain(`\`${label}\``)
      if (label === 'version' || label === 'hash' || label === 'class') continue
      expect(text, metric.name).toContain(`\`${value ?? ''}\``)
    }
  }
})

test('docs/operations.md lists the tables of every algorithm', () => {
  for (const table of algorithms.flatMap((algorithm) => Object.keys(algorithm.memoryTables(1))))
    expect(page).toMatch(new RegExp(`^\\| .*\`${table}\`.* \\| `, 'm'))
})

test('queries and text name only metrics that exist', async () => {
  const names = new Set((await metrics.takeSnapshot()).map((metric) => metric.name))
  const named = page.match(/\bsluice_[a-z0-9_]+/g) ?? []
  expect(named.filter((name) => !names.has(name) && process.platform === 'linux')).toEqual([])
})
