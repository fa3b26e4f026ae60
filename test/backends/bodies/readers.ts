import { join } from 'node:path'

/** A framework that reads bodies, called as its users call it. It reads and writes JSON, see the scripts. */
export type BodyReader = {
  readonly name: string
  readonly program: string
  readonly args: readonly string[]
  readonly reader: string
  /** Debian packages, and a command that succeeds if they are installed. Undefined for npm packages. */
  readonly needs?: { readonly names: readonly string[]; readonly check: readonly [string, ...string[]] }
}

const folder = join(import.meta.dirname, 'readers')
const python = '/usr/bin/python3'

function onNode(reader: string): BodyReader {
  return { name: `${reader} (Node)`, program: process.execPath, args: [join(folder, 'node.js')], reader }
}

function onPython(reader: string, names: readonly string[], modules: string): BodyReader {
  const needs = { names, check: [python, '-c', `import ${modules}`] } as const
  return { name: `${reader} (Python)`, program: python, args: [join(folder, 'python.py')], reader, needs }
}

export const bodyReaders: readonly BodyReader[] = [
  ...['express-5', 'express-5-querystring', 'express-4', 'express-any-json', 'express-merged'].map(onNode),
  ...[
    'multer',
    'busboy',
    'fastify-busboy',
    'fastify',
    'koa',
    'fetch-form',
    'fetch-json',
    'formidable',
    'h3',
  ].map(onNode),
  onPython('flask', ['python3-flask'], 'flask'),
  onPython('django', ['python3-django'], 'django'),
  // FastAPI uses Starlette for forms and JSON.
  onPython('starlette', ['python3-starlette', 'python3-multipart'], 'starlette, multipart.multipart'),
  onPython('bottle', ['python3-bottle'], 'bottle'),
  // Pyramid uses it.
  onPython('webob', ['python3-webob'], 'webob'),
  onPython('tornado', ['python3-tornado'], 'tornado'),
  onPython('falcon', ['python3-falcon'], 'falcon'),
  onPython('cherrypy', ['python3-cherrypy3'], 'cherrypy'),
  {
    name: 'Rack (Ruby)',
    program: 'ruby',
    args: [join(folder, 'rack.rb')],
    reader: 'rack',
    needs: { names: ['ruby-rack'], check: ['ruby', '-e', 'require "rack"'] },
  },
  {
    name: 'net/http (Go)',
    program: 'go',
    args: ['run', join(folder, 'main.go')],
    reader: 'go',
    needs: { names: ['golang-go'], check: ['go', 'version'] },
  },
  {
    ...onNode('php'),
    name: 'PHP',
    needs: { names: ['php-cli'], check: ['php', '--version'] },
  },
]
