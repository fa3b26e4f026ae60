import type { Manifest } from './manifests.ts'

type Labels = Readonly<Record<string, string>>
type Port = { readonly name?: string; readonly port?: string | number; readonly targetPort?: string | number }
type Probe = { readonly httpGet: { readonly port: string | number } }
type Container = {
  readonly ports: readonly { readonly name: string }[]
  readonly volumeMounts: readonly { readonly name: string }[]
  readonly startupProbe: Probe
  readonly livenessProbe: Probe
  readonly readinessProbe: Probe
}
type Pod = {
  readonly serviceAccountName: string
  readonly containers: readonly [Container]
  readonly volumes: readonly { readonly name: string; readonly configMap?: { readonly name: string } }[]
}
/** The fields of all kinds that are checked; which ones an object has depends on its kind. */
type Spec = {
  readonly selector: Labels & { readonly matchLabels: Labels }
  readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: Pod }
  readonly podSelector: { readonly matchLabels: Labels }
  readonly ports: readonly Port[]
  readonly ingress: readonly { readonly ports: readonly Port[] }[]
  readonly endpoints: readonly { readonly port: string }[]
  readonly scaleTargetRef: { readonly name: string }
}

/** Finds references to nothing: labels that no pod has, ports that no container has, objects that are not in the manifests. */
export function findBrokenReferences(manifests: readonly Manifest[]): string[] {
  const broken: string[] = []
  const needs = (there: boolean, { kind, metadata }: Manifest, what: string): void => {
    if (!there) broken.push(`${kind} ${metadata.name}: ${what}`)
  }
  const has = (kind: string, name: string | undefined): boolean =>
    manifests.some((one) => one.kind === kind && one.metadata.name === name)

  const deployments = manifests.filter(({ kind }) => kind === 'Deployment')
  const [deployment] = deployments
  if (!deployment || deployments.length > 1) return [`${deployments.length} deployments`]
  const { template, selector } = specOf(deployment)
  const { labels } = template.metadata
  const [{ ports, volumeMounts, startupProbe, livenessProbe, readinessProbe }] = template.spec.containers
  const isPort = (port: string | number | undefined): boolean => ports.some(({ name }) => name === port)
  needs(includes(labels, selector.matchLabels), deployment, 'selects no pod of its own')
  needs(has('ServiceAccount', template.spec.serviceAccountName), deployment, 'service account')
  for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe])
    needs(isPort(httpGet.port), deployment, `probes ${httpGet.port}`)
  for (const { name } of volumeMounts)
    needs(
      template.spec.volumes.some((volume) => volume.name === name),
      deployment,
      `mounts ${name}`,
    )
  for (const { configMap } of template.spec.volumes)
    if (configMap) needs(has('ConfigMap', configMap.name), deployment, `config map ${configMap.name}`)

  for (const manifest of manifests) {
    const spec = specOf(manifest)
    if (manifest.kind === 'Service') {
      needs(includes(labels, spec.selector), manifest, 'selects no pod')
      for (const { targetPort } of spec.ports) needs(isPort(targetPort), manifest, `port ${targetPort ?? ''}`)
    } else if (manifest.kind === 'PodDisruptionBudget') {
      needs(includes(labels, spec.selector.matchLabels), manifest, 'selects no pod')
    } else if (manifest.kind === 'NetworkPolicy') {
      needs(includes(labels, spec.podSelector.matchLabels), manifest, 'selects no pod')
      for (const { port } of spec.ingress.flatMap((rule) => rule.ports))
        needs(isPort(port), manifest, `port ${port ?? ''}`)
    } else if (manifest.kind === 'HorizontalPodAutoscaler') {
      needs(has('Deployment', spec.scaleTargetRef.name), manifest, 'scales nothing')
    } else if (manifest.kind === 'ServiceMonitor') {
      needs(monitorsOne(spec, manifests), manifest, 'reads no port of a service, or of several')
    }
  }
  return broken
}

function monitorsOne({ selector, endpoints }: Spec, manifests: readonly Manifest[]): boolean {
  const [service, ...others] = manifests.filter(
    ({ kind, metadata }) => kind === 'Service' && includes(metadata.labels ?? {}, selector.matchLabels),
  )
  if (!service || others.length > 0) return false
  const names = specOf(service).ports.map(({ name }) => name)
  return endpoints.every(({ port }) => names.includes(port))
}

function specOf(manifest: Manifest): Spec {
  return (manifest as unknown as { spec: Spec }).spec
}

function includes(labels: Labels, selected: Labels): boolean {
  const wanted = Object.entries(selected)
  return wanted.length > 0 && wanted.every(([name, value]) => labels[name] === value)
}
