import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send, startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { readManifests } from '../support/containers/manifests.ts'
import { configFilesOf, variablesOf } from '../support/containers/pods.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

const path = join(import.meta.dirname, '../../deploy/kubernetes/one-replica.yaml')
const manifests = readManifests(readFileSync(path, 'utf8'))

type Probe = { readonly httpGet: { readonly path: string; readonly port: string } }
type Container = {
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
  readonly startupProbe: Probe
  readonly livenessProbe: Probe
  readonly readinessProbe: Probe
}
type Pod = { readonly terminationGracePeriodSeconds: number; readonly containers: readonly [Container] }

type Deployment = { readonly spec: { readonly template: { readonly spec: Pod } } }

const deployment = manifests.find(({ kind }) => kind === 'Deployment') as unknown as Deployment
const pod = deployment.spec.template.spec
const [container] = pod.containers
const given = variablesOf(manifests)
const token = '0123456789abcdef'

/** Writes the config map into a folder as the kubelet does: a folder for each version, and a link that switches atomically. */
function mountConfigMap(volume: string, version: string, change = (yaml: string): string => yaml): void {
  const folder = `..${version}`
  mkdirSync(join(volume, folder))
  for (const [name, yaml] of Object.entries(configFilesOf(manifests))) {
    writeFileSync(join(volume, folder, name), change(yaml))
    if (version === 'first') symlinkSync(join('..data', name), join(volume, name))
  }
  symlinkSync(folder, join(volume, '..data_tmp'))
  renameSync(join(volume, '..data_tmp'), join(volume, '..data'))
}

/** Starts a gateway with the variables of the pod, but with free ports and the address of the test's backend. */
async function startPod(): Promise<GatewayProcess & { volume: string }> {
  const backend = await startBackend()
  const volume = makeTemporaryDirectory()
  mountConfigMap(volume, 'first')
  const mount = container.volumeMounts.find(({ name }) => name === 'config')?.mountPath ?? ''
  const { PORT, ADMIN_PORT, CONFIG_FILE = '', ADMIN_TOKEN, ...env } = given as Record<string, string>
  expect([PORT, ADMIN_PORT, ADMIN_TOKEN]).toEqual(['8080', '9090', undefined])
  const gateway = await startGateway({
    ...env,
    ADMIN_TOKEN: token,
    CONFIG_FILE: CONFIG_FILE.replace(mount, volume),
    UPSTREAM_URL: backend.url,
    SHUTDOWN_DELAY: '1s',
  })
  return Object.assign(gateway, { volume })
}

function portOf({ httpGet: { port } }: Probe): number | undefined {
  return container.ports.find(({ name }) => name === port)?.containerPort
}

test('the gateway starts as the pod says, is probed, and stops without refusing anybody', async () => {
  const gateway = await startPod()
  for (const probe of [container.startupProbe, container.livenessProbe, container.readinessProbe]) {
    expect(String(portOf(probe))).toBe(given['ADMIN_PORT'])
    expect((await send(gateway.adminPort, 'GET', probe.httpGet.path)).status).toBe(200)
  }
  expect(String(container.ports.find(({ name }) => name === 'http')?.containerPort)).toBe(given['PORT'])
  expect((await send(gateway.adminPort, 'GET', '/metrics')).status).toBe(401)
  expect((await gateway.send('POST', '/login')).headers['ratelimit']).toContain('"login"')

  gateway.process.child.kill('SIGTERM')
  await gateway.process.waitForLine(/"signal":"SIGTERM"|SIGTERM/)
  expect((await send(gateway.adminPort, 'GET', container.readinessProbe.httpGet.path)).status).toBe(503)
  expect((await send(gateway.adminPort, 'GET', container.livenessProbe.httpGet.path)).status).toBe(200)
  expect((await gateway.send('GET', '/')).status).toBe(200)
  expect(await gateway.process.exit).toBe(0)
})

test('a changed config map takes effect without a restart', async () => {
  const gateway = await startPod()
  mountConfigMap(gateway.volume, 'second', (yaml) => yaml.replace('requests: 30', 'requests: 77'))
  await gateway.process.waitForLine(/"changed":1.*"limits reloaded"/)
  expect((await gateway.send('POST', '/login')).headers['ratelimit']).toContain('r=76')
})

test('the pod is given the time that a shutdown takes', () => {
  const seconds = [given['SHUTDOWN_DELAY'], given['SHUTDOWN_GRACE']].map((text) =>
    Number.parseInt(text ?? '', 10),
  )
  expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(seconds.reduce((sum, each) => sum + each))
})
