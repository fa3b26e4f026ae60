import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const from = '127.0.0.7'
const table = (mode: string): string => `
limits:
  - name: chat
    match: POST /chat
    requests: 1000
    window: 15m
    mode: ${mode}
    cost: { reserve: 'json:max_tokens', settle: 'header:x-cost' }
    ban: { after: 1, for: 1h }
`

async function beginUpload(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, localAddress: from })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  const head =
    'POST /chat HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 65000\r\n\r\n'
  socket.write(head + ' '.repeat(60_000))
  return socket
}

test.each(['enforce', 'shadow'])('bodies that do not fit into memory, of a rule in %s', async (mode) => {
  const backend = await startBackend()
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE: writeConfigFile(table(mode)) })
  // One client may hold 16 MiB.
  const answers: string[] = []
  const uploads = await Promise.all(Array.from({ length: 280 }, () => beginUpload(gateway.port)))
  onTestFinished(() => uploads.forEach((socket) => socket.destroy()))
  for (const socket of uploads) socket.on('data', (bytes: Buffer) => answers.push(bytes.toString('latin1')))
  await eventually('a body could not be read for want of memory', async () => {
    const metrics = await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`).then((reply) => reply.text())
    expect(metrics).toMatch(/sluice_unread_reserves_total\{policy="chat",reason="memory"\} [1-9]/)
    // In shadow mode, no request is refused.
    if (mode === 'enforce') expect(answers.length).toBeGreaterThan(0)
  })
  for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 503 [^]*\r\nretry-after: 1\r\n/i)
  if (mode === 'shadow') expect(answers).toEqual([])
  const { body } = await askOperator(gateway, 'GET', '/api/bans')
  expect(body).toEqual({ total: 0, bans: [] })
})
