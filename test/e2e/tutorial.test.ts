import { globSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { freePort } from '../support/network/ports.ts'
import { runHosted } from '../support/gateway/hosted-command.ts'
import { spawnCommand, type NodeProcess } from '../support/gateway/process.ts'
import { stepsOf, withoutChance } from '../support/run/docs.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const root = join(import.meta.dirname, '../..')
const steps = stepsOf('docs/tutorial.md')

/** Makes a copy of this repository without `sluice.yaml` and the keys of the demo service. */
function makeClone(): string {
  const clone = makeTemporaryDirectory()
  for (const name of ['node_modules', 'origin', 'package.json', 'presets', 'proxy', 'scripts', 'shared'])
    symlinkSync(join(root, name), join(clone, name))
  return clone
}

type Line = Record<string, unknown> & { readonly name: string; readonly msg: string }

/** The log lines of a text, as a terminal shows them. */
function linesShown(text: string): Line[] {
  return text.split(/^\[[\d:.]+\] /m).flatMap((shown) => {
    const [, name, msg, fields = ''] = /^INFO \((\w+)\): (.*)\n?([^]*)/.exec(shown) ?? []
    if (name === undefined || msg === undefined) return []
    const pairs = fields
      .split('\n')
      .map((line) => /^ *(\w+): (.*)/.exec(line))
      .flatMap((pair) => (pair ? [[pair[1], JSON.parse(pair[2] ?? '') as unknown]] : []))
    return [{ name, msg, ...(Object.fromEntries(pairs) as object) }]
  })
}

test('each command of docs/tutorial.md prints what the page says', async () => {
  const ports = { '8080': await freePort(), '9090': await freePort(), '3000': await freePort() }
  const backend = await startBackend()
  const clone = makeClone()
  const env = {
    PORT: String(ports['8080']),
    ADMIN_PORT: String(ports['9090']),
    ORIGIN_PORT: String(ports['3000']),
  }
  const ofThisRun = (text: string): string =>
    Object.entries(ports)
      .reduce((told, [from, to]) => told.replaceAll(new RegExp(`\\b${from}\\b`, 'g'), String(to)), text)
      .replaceAll('http://127.0.0.1:5000/', `${backend.url}/`)
      .replaceAll(/http:\/\/127\.0\.0\.1:5000\b/g, backend.url)
      .replaceAll('/home/you/sluice', clone)
  const aliases: string[] = []
  let gateway: NodeProcess | undefined
  let logged = 0

  /** Whether `sluice` has run through the alias once. After that it runs in a shared process, which takes a tenth of the time. */
  let isAliasTried = false
  const run = async (command: string): Promise<string> => {
    const [program, ...args] = command.split(' ')
    if (program === 'sluice' && isAliasTried) return withoutChance((await runHosted(args, env, clone)).stdout)
    isAliasTried ||= program === 'sluice'
    const script = ['shopt -s expand_aliases', ...aliases, command].join('\n')
    const shell = spawnCommand('bash', env, ['-c', script], { cwd: clone })
    await shell.exit
    return withoutChance(shell.stdout() || shell.stderr())
  }
  /** Expects each line to appear in the log once, in the order of the page. */
  const expectLog = async (output: string): Promise<void> => {
    for (const shown of linesShown(ofThisRun(output))) {
      const isSame = expect.objectContaining({
        ...shown,
        ...('tableHash' in shown && { tableHash: expect.stringMatching(/^[\da-f]{12}$/) as string }),
      }) as Line
      await eventually(`the log has ${shown.name}: ${shown.msg}`, () => {
        const lines = (gateway?.stdout() ?? '').split('\n').slice(logged)
        const at = lines.findIndex((line) => line.startsWith('{') && line.includes(`"msg":"${shown.msg}"`))
        expect(at).toBeGreaterThanOrEqual(0)
        expect(JSON.parse(lines[at] ?? '')).toEqual(isSame)
        logged += at + 1
      })
    }
  }

  for (const step of steps) {
    if (step.kind === 'file') writeFileSync(join(clone, step.name), step.text)
    else if (step.kind === 'log') await expectLog(step.output)
    else if (step.command.startsWith('alias ')) aliases.push(step.command)
    else if (step.command.endsWith('npm start')) {
      await gateway?.stop('SIGINT')
      logged = 0
      gateway = spawnCommand('bash', env, ['-c', ofThisRun(step.command)], { cwd: clone })
      await gateway.waitForLine(/"name":"gateway".*"msg":"listening"/)
      if (linesShown(step.output).length > 0) await expectLog(step.output)
      else expect(gateway.output()).toContain(ofThisRun(step.output))
    } else if (step.command !== 'npm ci') {
      const documented = withoutChance(ofThisRun(step.output))
      const command = ofThisRun(step.command)
      // Lists are up to date within a second, so this command may be repeated. Other commands count requests, and run only once.
      if (command === 'sluice limited')
        await eventually(command, async () => expect(await run(command)).toBe(documented))
      else expect(await run(command), command).toBe(documented)
    }
  }
  expect(steps.filter(({ kind }) => kind === 'command').length).toBeGreaterThan(12)
  expect(await gateway?.stop('SIGINT')).toBe(0)
})

test('the page has each text that docs/tutorial.md says is there', () => {
  const sources = globSync(join(root, 'proxy/admin/page/browser/*')).map((path) => readFileSync(path, 'utf8'))
  const named = [...readFileSync(join(root, 'docs/tutorial.md'), 'utf8').matchAll(/\b_([^_\n]+)_/g)]
  expect(named.length).toBeGreaterThan(3)
  for (const [, text = ''] of named) expect(sources.join('\n'), text).toMatch(new RegExp(`[>']${text}[<']`))
})
