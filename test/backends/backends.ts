import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from '../../bench/measure/processes.ts'
import { phpBackends } from './php-backends.ts'
import type { Route } from './routes.ts'

/** A framework or server that serves the routes, started as its manual describes. */
export type Backend = {
  readonly name: string
  /** Routes in place of the common ones, with the same names. */
  readonly routes?: readonly Route[]
  /** Debian packages, each with a command that succeeds if the package is installed. */
  readonly needs: readonly DebianPackage[]
  /** @param folder an empty folder that the backend has to itself */
  readonly start: (port: number, folder: string) => Command
}

export type DebianPackage = { readonly name: string; readonly check: readonly [string, ...string[]] }

const servers = join(import.meta.dirname, 'servers')
/** Debian's Python with Debian's modules. Another Python may come before it on the path. */
const python = '/usr/bin/python3'

function pythonModule(name: string, module: string): DebianPackage {
  return { name, check: [python, '-c', `import ${module}`] }
}

const gunicorn = pythonModule('gunicorn', 'gunicorn')
const php: DebianPackage = { name: 'php-cli', check: ['php', '--version'] }
const nginx: DebianPackage = { name: 'nginx', check: ['nginx', '-v'] }

function onNode(name: string, script: string, env: Readonly<Record<string, string>> = {}): Backend {
  const start: Backend['start'] = (port) => ({
    program: process.execPath,
    args: [join(servers, script)],
    env: { PORT: String(port), ...env },
  })
  return { name, needs: [], start }
}

function onFastify(name: string, version: string, options: Readonly<Record<string, unknown>> = {}): Backend {
  return onNode(name, 'fastify.js', { VERSION: version, OPTIONS: JSON.stringify(options) })
}

function onGunicorn(name: string, module: string, needs: DebianPackage, variant = ''): Backend {
  const start: Backend['start'] = (port) => ({
    program: python,
    args: [
      ...['-m', 'gunicorn', '--bind', `127.0.0.1:${port}`, '--worker-class', 'gthread', '--threads', '8'],
      ...['--chdir', servers, `${module}:app`],
    ],
    env: { VARIANT: variant, PYTHONDONTWRITEBYTECODE: '1' },
  })
  return { name, needs: [gunicorn, needs], start }
}

function onFlask(name: string, variant: string): Backend {
  return onGunicorn(name, 'flask_app', pythonModule('python3-flask', 'flask'), variant)
}

function onPhp(reading: string): Backend {
  const start: Backend['start'] = (port, folder) => ({
    program: 'php',
    args: ['-q', '-S', `127.0.0.1:${port}`, '-t', folder, join(servers, 'router.php')],
    env: { READING: reading, PHP_CLI_SERVER_WORKERS: '4' },
  })
  return { name: `PHP, path ${reading}`, needs: [php], start }
}

const aiohttp: Backend = {
  name: 'aiohttp',
  needs: [pythonModule('python3-aiohttp', 'aiohttp')],
  start: (port) => ({
    program: python,
    args: [join(servers, 'aiohttp_app.py')],
    env: { PORT: String(port) },
  }),
}

const starlette: Backend = {
  name: 'Starlette on uvicorn',
  needs: [pythonModule('uvicorn', 'uvicorn'), pythonModule('python3-starlette', 'starlette')],
  start: (port) => ({
    program: python,
    args: [
      ...['-m', 'uvicorn', '--port', String(port), '--log-level', 'critical'],
      ...['--app-dir', servers, 'starlette_app:app'],
    ],
    env: { PYTHONDONTWRITEBYTECODE: '1' },
  }),
}

const sinatra: Backend = {
  name: 'Sinatra',
  needs: [
    { name: 'ruby-sinatra', check: ['ruby', '-e', 'require "sinatra/base"'] },
    { name: 'ruby-webrick', check: ['ruby', '-e', 'require "webrick"'] },
  ],
  start: (port, folder) => ({
    program: 'ruby',
    args: [join(servers, 'sinatra.rb')],
    env: { PORT: String(port) },
    directory: folder,
  }),
}

