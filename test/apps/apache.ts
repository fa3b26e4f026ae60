import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../support/network/ports.ts'
import { send } from '../support/gateway/gateway.ts'
import { spawnCommand } from '../support/gateway/process.ts'
import { untilMatches } from '../support/wait/until-matches.ts'

/**
 * Starts Debian's Apache and returns its port. It is killed at the end of the test file.
 *
 * @param directory for the server's own files; everything in it is given to the user that the server runs as
 * @param modules modules beyond those that every server needs, such as `dav`
 * @param site directives for the content to serve
 * @param mpm how the server handles connections: with threads and events, or with a process for each
 */
export async function startApache(
  directory: string,
  modules: readonly string[],
  site: readonly string[],
  mpm: 'mpm_event' | 'mpm_prefork' = 'mpm_event',
): Promise<number> {
  const port = await freePort()
  const names = [mpm, 'authz_core', ...modules]
  const config = join(directory, 'apache.conf')
  const errors = join(directory, 'error.log')
  writeFileSync(errors, '')
  const directives = [
    `ServerRoot ${directory}`,
    `DefaultRuntimeDir ${directory}`,
    `PidFile ${directory}/apache.pid`,
    `ErrorLog ${errors}`,
    'ServerName localhost',
    `Listen 127.0.0.1:${port}`,
    ...names.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`),
    // Apache switches to this user if it is started as root, as in a container.
    'User www-data',
    'Group www-data',
    ...site,
  ]
  writeFileSync(config, directives.join('\n') + '\n')
  if (process.getuid?.() === 0) execFileSync('chown', ['-R', 'www-data:www-data', directory])

  const server = spawnCommand('/usr/sbin/apache2', {}, ['-f', config, '-DFOREGROUND'])
  const ask = (): Promise<string> =>
    send(port, 'GET', '/').then(
      () => 'up',
      () => server.output() + readFileSync(errors, 'utf8'),
    )
  await untilMatches(ask, /^up$/)
  return port
}
