import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { runClient } from './client.ts'
import { letIn, letInWhenRefused } from './refusals.ts'
import { startServer } from './server.ts'
import { setStage } from './stage.ts'

// Jupyter Notebook: its API for files and kernels, a kernel over a WebSocket with large output and an interrupt, and its page in Chromium.

const root = makeTemporaryDirectory()
const { direct, ways } = setStage({ start, http2: true, config: 'test/apps/limits/jupyter.yaml' })

test.for([direct, ...ways])(
  'a notebook is written, run and interrupted, $name',
  { timeout: 120_000 },
  async (way) => {
    const name = way === direct ? 'direct' : `way-${ways.indexOf(way)}`
    expect(await runClient('jupyter.js', way, [name])).toEqual({
      result: "'ü 42'",
      output: 200_000,
      interrupted: 'KeyboardInterrupt',
      saved: ['print(1)'],
      deleted: 404,
      // A WebSocket has its own connection.
      protocols: way.protocol === 'http2' ? ['h2', 'http/1.1'] : ['http/1.1'],
    })
  },
)

test.for(ways)('the page of a notebook goes on after refused saves and connections, $name', async (way) => {
  const file = join(root, 'tight', `${ways.indexOf(way)}.ipynb`)
  writeFileSync(file, JSON.stringify({ nbformat: 4, nbformat_minor: 4, metadata: {}, cells: [] }))
  await letIn(way, 'tight')
  const page = runClient('jupyter-page.js', way, [`tight/${ways.indexOf(way)}.ipynb`])
  const { value } = await letInWhenRefused(way, 'tight', page)
  expect(value).toEqual({
    first: 'ü 42\n',
    second: "'ü 42'",
    saves: [429, 'saved'],
    refused: ['PUT', 'WebSocket'],
    errors: [],
    protocols: [way.protocol === 'http2' ? 'h2' : 'http/1.1'],
  })
  const { cells } = JSON.parse(readFileSync(file, 'utf8')) as { cells: { source: string[] }[] }
  expect(cells.map(({ source }) => source.join('')).filter((text) => text !== '')).toEqual([
    "x = 'ü 42'\nprint(x)",
    'x',
  ])
})

async function start(): Promise<{ port: number; probe: string }> {
  mkdirSync(join(root, 'tight'))
  const args = (port: number): string[] => [
    ...['--no-browser', '--allow-root', '--ip=127.0.0.1', `--port=${port}`, '--port-retries=0'],
    ...[`--notebook-dir=${root}`, '--NotebookApp.token=', '--NotebookApp.password='],
    '--NotebookApp.disable_check_xsrf=True',
  ]
  const env = { HOME: root, JUPYTER_RUNTIME_DIR: root, IPYTHONDIR: root }
  const port = await startServer('/usr/bin/jupyter-notebook', args, { ready: /is running at/, env })
  return { port, probe: '/api' }
}
