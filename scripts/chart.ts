import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = join(import.meta.dirname, '..')
const chart = join(root, 'deploy/helm/sluice')

/** Renders the chart, optionally with a file of values. Rejects with the chart's error message if it refuses the values. */
export type Renderer = (values?: string) => Promise<string>

/**
 * Compiles the program that renders the chart, passes a function that runs it to `use`, and removes it. It needs Go, Sprig
 * and the YAML of Kubernetes: Debian's packages golang-go, golang-github-masterminds-sprig-dev and
 * golang-k8s-sigs-yaml-dev.
 */
export async function withRenderer<Result>(use: (render: Renderer) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'helm-template-'))
  const program = join(folder, 'helm-template')
  // Debian's packages are not Go modules, and Debian's Go does not include a C compiler.
  const go = { GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOFLAGS: '', CGO_ENABLED: '0' }
  const env = { ...process.env, ...go }
  try {
    const source = join(root, 'scripts/helm-template/main.go')
    await run('go', ['build', '-o', program, source], { env })
    return await use(async (values) => {
      const files = values === undefined ? [] : [values]
      const { stdout } = await run(program, [chart, 'sluice', 'default', ...files])
      return stdout
    })
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Returns the path of the file with this name in `deploy/helm/values`. */
export function valuesFile(name: string): string {
  return join(root, `deploy/helm/values/${name}.yaml`)
}
