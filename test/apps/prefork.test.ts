import { chmodSync, cpSync, existsSync, globSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { send, startGateway } from '../support/gateway/gateway.ts'
import { spawnCommand } from '../support/gateway/process.ts'
import { canConnect, freePort } from '../support/network/ports.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'
import { startApache } from './apache.ts'
import { startServer } from './server.ts'

// Servers that give each connection a worker. nginx, which opens a connection for each request, is the reference: many concurrent requests
// must take no longer through the gateway, although it keeps connections open.

/** The path sets how long each request takes at the backend. */
const PATH = '/?ms=200'
/** On a busy machine a measurement is repeated, up to this number of attempts. */
const ATTEMPTS = 4

const files = join(import.meta.dirname, 'servers/prefork')

type Starter = (directory: string) => Promise<number>

const backends: Readonly<Record<string, Starter>> = {
  'Apache, 4 workers': startPrefork(4),
  'Apache, 24 workers': startPrefork(24),
  'Apache, 150 workers': startPrefork(150),
  'PHP-FPM behind nginx': startFpm,
  Puma: () => {
    const args = (port: number): string[] => [
      '-b',
      `tcp://127.0.0.1:${port}`,
      '-t',
      '5:5',
      '-w',
      '2',
      'config.ru',
    ]
    return startServer('/usr/bin/puma', args, { cwd: files, ready: /Worker 1.*booted/s })
  },
  Starman: () => {
    const args = (port: number): string[] => ['--listen', `127.0.0.1:${port}`, '--workers', '5', 'app.psgi']
    return startServer('/usr/bin/starman', args, { cwd: files, ready: /Binding to TCP/ })
  },
  'gunicorn, sync': () => startGunicorn('sync'),
  'gunicorn, threads': () => startGunicorn('gthread'),
}

test.for(Object.entries(backends))(
  'requests at the same time take as long as through nginx: %s',
  { timeout: 300_000 },
  async ([, start]) => {
    const directory = makeTemporaryDirectory()
    chmodSync(directory, 0o777)
    const port = await start(directory)
    const upstream = `http://127.0.0.1:${port}`
    const [nginx, gateway] = await Promise.all([
      startNginx(makeTemporaryDirectory(), `location / { proxy_pass ${upstream}; }`),
      startGateway({ UPSTREAM_URL: upstream, RATE_LIMITING_DISABLED: '1' }),
    ])
    for (const through of [nginx, gateway.port]) await timeOf(through, 2)
    for (const requests of [12, 40, 200]) {
      const ratios: number[] = []
      while (ratios.length < ATTEMPTS && !ratios.some((ratio) => ratio < 1.5)) {
        const judgeMs = await timeOf(nginx, requests)
        ratios.push((await timeOf(gateway.port, requests)) / judgeMs)
      }
      expect(
        Math.min(...ratios),
        `${requests} requests, compared with nginx: ${ratios.join(' ')}`,
      ).toBeLessThan(1.5)
    }
  },
)

async function timeOf(port: number, requests: number): Promise<number> {
  const beganAtMs = performance.now()
  const replies = await Promise.all(Array.from({ length: requests }, () => send(port, 'GET', PATH)))
  const tookMs = performance.now() - beganAtMs
  expect(new Set(replies.map(({ status, body }) => `${status} ${body}`))).toEqual(new Set(['200 ok']))
  return tookMs
}

function startPrefork(workers: number): Starter {
  return (directory) => {
    const root = join(directory, 'www')
    cpSync(files, root, { recursive: true })
    return startApache(
      directory,
      ['dir', 'mime'],
      [
        `LoadModule php_module ${globSync('/usr/lib/apache2/modules/libphp*.so')[0] ?? ''}`,
        'TypesConfig /etc/mime.types',
        ...['StartServers', 'MinSpareServers', 'ServerLimit', 'MaxRequestWorkers'].map(
          (name) => `${name} ${workers}`,
        ),
        `MaxSpareServers ${workers + 1}`,
        `DocumentRoot ${root}`,
        `<Directory ${root}>`,
        '  DirectoryIndex index.php',
        '  AddHandler application/x-httpd-php .php',
        '</Directory>',
      ],
      'mpm_prefork',
    )
  }
}

async function startFpm(directory: string): Promise<number> {
  const root = join(directory, 'www')
  cpSync(files, root, { recursive: true })
  const config = join(directory, 'fpm.conf')
  const socket = join(directory, 'fpm.sock')
  const lines = ['[global]', `error_log = ${directory}/fpm.log`, 'daemonize = no', '[www]', 'user = www-data']
  writeFileSync(
    config,
    [...lines, `listen = ${socket}`, 'listen.mode = 0666', 'pm = static', 'pm.max_children = 8', ''].join(
      '\n',
    ),
  )
  spawnCommand(globSync('/usr/sbin/php-fpm*')[0] ?? '', {}, ['-F', '-y', config])
  await eventually('PHP-FPM listens', () => existsSync(socket))
  const parameters = `include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_FILENAME ${root}/index.php;`
  return startNginx(makeTemporaryDirectory(), `location / { ${parameters} fastcgi_pass unix:${socket}; }`)
}

async function startGunicorn(kind: string): Promise<number> {
  const args = (port: number): string[] => [
    ...['--bind', `127.0.0.1:${port}`, '--workers', '4', '--threads', kind === 'sync' ? '1' : '2'],
    ...['--worker-class', kind, '--chdir', files, 'sleeping_app:app'],
  ]
  return startServer('/usr/bin/gunicorn', args, {
    env: { PYTHONDONTWRITEBYTECODE: '1' },
    ready: /Booting worker/,
  })
}

async function startNginx(directory: string, location: string): Promise<number> {
  const port = await freePort()
  const config = join(directory, 'nginx.conf')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${directory}/${name};`,
  )
  const server = `server { listen 127.0.0.1:${port} backlog=1024; ${location} }`
  writeFileSync(
    config,
    `daemon off; master_process off; pid ${directory}/nginx.pid; error_log ${directory}/error.log crit;
events { worker_connections 2048; }
http { access_log off; ${temporary.join(' ')} ${server} }
`,
  )
  spawnCommand('/usr/sbin/nginx', {}, ['-c', config])
  await eventually('nginx listens', () => canConnect(port))
  return port
}