const rails: Backend = {
  name: 'Rails',
  needs: [
    { name: 'ruby-railties', check: ['ruby', '-e', 'require "action_controller/railtie"'] },
    { name: 'ruby-webrick', check: ['ruby', '-e', 'require "webrick"'] },
  ],
  start: (port, folder) => ({
    program: 'ruby',
    args: [join(servers, 'rails_app.rb')],
    env: { PORT: String(port), RAILS_ENV: 'production' },
    directory: folder,
  }),
}

const plack: Backend = {
  name: 'Plack',
  needs: [{ name: 'libplack-perl', check: ['plackup', '--version'] }],
  start: (port) => ({
    program: 'plackup',
    args: [
      '--no-default-middleware',
      '--host',
      '127.0.0.1',
      '--port',
      String(port),
      join(servers, 'plack.psgi'),
    ],
  }),
}

const cherrypy: Backend = {
  name: 'CherryPy',
  needs: [pythonModule('python3-cherrypy3', 'cherrypy')],
  start: (port) => ({
    program: python,
    args: [join(servers, 'cherrypy_app.py')],
    env: { PORT: String(port) },
  }),
}

const nginxServer: Backend = {
  name: 'nginx',
  needs: [nginx],
  start: (port, folder) => {
    const template = readFileSync(join(servers, 'nginx.conf'), 'utf8')
    const file = join(folder, 'nginx.conf')
    writeFileSync(file, template.replaceAll('PORT', String(port)).replaceAll('DIRECTORY', folder))
    return { program: 'nginx', args: ['-p', folder, '-c', file] }
  },
}

const caddy: Backend = {
  name: 'Caddy',
  needs: [{ name: 'caddy', check: ['caddy', 'version'] }],
  start: (port, folder) => ({
    program: 'caddy',
    args: ['run', '--adapter', 'caddyfile', '--config', join(servers, 'caddy.conf')],
    env: { PORT: String(port), HOME: folder },
  }),
}

const go: Backend = {
  name: 'Go net/http',
  needs: [{ name: 'golang-go', check: ['go', 'version'] }],
  start: (port, folder) => {
    cpSync(join(servers, 'server.go'), join(folder, 'server.go'))
    return {
      program: 'go',
      args: ['run', 'server.go'],
      directory: folder,
      env: { PORT: String(port), HOME: folder, GOFLAGS: '-mod=mod', GO111MODULE: 'off' },
    }
  },
}

export const backends: readonly Backend[] = [
  onNode('Express 5', 'express.js', { VERSION: 'express' }),
  onNode('Express 4, method-override', 'express.js', { VERSION: 'express-4', OVERRIDE: '1' }),
  onFastify('Fastify 4', 'fastify-4'),
  onFastify('Fastify 5', 'fastify'),
  onFastify('Fastify 5, useSemicolonDelimiter', 'fastify', { useSemicolonDelimiter: true }),
  onFastify('Fastify 5, lenient', 'fastify', {
    caseSensitive: false,
    ignoreTrailingSlash: true,
    ignoreDuplicateSlashes: true,
  }),
  onNode('Koa', 'koa.js'),
  onNode('Hono', 'hono.js'),
  onNode('Hono, not strict', 'hono.js', { STRICT: 'false' }),
  onNode('Restify 11', 'restify.js', { VERSION: 'restify-11' }),
  onNode('Restify 12', 'restify.js', { VERSION: 'restify' }),
  onNode('hapi', 'hapi.js', { ROUTER: '{}' }),
  onNode('hapi, lenient', 'hapi.js', { ROUTER: '{"isCaseSensitive":false,"stripTrailingSlash":true}' }),
  onFlask('Flask on gunicorn', 'plain'),
  onFlask('Flask, slashes not strict', 'loose'),
  onFlask('Flask, X-Script-Name snippet', 'snippet'),
  onFlask('Flask, ProxyFix with prefix', 'proxyfix'),
  onGunicorn('Django on gunicorn', 'django_app', pythonModule('python3-django', 'django')),
  aiohttp,
  starlette,
  onPhp('decoded'),
  onPhp('parsed'),
  onPhp('server'),
  sinatra,
  rails,
  plack,
  cherrypy,
  ...phpBackends,
  nginxServer,
  caddy,
  go,
  onNode('the received bytes', 'recorder.js'),
]
