import { chmodSync, cpSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Backend, DebianPackage } from './backends.ts'
import { scriptRoutes } from './routes.ts'

// PHP as it is deployed: a script as an endpoint, and a front controller behind a rewrite rule.

const servers = join(import.meta.dirname, 'servers')
const apacheModule = '/usr/lib/apache2/modules/libphp*.so'
const fpmProgram = '/usr/sbin/php-fpm*'

/** Writes configuration files with their placeholders filled in, beside the scripts, where other users can read them. */
function writeSite(folder: string, port: number, names: readonly string[]): void {
  for (const each of [folder, dirname(folder)]) chmodSync(each, 0o755)
  const root = join(folder, 'www')
  cpSync(join(servers, 'php'), root, { recursive: true })
  const values = {
    PORT: String(port),
    DIRECTORY: folder,
    ROOT: root,
    MODULE: globSync(apacheModule)[0] ?? '',
  }
  for (const name of names) {
    let text = readFileSync(join(servers, name), 'utf8')
    for (const [placeholder, value] of Object.entries(values)) text = text.replaceAll(placeholder, value)
    writeFileSync(join(folder, name), text)
  }
}

function withFile(name: string, pattern: string): DebianPackage {
  return { name, check: ['sh', '-c', `ls ${pattern}`] }
}

export const phpBackends: readonly Backend[] = [
  {
    name: 'PHP on Apache',
    needs: [withFile('apache2', '/usr/sbin/apache2'), withFile('libapache2-mod-php', apacheModule)],
    routes: scriptRoutes,
    start: (port, folder) => {
      writeSite(folder, port, ['apache.conf'])
      return { program: '/usr/sbin/apache2', args: ['-f', join(folder, 'apache.conf'), '-DFOREGROUND'] }
    },
  },
  {
    name: 'PHP on FPM and nginx',
    needs: [withFile('nginx', '/usr/sbin/nginx'), withFile('php-fpm', fpmProgram)],
    routes: scriptRoutes,
    start: (port, folder) => {
      writeSite(folder, port, ['nginx-fpm.conf', 'fpm.conf'])
      const fpm = globSync(fpmProgram)[0] ?? ''
      const both = `${fpm} -F -y fpm.conf & exec nginx -p . -c nginx-fpm.conf`
      return { program: 'sh', args: ['-c', both], directory: folder }
    },
  },
]
