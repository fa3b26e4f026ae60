import { expect, test } from 'vitest'
import { commandOf, spawnCommand } from '../support/gateway/process.ts'

// Node's executable contains the compiled code of its own modules. That code fits only the V8 flags that Node was built with: once another
// flag is set, Node compiles each module again when it loads the module.

/** At the end of the process, writes which of its public modules Node has compiled. */
const reporter = `data:text/javascript,${encodeURIComponent(`
  import { createRequire } from 'node:module'
  const { internalBinding } = createRequire('/')('internal/test/binding')
  process.on('exit', () => {
    const { compiledWithCache, compiledWithoutCache } = internalBinding('builtins').getCacheUsage()
    const names = (modules) => JSON.stringify([...modules].filter((name) => !name.startsWith('internal/')))
    console.log('compiled before: ' + names(compiledWithCache))
    console.log('compiled again: ' + names(compiledWithoutCache))
  })`)}`

test('a gateway uses the compiled code of Node’s modules', async () => {
  const { args, env } = commandOf('proxy/main.ts')
  const settings = { PORT: '0', ADMIN_PORT: '0', UPSTREAM_URL: 'http://127.0.0.1:9' }
  const options = ['--no-warnings', '--expose-internals', '--import', reporter, ...args]
  const gateway = spawnCommand(process.execPath, { ...env, ...settings }, options)
  await gateway.waitForLine(/"msg":"listening"/)
  expect(await gateway.stop()).toBe(0)
  expect(gateway.stdout()).toMatch(/^compiled before: .*"http2"/m)
  expect(gateway.stdout()).toMatch(/^compiled again: \[\]$/m)
})
