import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { canConnect } from '../support/network/ports.ts'
import { DEVICE_SECRET, tableOfEveryKind } from '../support/gateway/every-kind.ts'
import { eventually } from '../support/wait/eventually.ts'

/** A proxy in front of the recording backend. Each proxy passes on the client's address in `X-Real-IP`. */
export type Proxy = { readonly name: string; readonly port: number; stop(): void }

type Start = (port: number, backendPort: number, directory: string) => ChildProcess

const repositoryRoot = join(import.meta.dirname, '../..')

const startNginx: Start = (port, backendPort, directory) => {
  const configFile = join(directory, 'nginx.conf')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  writeFileSync(
    configFile,
    `daemon off; master_process off; pid ${directory}/nginx.pid; error_log ${directory}/nginx.log crit;
    events { worker_connections 1024; }
    http {
      access_log off;
      ${temporary.map((kind) => `${kind}_temp_path ${directory}/${kind};`).join(' ')}
      map $http_upgrade $upgrading { default upgrade; '' close; }
      server {
        listen 127.0.0.1:${port};
        location / {
          proxy_pass http://127.0.0.1:${backendPort};
          proxy_http_version 1.1;
          proxy_set_header Host $http_host;
          proxy_set_header X-Real-IP $remote_addr;
          proxy_set_header Upgrade $http_upgrade;
          proxy_set_header Connection $upgrading;
        }
      }
    }`,
  )
  return spawn('nginx', ['-p', directory, '-c', configFile], { stdio: 'ignore' })
}

const startHaproxy: Start = (port, backendPort, directory) => {
  const configFile = join(directory, 'haproxy.cfg')
  writeFileSync(
    configFile,
    `defaults
  mode http
  timeout connect 2s
  timeout client 5s
  timeout server 5s
frontend clients
  bind 127.0.0.1:${port}
  http-request set-header x-real-ip %[src]
  default_backend recording
backend recording
  server one 127.0.0.1:${backendPort}
`,
  )
  return spawn('haproxy', ['-f', configFile], { stdio: 'ignore' })
}

const startHttpProxy: Start = (port, backendPort, directory) =>
  spawn(process.execPath, [join(import.meta.dirname, 'http-proxy.js'), String(port), String(backendPort)], {
    cwd: directory,
    stdio: 'ignore',
  })

const startGateway: Start = (port, backendPort, directory) => {
  const configFile = join(directory, 'sluice.yaml')
  // No rule refuses by count: only a request with an ambiguous value is refused.
  writeFileSync(configFile, tableOfEveryKind())
  return spawn(process.execPath, [join(repositoryRoot, 'proxy/main.ts')], {
    cwd: directory,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOST: '127.0.0.1',
      PORT: String(port),
      ADMIN_PORT: '0',
      CONFIG_FILE: configFile,
      LOG_LEVEL: 'silent',
      DEVICE_SECRET,
      UPSTREAM_URL: `http://127.0.0.1:${backendPort}`,
    },
    stdio: 'ignore',
  })
}

const starts = {
  sluice: startGateway,
  nginx: startNginx,
  haproxy: startHaproxy,
  'http-proxy': startHttpProxy,
} satisfies Record<string, Start>

export type ProxyName = keyof typeof starts

/** Starts a proxy and waits until it accepts connections. */
export async function startProxy(name: ProxyName, port: number, backendPort: number): Promise<Proxy> {
  const directory = mkdtempSync(join(tmpdir(), `sluice-${name}-`))
  const child = starts[name](port, backendPort, directory)
  const isThere = await eventually(`${name} takes connections, or has ended`, async () => {
    if (child.exitCode !== null) return { isThere: false }
    return (await canConnect(port)) && { isThere: true }
  })
  if (!isThere.isThere) throw new Error(`${name} did not start`)
  return {
    name,
    port,
    stop() {
      child.kill('SIGKILL')
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** The programs to compare with that this machine lacks. */
export function missingPrograms(): string[] {
  return ['nginx', 'haproxy'].filter((program) => spawnSync(program, ['-v']).error !== undefined)
}
