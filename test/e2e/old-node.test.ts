import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { runNode } from '../support/gateway/process.ts'

// An old Node reports a syntax error for features that it lacks, before any code runs. So an entry must check the version of Node before it
// imports anything else.

const root = join(import.meta.dirname, '../..')
const packageJson = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly bin: Readonly<Record<string, string>>
  readonly engines: { readonly node: string }
}
const oldest = Number(/\d+/.exec(packageJson.engines.node)?.[0])
const pretending = (version: string): string =>
  `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'${version}'}})`

// Compiled from `proxy/` to `dist/proxy/`.
const entries = Object.values(packageJson.bin).map((path) =>
  path.replace(/^dist\//, '').replace(/\.js$/, '.ts'),
)

test.each(entries)('%s imports nothing but when the version is known', (entry) => {
  const text = readFileSync(join(root, entry), 'utf8')
  expect(text.match(/^(import\b.*|export .* from .*)$/gm)).toBeNull()
  expect(text).toContain('await import(')
})

test.each([
  [`${oldest - 1}.99.0`, 1],
  ['20.20.2', 1],
  [`${oldest}.0.0`, 0],
])('under Node %s, version ends with status %i', async (version, status) => {
  for (const entry of entries) {
    const run = await runNode(entry, { NODE_OPTIONS: `--import "${pretending(version)}"` }, ['version'])
    expect(run.status).toBe(status)
    if (status === 0) continue
    expect(run.stdout).toBe('')
    expect(run.stderr).toMatch(new RegExp(`^Node\\.js ${oldest} or later is needed, and this is ${version} `))
    // npx finds a Node that is installed next to sluice; a global sluice does not.
    for (const way of [`"npm install node@${oldest}"`, 'PATH']) expect(run.stderr).toContain(way)
    expect(run.stderr.split('\n')).toHaveLength(2)
  }
})

test('the gateway of tests can be required, and says which Node it needs under an older one', async () => {
  const entry = join(root, 'proxy/testing/embedded/start-sluice.ts')
  const script = `const { createClock, startSluice } = require(${JSON.stringify(entry)})
    startSluice({ upstream: 'http://127.0.0.1:9', clock: createClock() }).catch(({ message }) => { console.log(message) })`
  const options = [
    '--no-warnings',
    ...['--import', pretending('20.20.2')],
    '--input-type=commonjs',
    ...['--eval', script],
  ]
  const { stdout } = await promisify(execFile)(process.execPath, options)
  expect(stdout).toMatch(
    new RegExp(`^sluice/embedded needs Node\\.js ${oldest} or later, and this is 20\\.20\\.2 `),
  )
})
