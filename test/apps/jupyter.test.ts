import { expect, test } from 'vitest'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { runClient } from './client.ts'
import { startServer } from './server.ts'
import { setStage } from './stage.ts'

// Jupyter Notebook: its API of files and kernels, and a kernel by a WebSocket, with much output and an interrupt.

const { direct, ways } = setStage({ start, http2: false })

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
    })
  },
)

async function start(): Promise<{ port: number; probe: string }> {
  const root = makeTemporaryDirectory()
  const args = (port: number): string[] => [
    ...['--no-browser', '--allow-root', '--ip=127.0.0.1', `--port=${port}`, '--port-retries=0'],
    ...[`--notebook-dir=${root}`, '--NotebookApp.token=', '--NotebookApp.password='],
    '--NotebookApp.disable_check_xsrf=True',
  ]
  const env = { HOME: root, JUPYTER_RUNTIME_DIR: root, IPYTHONDIR: root }
  const port = await startServer('/usr/bin/jupyter-notebook', args, { ready: /is running at/, env })
  return { port, probe: '/api' }
}
