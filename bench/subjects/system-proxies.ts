import { existsSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { startServer } from '../measure/processes.ts'
import type { Setup, Subject } from './subject.ts'

/** Debian installs servers in folders that are only on root's path. */
const places = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']

/** The path of a program on this machine; undefined if it is missing. */
export function findProgram(name: string): string | undefined {
  return places.map((place) => join(place, name)).find(existsSync)
}

function systemSubject(
  name: string,
  args: (file: string, directory: string) => string[],
  configuration: (setup: Setup) => string,
): Subject {
  return {
    name,
    kind: 'system',
    missing: () => (findProgram(name) === undefined ? `${name} is not installed` : undefined),
    start: (setup) => {
      const file = join(setup.directory, `${name}.conf`)
      writeFileSync(file, configuration(setup))
      return startServer(
        { program: findProgram(name) ?? name, args: args(file, setup.directory) },
        setup.port,
      )
    },
  }
}

/** One worker. Its limit is in its own shared memory, for this machine alone. */
export const nginx = systemSubject(
  'nginx',
  (file, directory) => ['-p', directory, '-c', file, '-e', 'stderr'],
  ({ port, backendPort, connections, directory, tls }) => `
daemon off;
user root;
worker_processes 1;
pid ${directory}/nginx.pid;
events { worker_connections 8192; }
http {
  access_log off;
  keepalive_timeout 1h;
  keepalive_requests 1000000000;
  client_body_temp_path ${directory}/nginx-bodies;
  proxy_temp_path ${directory}/nginx-proxy;
  fastcgi_temp_path ${directory}/nginx-fastcgi;
  uwsgi_temp_path ${directory}/nginx-uwsgi;
  scgi_temp_path ${directory}/nginx-scgi;
  # Bodies of this benchmark stay in memory in both directions.
  client_body_buffer_size 128k;
  proxy_buffers 8 16k;
  proxy_busy_buffers_size 32k;

  set_real_ip_from 127.0.0.1;
  real_ip_header X-Forwarded-For;
  # A leaky bucket has no hour-long window: a rate that is never reached, and one a minute, the slowest it knows.
  limit_req_zone $binary_remote_addr zone=limited:32m rate=100000r/s;
  limit_req_zone $binary_remote_addr zone=refused:1m rate=1r/m;
  limit_req_status 429;
  limit_req_log_level info;
  error_log stderr crit;

  upstream backend {
    server 127.0.0.1:${backendPort};
    keepalive ${connections};
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
  }
  server {
    listen 127.0.0.1:${port}${tls ? ' ssl http2' : ''} backlog=4096;
    ${tls ? `ssl_certificate ${tls.cert}; ssl_certificate_key ${tls.key};` : ''}
    proxy_http_version 1.1;
    proxy_set_header Connection '';
    proxy_set_header Host $http_host;
    proxy_set_header X-Real-IP $remote_addr;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header X-Forwarded-Host $http_host;
    location / { proxy_pass http://backend; }
    location = /limited { limit_req zone=limited burst=100000 nodelay; proxy_pass http://backend; }
    location = /refused { limit_req zone=refused; proxy_pass http://backend; }
  }
}
`,
)

/** One thread. Its limit is in a stick table in its own memory. */
export const haproxy = systemSubject(
  'haproxy',
  (file) => ['-db', '-f', file],
  ({ port, backendPort, tls }) => `
global
  nbthread 1
  maxconn 8192

defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  option http-keep-alive
  http-reuse always

frontend clients
  bind 127.0.0.1:${port} backlog 4096${tls ? ` ssl crt ${tls.pair} alpn h2,http/1.1` : ''}
  http-request set-src req.hdr(X-Forwarded-For) if { src 127.0.0.1 } { req.hdr(X-Forwarded-For) -m found }
  option forwardfor
  http-request set-header X-Forwarded-Proto ${tls ? 'https' : 'http'}
  http-request set-header X-Forwarded-Host %[req.hdr(Host)]
  http-request set-header X-Real-IP %[src]
  http-request track-sc0 src table limited if { path /limited }
  http-request track-sc0 src table refused if { path /refused }
  http-request deny deny_status 429 if { path /limited } { sc_http_req_rate(0,limited) gt 1000000000 }
  http-request deny deny_status 429 if { path /refused } { sc_http_req_rate(0,refused) gt 1 }
  default_backend backend

backend backend
  server backend 127.0.0.1:${backendPort}

backend limited
  stick-table type ip size 200k expire 1h store http_req_rate(1h)

backend refused
  stick-table type ip size 1k expire 1h store http_req_rate(1h)
`,
)
