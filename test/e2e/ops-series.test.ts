import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { writeMmdb } from '../support/geo/mmdb.ts'
import { send } from '../support/gateway/gateway.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { alertQueries, alerts, dashboard, dashboardQueries } from '../support/metrics/ops-queries.ts'
import { parseExposition, type Sample } from '../support/metrics/prometheus.ts'
import { readQuery, type Selector } from '../support/metrics/promql.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

/** Labels that Prometheus and its operator for Kubernetes add to the series of a target. */
const ofPrometheus = ['job', 'instance', 'namespace', 'service']

// The metrics of bans, lists and databases exist only if the settings have them.
const settings = `
denyList: [{ file: denied.txt }]
geoip: { country: country.mmdb }
limits:
  - { name: login, match: POST /login, requests: 9, window: 1h, ban: { after: 3, for: 1h } }
  - { name: german, match: GET /, when: { country: DE }, requests: 9, window: 1h }
`

let samples: readonly Sample[] = []

beforeAll(async () => {
  const backend = await startBackend((_, response) => response.end('ok'))
  const file = writeConfigFile(settings)
  writeFileSync(join(dirname(file), 'denied.txt'), '192.0.2.1\n')
  writeFileSync(
    join(dirname(file), 'country.mmdb'),
    writeMmdb({ '192.0.2.0/24': { country: { iso_code: 'DE' } } }),
  )
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE: file })
  expect((await gateway.send('POST', '/login')).status).toBe(200)
  // The metric of the certificate exists only with TLS.
  const secure = await startHosted({ UPSTREAM_URL: backend.url, ...tlsSettings() })
  const scrapes = await Promise.all(
    [gateway, secure].map(({ adminPort }) => send(adminPort, 'GET', '/metrics')),
  )
  const [plain = [], others = []] = scrapes.map(({ body }) => parseExposition(body).samples)
  const ofCertificate = others.filter(({ name }) => name.startsWith('sluice_tls_'))
  expect([plain.some(({ name }) => name.startsWith('sluice_tls_')), ofCertificate.length]).toEqual([false, 1])
  samples = [...plain, ...ofCertificate]
})

/** The samples that a selector with `=` and `!=` selects; for `!=` the label need only exist. */
function selected({ name, matchers }: Selector): Sample[] {
  return samples.filter(
    (sample) =>
      sample.name === name &&
      matchers.every(({ label, operator, value }) => {
        if (ofPrometheus.includes(label)) return true
        if (operator === '=') return sample.labels[label] === value
        return operator === '!=' && sample.labels[label] !== undefined
      }),
  )
}

test.each([...dashboardQueries(), ...alertQueries()])(
  '$where: all that $query selects is in a scrape',
  ({ query }) => {
    const { selectors, labels } = readQuery(query)
    const found = selectors.filter(({ name }) => name !== 'up').map(selected)
    for (const [index, list] of found.entries())
      expect(list.length, selectors[index]?.name).toBeGreaterThan(0)
    const known = new Set(found.flat().flatMap((sample) => Object.keys(sample.labels)))
    expect(labels.filter((label) => !known.has(label) && !ofPrometheus.includes(label))).toEqual([])
  },
)

test('a legend or an annotation shows only labels that its query keeps', () => {
  const legends = dashboard.panels.flatMap(({ targets = [] }) => targets) as {
    readonly expr: string
    readonly legendFormat: string
  }[]
  expect(legends.length).toBeGreaterThan(20)
  for (const { expr, legendFormat } of legends) {
    const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label)
    const { labels, selectors } = readQuery(expr)
    const left =
      labels.length > 0 || /^(sum|max|min|count|histogram_quantile)/.test(expr) ? labels : ofPrometheus
    expect(
      shown.filter((label) => !left.includes(label ?? '')),
      `${legendFormat} of ${selectors[0]?.name ?? ''}`,
    ).toEqual([])
  }
})

test('the variables of the dashboard are the ones that its queries use', () => {
  const defined = dashboard.templating.list.map(({ name }) => name)
  const used = new Set(
    Array.from(JSON.stringify(dashboard).matchAll(/\$\{?([a-z]\w*)/g), ([, name = '']) => name),
  )
  expect([...used].toSorted()).toEqual(defined.toSorted())
})

test('the panels of the dashboard have unique ids and do not overlap', () => {
  const ids = dashboard.panels.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) => {
    expect(x + w).toBeLessThanOrEqual(24)
    return Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`)
  })
  expect(new Set(cells).size).toBe(cells.length)
})

test.each(alerts)('$alert does not take separate installations together', ({ expr }) => {
  const aggregations = [...expr.matchAll(/\b(?:sum|max|min|avg|count)\b( by \(job, namespace, service\b)?/g)]
  expect(aggregations.filter(([, kept]) => kept === undefined)).toEqual([])
})

test('docs/operations.md lists the alerts', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8')
  const listed = [...page.matchAll(/^\| `(Sluice\w+)`/gm)].map(([, name]) => name)
  expect(listed).toEqual(alerts.map(({ alert }) => alert))
})
