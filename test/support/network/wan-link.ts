import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { atEndOfFile } from '../run/at-end.ts'

const links = new Set<ChildProcess>()
atEndOfFile(() => {
  for (const link of links) link.kill()
  links.clear()
})

/**
 * Starts a link to a port of 127.0.0.1 with small buffers and a limited rate for responses, until the end of the test file. The link is a
 * Python program, as Node cannot bound the buffers of a socket.
 *
 * @returns the port to connect to
 */
export async function startWanLink(port: number, bytesPerSecond: number): Promise<number> {
  const script = join(import.meta.dirname, 'wan_link.py')
  const link = spawn('python3', [script, String(port), String(bytesPerSecond)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  links.add(link)
  const [line] = (await once(link.stdout, 'data')) as [Buffer]
  return Number(line.toString())
}
