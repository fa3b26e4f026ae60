import { join } from 'node:path'
import ts from 'typescript'
import { parseAllDocuments } from 'yaml'

/** The fields that every Kubernetes object may have. */
export type Manifest = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> }
}

const root = join(import.meta.dirname, '../../..')

/** Reads Kubernetes objects from YAML as kubectl does, by YAML 1.1. Throws if the YAML is not valid. */
export function readManifests(yaml: string): readonly Manifest[] {
  return parseAllDocuments(yaml, { version: '1.1' })
    .map((document) => {
      if (document.errors[0]) throw document.errors[0]
      return document.toJS() as Manifest | null
    })
    .filter((manifest) => manifest !== null)
}

/** The API group that has the types of a kind. The kinds of the Prometheus operator have no published types. */
const groups: Readonly<Record<string, string>> = {
  v1: 'core/v1',
  'apps/v1': 'apps/v1',
  'policy/v1': 'policy/v1',
  'autoscaling/v2': 'autoscaling/v2',
  'networking.k8s.io/v1': 'networking/v1',
}
const operatorGroup = 'monitoring.coreos.com/v1'

/**
 * Finds mistakes in manifests with the types that are generated from the API's published schemas: an unknown field, a missing field, a
 * value of the wrong type. Kinds of the Prometheus operator are not checked.
 */
export function findMistakes(manifests: readonly Manifest[]): string[] {
  const known = manifests.filter(({ apiVersion }) => apiVersion !== operatorGroup)
  const lines = known.map((manifest, index) => {
    const group = groups[manifest.apiVersion] ?? manifest.apiVersion
    // An object literal with a type annotation, so that TypeScript reports unknown fields.
    return `export const m${index}: import('kubernetes-types/${group}').${manifest.kind} = ${JSON.stringify(manifest)}`
  })
  return check(lines.join('\n')).map(({ start, messageText }) => {
    const { kind, metadata } = known[lineOf(lines, start ?? 0)] ?? {}
    return `${kind ?? ''} ${metadata?.name ?? ''}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
  })
}

function lineOf(lines: readonly string[], position: number): number {
  let end = -1
  return lines.findIndex((line) => (end += line.length + 1) >= position)
}

function check(text: string): readonly ts.Diagnostic[] {
  const path = join(root, 'test/manifests-that-are-checked.ts')
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
    lib: ['lib.esnext.d.ts'],
    target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
  }
  const host = ts.createCompilerHost(options)
  const own: ts.CompilerHost = {
    ...host,
    fileExists: (name) => name === path || host.fileExists(name),
    getSourceFile: (name, target) => {
      if (name === path) return ts.createSourceFile(name, text, target)
      const file = parsed.get(name) ?? host.getSourceFile(name, target)
      if (file) parsed.set(name, file)
      return file
    },
  }
  return ts.getPreEmitDiagnostics(ts.createProgram([path], options, own))
}

/** The files with the types, by path: parsed once for all checks. */
const parsed = new Map<string, ts.SourceFile>()
