import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { runClient } from './client.ts'
import { startServer } from './server.ts'
import { setStage } from './stage.ts'

// Vite's development server with hot reload, and Chromium.

const project = join(makeTemporaryDirectory(), 'project')
const files = {
  'index.html': '<title>One</title><p></p><script type="module" src="./main.js"></script>',
  'style.css': 'p { color: rgb(1, 1, 1) }\n',
  'part.js': "export const text = 'module 1'\n",
  'main.js': `import './style.css'
import { text } from './part.js'
const show = (value) => (document.querySelector('p').textContent = value)
show(text)
import.meta.hot.accept('./part.js', (part) => show(part.text))
`,
}

const { direct, ways } = setStage({ start, http2: true })

test.for([direct, ...ways])('Vite serves a page and its hot updates, $name', async (way) => {
  expect(await runClient('vite.js', way, [join(project, String(ways.indexOf(way)))])).toEqual({
    hot: true,
    hotStyle: true,
    sockets: true,
    failures: [],
    protocols: [way.protocol === 'http2' ? 'h2' : 'http/1.1'],
  })
})

async function start(): Promise<{ port: number; probe: string }> {
  // Each way has its own page, so that a change by one is not visible to another.
  for (const index of [-1, ...ways.keys()]) {
    const folder = join(project, String(index))
    mkdirSync(folder, { recursive: true })
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  }
  const watch = 'export default { server: { watch: { usePolling: true, interval: 100 } } }\n'
  writeFileSync(join(project, 'vite.config.js'), watch)
  const program = join(import.meta.dirname, 'node_modules/vite/bin/vite.js')
  const port = await startServer(
    process.execPath,
    (free) => [program, '--host', '127.0.0.1', '--port', String(free), '--strictPort'],
    { ready: /Local:/, cwd: project },
  )
  return { port, probe: '/-1/' }
}
