import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { valuesFile, withRenderer, type Renderer } from '../../scripts/chart.ts'
import { renderManifests } from '../../scripts/plain-manifests.ts'
import { findMistakes, readManifests, type Manifest } from '../support/containers/manifests.ts'
import { findBrokenReferences } from '../support/containers/references.ts'
import { findWrongSettings, variablesOf } from '../support/containers/pods.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

// The chart, rendered by Helm's rendering engine: scripts/helm-template. Helm itself is in none of the registries.

const chart = join(import.meta.dirname, '../../deploy/helm/sluice')
const names = ['one-replica', 'three-replicas', 'all'] as const
const minimal = 'config: { upstream: "http://app:3000" }\nadminToken: 0123456789abcdef\n'

let render: Renderer
let endOfUse: () => void = () => undefined
let use: Promise<void>

beforeAll(async () => {
  await new Promise<void>((resolve, reject) => {
    use = withRenderer((renderer) => {
      render = renderer
      resolve()
      return new Promise<void>((end) => (endOfUse = end))
    })
    use.catch(reject)
  })
})

afterAll(async () => {
  endOfUse()
  await use
})

async function manifestsOf(values: string): Promise<readonly Manifest[]> {
  return readManifests(await render(writeConfigFile(values)))
}

describe.each(names)('with the values %s', (name) => {
  test('the chart renders manifests that the API and the gateway accept', async () => {
    const manifests = readManifests(await render(valuesFile(name)))
    expect(findMistakes(manifests)).toEqual([])
    expect(findBrokenReferences(manifests)).toEqual([])
    expect(findWrongSettings(manifests)).toEqual([])
    for (const { metadata } of manifests) expect(metadata.labels).toMatchObject(selector)
  })

  test('the schema of the chart accepts these values', () =>
    expect(refusalOf(readFileSync(valuesFile(name), 'utf8'))).toBeUndefined())
})

const selector = { 'app.kubernetes.io/name': 'sluice', 'app.kubernetes.io/instance': 'sluice' }

test('every kind is made where all is wanted', async () => {
  const made = readManifests(await render(valuesFile('all')))
  expect(made.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted()).toEqual([
    'ConfigMap sluice',
    'Deployment sluice',
    'HorizontalPodAutoscaler sluice',
    'NetworkPolicy sluice',
    'PodDisruptionBudget sluice',
    'PrometheusRule sluice',
    'Secret sluice',
    'Service sluice',
    'Service sluice-admin',
    'ServiceAccount sluice',
    'ServiceMonitor sluice',
  ])
  expect(variablesOf(made)).toMatchObject({
    MAX_CONNECTIONS: '1000000',
    ACCESS_LOG: 'true',
    DECISIONS_PORT: '8090',
    OTEL_TRACES_SAMPLER_ARG: '0.25',
  })
  const alerts = readFileSync(join(chart, '../../../ops/prometheus/alerts.yml'), 'utf8')
  expect(made.find(({ kind }) => kind === 'PrometheusRule')).toMatchObject({ spec: parse(alerts) as object })
  expect(made.find(({ kind }) => kind === 'ServiceMonitor')).toMatchObject({
    spec: {
      selector: { matchLabels: { ...selector, 'app.kubernetes.io/component': 'admin' } },
      endpoints: [{ port: 'admin', authorization: { credentials: { name: 'sluice', key: 'admin-token' } } }],
    },
  })
  // HorizontalPodAutoscaler sets the number of replicas.
  expect(made.find(({ kind }) => kind === 'Deployment')).not.toHaveProperty('spec.replicas')
  expect(made.find(({ kind }) => kind === 'Deployment')).toHaveProperty(
    'spec.template.spec.terminationGracePeriodSeconds',
    145,
  )
})

test('the admin port is open to nobody, or to the named peers only', async () => {
  const ingressOf = async (values: string): Promise<unknown> => {
    const policy = (await manifestsOf(minimal + values)).find(({ kind }) => kind === 'NetworkPolicy')
    return (policy as unknown as { spec: { ingress: unknown } }).spec.ingress
  }
  const clients = { ports: [{ protocol: 'TCP', port: 'http' }] }
  expect(await ingressOf('')).toEqual([clients])
  expect(await ingressOf('networkPolicy: { adminFrom: [{ podSelector: {} }] }')).toEqual([
    clients,
    { ports: [{ protocol: 'TCP', port: 'admin' }], from: [{ podSelector: {} }] },
  ])
})

