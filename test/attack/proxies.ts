import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { atEnd } from '../support/run/at-end.ts'
import { certificateFiles, tlsSettings } from '../support/network/certificates.ts'
import { canConnect, freePort } from '../support/network/ports.ts'
import { readPorts, startGateway, startWorker } from './processes.ts'

/** A proxy in one process, with its defaults unless the attack needs another setting. */
export type Proxy = {
  readonly name: string
  readonly pid: number
  readonly port: number
  readonly adminPort: number | undefined
  /** Maximum number of connections that it accepts. */
  readonly most: number
  stop(): void
}

/** `node` is Node's own HTTPS server, which answers by itself and does not proxy. It shows how much Node itself can take. */
export type ProxyName = 'sluice' | 'nginx' | 'haproxy' | 'node'

export type ProxyOptions = { readonly backendPort: number; readonly tls: boolean }

const starts: Readonly<Record<ProxyName, (options: ProxyOptions) => Promise<Proxy>>> = {
  sluice: startSluice,
  nginx: (options) =>
    startProgram('nginx', options, (directory, file, port) => ({
      configuration: nginxConfiguration(directory, port, options),
      args: ['-p', directory, '-c', file, '-e', 'stderr'],
    })),
  haproxy: (options) =>
    startProgram('haproxy', options, (directory, file, port) => ({
      configuration: haproxyConfiguration(directory, port, options),
      args: ['-db', '-f', file],
    })),
  node: startBareNode,
}

export const startProxy = (name: ProxyName, options: ProxyOptions): Promise<Proxy> => starts[name](options)

/** The names of those that this machine lacks. */
export const missingPrograms = (names: Iterable<ProxyName>): string[] =>
  [...new Set(names)].filter(
    (name) => (name === 'nginx' || name === 'haproxy') && spawnSync(name, ['-v']).error !== undefined,
  )

async function startSluice({ backendPort, tls }: ProxyOptions): Promise<Proxy> {
  const gateway = startGateway({
    HOST: '127.0.0.1',
    PORT: '0',
    ADMIN_PORT: '0',
    CONFIG_FILE: 'test/support/gateway/defaults.yaml',
    UPSTREAM_URL: `http://127.0.0.1:${backendPort}`,
    ...(tls && tlsSettings()),
  })
  const ports = await readPorts(gateway)
  return { name: 'sluice', pid: gateway.pid, ...ports, most: 10_000, stop: () => gateway.stop() }
}

async function startBareNode({ tls }: ProxyOptions): Promise<Proxy> {
  const server = startWorker('test/attack/bare-server.ts', tls ? ['--tls'] : [])
  const { port } = JSON.parse(await server.nextLine()) as { port: number }
  return {
    name: 'node',
    pid: server.pid,
    port,
    adminPort: undefined,
    most: Infinity,
    stop: () => server.stop(),
  }
}

/** 5,000 event streams use 10,000 connections of the proxy, including those to the backend. */
const peerConnections = 11_000

/** Starts a program with its settings file in its own directory. */
async function startProgram(
  name: 'nginx' | 'haproxy',
  { tls }: ProxyOptions,
  describe: (
    directory: string,
    file: string,
    port: number,
  ) => { readonly configuration: string; readonly args: readonly string[] },
): Promise<Proxy> {
  const directory = mkdtempSync(join(tmpdir(), `sluice-attack-${name}-`))
  const port = await freePort()
  const file = join(directory, `${name}.conf`)
  const { configuration, args } = describe(directory, file, port)
  writeFileSync(file, configuration)
  if (tls)
    writeFileSync(
      pairFile(directory),
      Object.values(certificateFiles('first'))
        .map((part) => readFileSync(part, 'latin1'))
        .join(''),
    )
  const child = spawn(name, args, { stdio: 'ignore' })
  const stop = (): void => {
    child.kill('SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  }
  atEnd(stop)
  for (let attempt = 0; !(await canConnect(port)); attempt++) {
    if (attempt === 100 || child.exitCode !== null) throw new Error(`${name} did not start`)
    await sleep(50)
  }
  return { name, pid: child.pid ?? 0, port, adminPort: undefined, most: peerConnections, stop }
}

/** Certificate and key in one file, as HAProxy reads them. */
const pairFile = (directory: string): string => join(directory, 'pair.pem')

function haproxyConfiguration(directory: string, port: number, { backendPort, tls }: ProxyOptions): string {
  return `global
  nbthread 1
  maxconn 8192
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  timeout http-request 10s
  http-reuse always
frontend clients
  bind 127.0.0.1:${port} backlog 4096${tls ? ` ssl crt ${pairFile(directory)} alpn h2,http/1.1` : ''}
  option forwardfor
  default_backend backend
backend backend
  server backend 127.0.0.1:${backendPort}
`
}

function nginxConfiguration(directory: string, port: number, { backendPort, tls }: ProxyOptions): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const { cert, key } = certificateFiles('first')
  return `daemon off; master_process off; pid ${directory}/nginx.pid; error_log ${directory}/nginx.log crit;
events { worker_connections ${peerConnections}; }
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
    location = /pieces { proxy_request_buffering off; client_max_body_size 0; proxy_pass http://backend; }
    location = /forgot-password { limit_req zone=refused; proxy_pass http://backend; }
  }
}
`
}
