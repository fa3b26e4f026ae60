import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { format } from 'oxfmt'
import { parseAllDocuments, type Document } from 'yaml'
import { style } from '../oxfmt.config.ts'
import { valuesFile, withRenderer } from './chart.ts'

const root = join(import.meta.dirname, '..')
const names = ['one-replica', 'three-replicas']

/**
 * Renders the files that are generated from the chart and for it, by path: the manifests for use without Helm, and the chart's alert rules.
 */
export async function renderManifests(): Promise<Map<string, string>> {
  return withRenderer(async (render) => {
    const alerts = readFileSync(join(root, 'ops/prometheus/alerts.yml'), 'utf8')
    const made = new Map([[join(root, 'deploy/helm/sluice/files/alerts.yml'), alerts]])
    for (const name of names) {
      const path = join(root, `deploy/kubernetes/${name}.yaml`)
      const comment =
        `# Made from the chart with deploy/helm/values/${name}.yaml: npm run generate:manifests\n` +
        '# It needs a secret: kubectl create secret generic sluice-admin --from-literal=admin-token=$(openssl rand -hex 32)\n'
      const rendered = (await render(valuesFile(name))).replaceAll(/^# Source: .*\n/gm, '')
      const documents = parseAllDocuments(rendered)
      const text = documents.map((document) => plain(document)).join('---\n')
      made.set(path, (await format(path, comment + text, style)).code)
    }
    return made
  })
}

/** Removes everything that refers to Helm. */
function plain(document: Document): string {
  for (const label of ['app.kubernetes.io/managed-by', 'helm.sh/chart'])
    document.deleteIn(['metadata', 'labels', label])
  if (document.get('kind') === 'Deployment')
    document.deleteIn(['spec', 'template', 'metadata', 'annotations'])
  return document.toString({ directives: false })
}
