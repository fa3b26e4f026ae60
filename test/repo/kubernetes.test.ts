import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { findMistakes, readManifests } from '../support/containers/manifests.ts'
import { findBrokenReferences } from '../support/containers/references.ts'
import { findWrongSettings } from '../support/containers/pods.ts'

const root = join(import.meta.dirname, '../..')
const folder = join(root, 'deploy/kubernetes')

describe.each(readdirSync(folder).filter((name) => name.endsWith('.yaml')))(
  'deploy/kubernetes/%s',
  (name) => {
    const text = readFileSync(join(folder, name), 'utf8')
    const manifests = readManifests(text)

    test('the manifests are accepted by the API', () => expect(findMistakes(manifests)).toEqual([]))

    test('the manifests have settings that the gateway takes', () =>
      expect(findWrongSettings(manifests)).toEqual([]))

    test('contains all objects that it names, except the secret of the token', () => {
      expect(findBrokenReferences(manifests)).toEqual([])
      const names = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
      for (const kind of ['ConfigMap', 'ServiceAccount', 'Service', 'PodDisruptionBudget', 'NetworkPolicy'])
        expect(names).toContain(`${kind} sluice`)
      expect(new Set(names).size).toBe(names.length)
      expect(names.join()).not.toContain('Secret')
      expect(text).not.toMatch(/[Hh]elm(?!\/values)/)
    })
  },
)

describe('the check of manifests', () => {
  const read = (from: string, to: string, check = findMistakes) => {
    const text = readFileSync(join(folder, 'one-replica.yaml'), 'utf8')
    expect(text).toContain(from)
    return check(readManifests(text.replace(from, to)))
  }

  test.each([
    ['an unknown port', 'targetPort: admin', 'targetPort: metrics', 'Service sluice-admin: port metrics'],
    [
      'a probe of no port',
      'path: /readyz, port: admin',
      'path: /readyz, port: a',
      'Deployment sluice: probes a',
    ],
    [
      'another config map',
      'configMap: { name: sluice }',
      'configMap: { name: a }',
      'Deployment sluice: config map a',
    ],
    [
      'a mount of no volume',
      '- { name: config, mountPath',
      '- { name: a, mountPath',
      'Deployment sluice: mounts a',
    ],
    [
      'another account',
      'serviceAccountName: sluice',
      'serviceAccountName: a',
      'Deployment sluice: service account',
    ],
  ])('the check of manifests finds %s', (_, from, to, mistake) => {
    expect(read(from, to, findBrokenReferences)).toEqual([mistake])
  })

  test.each([
    ['an unknown field', 'periodSeconds: 10', 'periodSecond: 10', /periodSecond/],
    ['a field at the wrong place', 'automountServiceAccountToken', 'readOnlyRootFilesystem', /readOnlyRoot/],
    ['a text for a number', 'replicas: 1', 'replicas: "1"', /not assignable/],
    ['a number for a text', "value: '9090'", 'value: 9090', /not assignable/],
    ['a field that is missing', 'name: http, containerPort: 8080', 'name: http', /containerPort/],
    ['an unknown kind', 'kind: PodDisruptionBudget', 'kind: PodDisruption', /PodDisruption/],
    ['an unknown version', 'apiVersion: policy/v1', 'apiVersion: policy/v9', /policy\/v9/],
  ])('the check of manifests finds %s', (_, from, to, message) => {
    const mistakes = read(from, to)
    expect(mistakes.length).toBeGreaterThan(0)
    expect(mistakes.join('\n')).toMatch(message)
  })
})

test('the chart is of the version of the package', () => {
  const chart = parse(readFileSync(join(root, 'deploy/helm/sluice/Chart.yaml'), 'utf8')) as object
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  expect(chart).toMatchObject({
    apiVersion: 'v2',
    name: 'sluice',
    type: 'application',
    version,
    appVersion: version,
  })
})

// With another grace period than the pod's, requests would be cut; at another port, the service would reach nobody.
test.each([
  ['env', 'SHUTDOWN_GRACE', '2m'],
  ['env', 'SHUTDOWN_DELAY', '1m'],
  ['env', 'PORT', 8081],
  ['env', 'ADMIN_PORT', 9091],
  ['env', 'DECISIONS_PORT', 8090],
  ['env', 'ADMIN_TOKEN', '0123456789abcdef'],
  ['config', 'shutdownGrace', '2m'],
  ['config', 'shutdownDelay', '1m'],
  ['config', 'port', 8081],
  ['config', 'adminHost', '::'],
  ['config', 'adminPort', 9091],
  ['config', 'decisionsPort', 8090],
])('the chart refuses in %s what it sets itself: %s', (field, name, value) => {
  const schema = readFileSync(join(root, 'deploy/helm/sluice/values.schema.json'), 'utf8')
  const values = z.fromJSONSchema(JSON.parse(schema) as z.core.JSONSchema.JSONSchema)
  expect(values.safeParse({ [field]: { [name]: value } }).error?.issues).toMatchObject([
    { path: [field, name] },
  ])
  expect(values.safeParse({ env: { ADMIN_HOST: '::' }, config: { workers: 2 } }).error).toBeUndefined()
})

// Comparing its other generated files needs Go: see test/apps/helm.test.ts.
test('the chart has the alert rules of ops/prometheus: npm run generate:manifests', () => {
  const [inChart, alerts] = ['deploy/helm/sluice/files', 'ops/prometheus'].map((path) =>
    readFileSync(join(root, path, 'alerts.yml'), 'utf8'),
  )
  expect(inChart).toBe(alerts)
})