test('pods are replaced for settings that need a restart, and for no others', async () => {
  const checksumOf = async (values: string): Promise<unknown> => {
    const deployment = (await manifestsOf(values)).find(({ kind }) => kind === 'Deployment')
    type Annotated = { spec: { template: { metadata: { annotations: Record<string, string> } } } }
    return (deployment as unknown as Annotated).spec.template.metadata.annotations['checksum/settings']
  }
  const withConfig = (fields: string): string => minimal.replace('3000"', `3000", ${fields}`)
  const before = await checksumOf(minimal)
  for (const fields of ['limits: []', 'preset: wordpress', 'denyList: [192.0.2.1]', 'routes: []'])
    expect(await checksumOf(withConfig(fields)), fields).toBe(before)
  for (const fields of ['timezone: Europe/Berlin', 'geoip: { asn: a.mmdb }', 'requestHeaders: { X-A: b }'])
    expect(await checksumOf(withConfig(fields)), fields).toBe(before)
  expect(await checksumOf(withConfig('workers: 2'))).not.toBe(before)
  expect(await checksumOf(minimal.replace('cdef', 'cdee'))).not.toBe(before)
})

test.each([
  ['no backend', 'adminToken: 0123456789abcdef', 'no backend: set config.upstream, such as http://app:3000'],
  [
    'no token',
    'config: { upstream: "http://app:3000" }',
    'no token for the admin port: set adminToken or adminTokenSecret.name',
  ],
  [
    'several replicas without Redis',
    `${minimal}replicas: 2`,
    'more than one replica needs Redis, or each would count by itself: set redisUrl or redisUrlSecret.name',
  ],
  [
    'autoscaling without Redis',
    `${minimal}autoscaling: { enabled: true }`,
    'more than one replica needs Redis, or each would count by itself: set redisUrl or redisUrlSecret.name',
  ],
  [
    'a monitor that reaches nothing',
    `${minimal}serviceMonitor: { enabled: true }`,
    'Prometheus could not reach the admin port: name it in networkPolicy.adminFrom',
  ],
])('%s is refused', async (_, values, message) => {
  await expect(render(writeConfigFile(values))).rejects.toThrow(message)
})

test.each(['redisUrl: redis://redis', 'redisUrlSecret: { name: redis }'])(
  'several replicas: %s',
  async (redis) => {
    const manifests = await manifestsOf(`${minimal}replicas: 3\n${redis}`)
    expect(manifests.find(({ kind }) => kind === 'Deployment')).toMatchObject({ spec: { replicas: 3 } })
    expect(Object.keys(variablesOf(manifests))).toContain('REDIS_URL')
  },
)

describe('values.schema.json', () => {
  test('the schema of the values accepts the defaults, and has a property for each', () => {
    const text = readFileSync(join(chart, 'values.yaml'), 'utf8')
    expect(refusalOf(text)).toBeUndefined()
    const { properties } = JSON.parse(schemaText()) as { properties: object }
    const { global, ...own } = properties as Record<string, unknown>
    expect(global).toBeDefined()
    expect(Object.keys(own).toSorted()).toEqual(Object.keys(parse(text) as object).toSorted())
  })

  test.each([
    'replica: 3',
    'replicas: "3"',
    'service: { type: External }',
    'service: { prot: 80 }',
    'shutdownDelay: 5',
    'shutdownDelay: 100ms',
    'redisUrl: redis:6379',
    'adminToken: short',
    'image: { pullPolicy: Sometimes }',
    'networkPolicy: { adminFrom: {} }',
  ])('refuses %s', (values) => expect(refusalOf(values)).toBeDefined())
})

function schemaText(): string {
  return readFileSync(join(chart, 'values.schema.json'), 'utf8')
}

function refusalOf(values: string): unknown {
  const schema = z.fromJSONSchema(JSON.parse(schemaText()) as z.core.JSONSchema.JSONSchema)
  return schema.safeParse(parse(values)).error?.issues
}

test('deploy/kubernetes and the alert rules in the chart are current: npm run generate:manifests', async () => {
  for (const [path, text] of await renderManifests()) expect(readFileSync(path, 'utf8'), path).toBe(text)
})
