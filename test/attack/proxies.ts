import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { atEnd } from '../support/at-end.ts'
import { certificateFiles, tlsSettings } from '../support/certificates.ts'
import { freePort } from '../support/ports.ts'
import { readPorts, startGateway } from './processes.ts'

/** A proxy, one process, with its defaults wherever the attack does not ask for something else. */
export type Proxy = {
  readonly name: string
  readonly pid: number
  readonly port: number
  readonly adminPort: number | undefined
  /** Connections that it takes in all. */
  readonly most: number
  stop(): void
}

export type ProxyName = 'sluice' | 'nginx'

export type ProxyOptions = { readonly backendPort: number; readonly tls: boolean }

export async function startProxy(name: ProxyName, options: ProxyOptions): Promise<Proxy> {
  return name === 'nginx' ? await startNginx(options) : await startSluice(options)
}

async function startSluice({ backendPort, tls }: ProxyOptions): Promise<Proxy> {
  const gateway = startGateway({
    HOST: '127.0.0.1',
    PORT: '0',
    ADMIN_PORT: '0',
    CONFIG_FILE: 'test/support/defaults.yaml',
    UPSTREAM_URL: `http://127.0.0.1:${backendPort}`,
    ...(tls && tlsSettings()),
  })
  const ports = await readPorts(gateway)
  return { name: 'sluice', pid: gateway.pid, ...ports, most: 10_000, stop: () => gateway.stop() }
}

/** 5,000 event streams take 10,000 connections of it, those to the backend being among them. */
const nginxConnections = 11_000

export const nginxIsThere = (): boolean => spawnSync('nginx', ['-v']).error === undefined

async function startNginx({ backendPort, tls }: ProxyOptions): Promise<Proxy> {
  const directory = mkdtempSync(join(tmpdir(), 'sluice-attack-nginx-'))
  const port = await freePort()
  const configFile = join(directory, 'nginx.conf')
  writeFileSync(configFile, nginxConfiguration(directory, port, backendPort, tls))
  const child = spawn('nginx', ['-p', directory, '-c', configFile, '-e', 'stderr'], { stdio: 'ignore' })
  const stop = (): void => {
    child.kill('SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  }
  atEnd(stop)
  for (let attempt = 0; !(await canConnect(port)); attempt++) {
    if (attempt === 100 || child.exitCode !== null) throw new Error('nginx did not start')
    await sleep(50)
  }
  return { name: 'nginx', pid: child.pid ?? 0, port, adminPort: undefined, most: nginxConnections, stop }
}

function nginxConfiguration(directory: string, port: number, backendPort: number, tls: boolean): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const { cert, key } = certificateFiles('first')
  return `daemon off; master_process off; pid ${directory}/nginx.pid; error_log ${directory}/nginx.log crit;
events { worker_connections ${nginxConnections}; }
http {
  access_log off;
  ${temporary.map((kind) => `${kind}_temp_path ${directory}/${kind};`).join(' ')}
  limit_req_zone $binary_remote_addr zone=refused:1m rate=1r/m;
  limit_req_status 429;
  upstream backend { server 127.0.0.1:${backendPort}; keepalive 256; }
  ${tls ? `ssl_certificate ${cert}; ssl_certificate_key ${key};` : ''}
  server {
    listen 127.0.0.1:${port} ${tls ? 'ssl http2' : ''};
    proxy_http_version 1.1;
    proxy_set_header Connection '';
    proxy_set_header Host $http_host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    location / { proxy_pass http://backend; }
    location = /forgot-password { limit_req zone=refused; proxy_pass http://backend; }
  }
}
`
}

function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
