import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { spawnCommand } from '../support/gateway/process.ts'
import { canConnect, freePort } from '../support/network/ports.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

/**
 * Starts Debian's MariaDB with an empty database of this name. A user of the same name may access it with the password `test`. Returns its
 * port on 127.0.0.1. It is killed at the end of the test file.
 */
export async function startMariaDb(name: string): Promise<number> {
  const port = await freePort()
  const root = makeTemporaryDirectory()
  const data = join(root, 'data')
  const socket = join(root, 'socket')
  const place = ['--no-defaults', `--datadir=${data}`, '--user=root']
  execFileSync('/usr/bin/mariadb-install-db', [...place, '--skip-test-db'], { stdio: 'pipe' })
  const network = [`--socket=${socket}`, '--bind-address=127.0.0.1', `--port=${port}`]
  spawnCommand('/usr/sbin/mariadbd', {}, [...place, ...network, `--pid-file=${root}/pid`])
  await eventually('the database takes connections', () => canConnect(port), { endMs: 60_000 })
  const statements = [
    `CREATE DATABASE ${name}`,
    `CREATE USER ${name}@'127.0.0.1' IDENTIFIED BY 'test'`,
    `GRANT ALL ON ${name}.* TO ${name}@'127.0.0.1'`,
  ]
  const client = ['--no-defaults', `--socket=${socket}`, '--user=root']
  execFileSync('/usr/bin/mariadb', [...client, `--execute=${statements.join(';')}`], { stdio: 'pipe' })
  return port
}
