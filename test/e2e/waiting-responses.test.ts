import { once } from 'node:events'
import { connect, type ClientHttp2Session } from 'node:http2'
import { expect, onTestFinished, test } from 'vitest'
import { startSluice } from '../../proxy/testing/embedded/start-sluice.ts'
import { collectGarbage } from '../../shared/v8-gc.ts'
import { startBackend } from '../support/http/backend.ts'

const STREAMS = 300

/** Uses up Node's buffer pool, so that short buffers before and after this call lie in different pools. */
function useUpPool(): void {
  for (let i = 0; i < 4; i++) Buffer.allocUnsafe(30_000)
}

function memoryOfBytes(): number {
  collectGarbage()
  return process.memoryUsage().arrayBuffers
}

async function openWithoutWindow(url: string): Promise<ClientHttp2Session> {
  const session = connect(url, { settings: { initialWindowSize: 0 } })
  onTestFinished(() => session.destroy())
  await once(session, 'remoteSettings')
  return session
}

test('short responses that clients do not read keep little more memory than their bytes', async () => {
  const backend = await startBackend()
  const gateway = await startSluice({ upstream: backend.url, limits: [] })
  onTestFinished(() => gateway.close())
  const sessions = await Promise.all(Array.from({ length: 6 }, () => openWithoutWindow(gateway.url)))
  const before = memoryOfBytes()
  for (let i = 0; i < STREAMS; i++) {
    const stream = sessions[i % sessions.length]?.request({ ':path': '/' })
    await once(stream ?? backend.server, 'response')
    useUpPool()
  }
  expect((memoryOfBytes() - before) / STREAMS).toBeLessThan(8 * 1024)
})
