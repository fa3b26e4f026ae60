import { spawnSync } from 'node:child_process'
import { expect, onTestFinished, test } from 'vitest'
import { startServer } from '../../../bench/measure/processes.ts'
import { freePort } from '../../support/network/ports.ts'
import { eventually } from '../../support/wait/eventually.ts'

const serverAt = (port: number): string => `require('node:net').createServer().listen(${port}, '127.0.0.1')`

/** Whether the process runs. A zombie, whose status nobody has collected, does not. */
function isRunning(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return /^[^Z]/.test(stdout.trim())
}

test('the processes that a server has started end with it, even outside of its process group', async () => {
  const port = await freePort()
  // Like php-fpm beside nginx, the other process has its own session, and shares the output.
  const script = `setsid sh -c 'echo "started $$"; sleep 1000' & exec "$0" -e "$1"`
  const args = ['-c', script, process.execPath, serverAt(port)]
  const server = await startServer({ program: 'sh', args }, port)
  const pid = await eventually('the other process has started', () => {
    const [, digits] = /started (\d+)/.exec(server.output()) ?? []
    return digits === undefined ? false : Number(digits)
  })
  onTestFinished(() => {
    if (isRunning(pid)) process.kill(-pid, 'SIGKILL')
  })
  await server.stop()
  await eventually('both have ended', () => expect([server.pid, pid].filter(isRunning)).toEqual([]))
})
