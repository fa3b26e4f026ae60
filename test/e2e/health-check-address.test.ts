import { expect, test } from 'vitest'
import { runNode } from '../support/gateway/process.ts'
import { directoryWith } from '../support/gateway/settings.ts'
import { startBackend } from '../support/http/backend.ts'

// An engine that restarts unhealthy containers would end a gateway that serves with its previous limits, and could not start again.

test.each([
  ['a quoted address', "adminHost: '127.0.0.1'\nadminPort: PORT\n"],
  ['a quoted name', '"adminPort": PORT\n'],
  ['a variable', 'adminPort: ${ADMIN:-PORT}\n'],
])('a mistake in the file does not fail the health check: %s', async (_, address) => {
  const backend = await startBackend((_request, response) => void response.end())
  const { port } = new URL(backend.url)
  const cwd = directoryWith(`${address.replace('PORT', port)}limits: [{ name: a }]\n`)
  const { status, stdout, stderr } = await runNode('proxy/healthcheck.ts', {}, [], { cwd })
  expect({ status, stdout, stderr }).toEqual({
    status: 0,
    stdout: `/readyz on port ${port}: status 200\n`,
    stderr: '',
  })
})
