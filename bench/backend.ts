import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startServer, type Running } from './measure/processes.ts'

/** The response of the backend, and of the bare server. */
export const jsonBody = '{"id":"clx0000000000000000000000","project":{"id":"p1","name":"Bench"},"ok":true}\n'
export const largeBodyBytes = 65_536

/**
 * The backend of all subjects: nginx with one worker, which answers from its configuration. It costs little compared with any subject, and
 * it is not measured.
 *
 * `/body` returns 64 KiB after reading the request body, `/fields` the fields that a proxy adds, and everything else a small JSON object.
 */
export function startBackend(port: number, directory: string): Promise<Running> {
  const file = join(directory, 'backend.conf')
  writeFileSync(file, configuration(port, directory))
  return startServer({ program: 'nginx', args: ['-p', directory, '-c', file, '-e', 'stderr'] }, port)
}

function configuration(port: number, directory: string): string {
  const kib = 'r'.repeat(1024)
  return `
daemon off;
user root;
worker_processes 1;
pid ${directory}/backend.pid;
events { worker_connections 8192; }
http {
  access_log off;
  keepalive_timeout 1h;
  keepalive_requests 1000000000;
  client_body_temp_path ${directory}/backend-bodies;
  proxy_temp_path ${directory}/backend-proxy;
  fastcgi_temp_path ${directory}/backend-fastcgi;
  uwsgi_temp_path ${directory}/backend-uwsgi;
  scgi_temp_path ${directory}/backend-scgi;
  default_type application/json;
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / { return 200 '${jsonBody.trimEnd()}\\n'; }
    location = /fields { return 200 '$http_x_forwarded_for $http_x_forwarded_proto'; }
    location = /body {
      set $kib '${kib}';
      return 200 '${'$kib'.repeat(largeBodyBytes / 1024)}';
    }
  }
}
`
}
