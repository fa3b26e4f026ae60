// Reads a list of requests, and writes for each what a framework of Node takes for the value of `email`, or of `user.email`, as
// NAMES has it; null where it does not answer. READER says which framework.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, request as send } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

function flat(value) {
  if (value === null || value === undefined) return []
  if (Array.isArray(value)) return value.flatMap(flat)
  return typeof value === 'object' ? [] : [String(value)]
}

const path = process.env.NAMES.split('.')
/** What forms call a member of an object, to whom they have no objects. */
const fields = path.length === 1 ? path : [`${path[0]}[${path[1]}]`, path.join('.')]

function at(body) {
  const values = flat(path.reduce((value, name) => value?.[name], body))
  return path.length === 1 ? values : [...values, ...fields.flatMap((field) => flat(body?.[field]))]
}

/** Returns the values; for a batch, those of its elements. */
function valuesOf(body) {
  return Array.isArray(body) ? body.flatMap(at) : at(body)
}

async function express(name, parsers) {
  const { default: make } = await import(name)
  const app = make()
  for (const parser of parsers(make)) app.use(parser)
  app.use((request, response) => response.json([...valuesOf(request.body), ...at(request.query)]))
  app.use((error, request, response, next) => (error ? response.json([]) : next()))
  return createServer(app)
}

const usual = (make) => [make.json(), make.urlencoded({ extended: true })]

const servers = {
  'express-5': () => express('express', usual),
  'express-4': () => express('express-4', usual),
  'express-5-querystring': () =>
    express('express', (make) => [make.json(), make.urlencoded({ extended: false })]),
  'express-any-json': () => express('express', (make) => [make.json({ type: () => true, strict: false })]),
  'express-merged': () =>
    express('express-4', (make) => [
      ...usual(make),
      (request, _, next) => {
        request.body = Object.assign({}, request.query, request.body)
        next()
      },
    ]),
  multer: async () => {
    const { default: multer } = await import('multer')
    return express('express', () => [multer().any()])
  },
  fastify: async () => {
    const { default: make } = await import('fastify')
    const app = make({ exposeHeadRoutes: false })
    app.post('/', (request, reply) => reply.send(valuesOf(request.body)))
    await app.ready()
    return app.server.listening ? app.server : Object.assign(app.server, { isFastify: app })
  },
  koa: async () => {
    const { default: Koa } = await import('koa')
    const { koaBody } = await import('koa-body')
    const app = new Koa()
    app.silent = true
    app.use(koaBody({ multipart: true, onError: () => undefined }))
    app.use((context) => (context.body = valuesOf(context.request.body)))
    return createServer(app.callback())
  },
  // As handlers of the fetch API read bodies: Hono, Next.js, Remix, workers.
  'fetch-form': () => fetching(async (request) => fieldsOf(await request.formData())),
  'fetch-json': () => fetching(async (request) => valuesOf(await request.json())),
  busboy: async () => parsingWith((await import('busboy')).default, 'close'),
  formidable: async () => {
    const { default: formidable } = await import('formidable')
    return createServer((request, response) =>
      formidable({ allowEmptyFiles: true, minFileSize: 0 }).parse(request, (error, read) =>
        response.end(JSON.stringify(error ? [] : valuesOf(read))),
      ),
    )
  },
  // Of Nuxt and Nitro.
  h3: async () => {
    const { createApp, eventHandler, readMultipartFormData, toNodeListener } = await import('h3')
    const read = async (event) => {
      const parts = (await readMultipartFormData(event)) ?? []
      return parts.filter(({ name }) => fields.includes(name)).map(({ data }) => data.toString())
    }
    return createServer(toNodeListener(createApp().use(eventHandler(read))))
  },
  // Of @fastify/multipart.
  'fastify-busboy': async () => parsingWith((await import('@fastify/busboy')).default, 'finish'),
}

function fieldsOf(form) {
  return fields.flatMap((field) => form.getAll(field)).filter((one) => typeof one === 'string')
}

function fetching(read) {
  return createServer(async (request, response) => {
    let values = []
    try {
      const headers = new Headers()
      for (let i = 0; i < request.rawHeaders.length; i += 2)
        headers.append(request.rawHeaders[i], request.rawHeaders[i + 1])
      values = await read(
        new Request('http://x/', { method: 'POST', headers, body: Readable.toWeb(request), duplex: 'half' }),
      )
    } catch {
      values = []
    }
    response.end(JSON.stringify(values))
  })
}

/** PHP's own server, on a port that was free a moment ago. */
async function startPhp() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  const php = spawn('php', ['-S', `127.0.0.1:${port}`, join(import.meta.dirname, 'php.php')], {
    stdio: 'ignore',
  })
  process.on('exit', () => php.kill())
  for (let tries = 0; tries < 100; tries++) {
    const socket = connect(port, '127.0.0.1')
    const isOpen = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'error').then(() => false),
    ]).catch(() => false)
    socket.destroy()
    if (isOpen) break
    await sleep(50)
  }
  return { address: () => ({ port }) }
}

async function start() {
  if (process.env.READER === 'php') return startPhp()
  const server = await servers[process.env.READER]()
  if (server.isFastify) await server.isFastify.listen({ host: '127.0.0.1', port: 0 })
  else {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  }
  return server
}

function ask(port, { types, query, body }) {
  return new Promise((resolve, reject) => {
    const bytes = Buffer.from(body, 'base64')
    const headers = [
      'Host',
      'x',
      'Content-Length',
      String(bytes.length),
      ...types.flatMap((type) => ['Content-Type', type]),
    ]
    const request = send(
      { port, host: '127.0.0.1', method: 'POST', path: `/${query === '' ? '' : `?${query}`}`, headers },
      (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (piece) => (text += piece))
        response.on('end', () => {
          try {
            const values = JSON.parse(text)
            resolve(Array.isArray(values) ? values : [])
          } catch {
            resolve([])
          }
        })
      },
    )
    // Of a framework that fails and does not answer.
    request.setTimeout(5000, () => request.destroy())
    request.on('error', reject)
    request.end(bytes)
  })
}

// Formidable throws what nobody can catch.
process.on('uncaughtException', () => undefined)

let input = ''
for await (const piece of process.stdin) input += piece
const server = await start()
const { port } = server.address()
const requests = JSON.parse(input)
const found = []
const lane = async () => {
  for (let i = found.length; i < requests.length; i = found.length) {
    found.push(null)
    const values = await ask(port, requests[i]).catch(() => null)
    found[i] =
      process.env.READER === 'php' ? values : values?.map((one) => Buffer.from(one).toString('base64'))
  }
}
// Others go on while one waits for an answer.
await Promise.all(Array.from({ length: 16 }, lane))
process.stdout.write(JSON.stringify(found), () => process.exit(0))

/**
 * @param busboy a function, or a class that can be called as one
 * @param lastEvent what it emits when it has read a form
 */
function parsingWith(busboy, lastEvent) {
  return createServer((request, response) => {
    const values = []
    const end = () => response.writableEnded || response.end(JSON.stringify(values))
    try {
      const parser = busboy({ headers: request.headers })
      parser.on('field', (name, value) => fields.includes(name) && values.push(...flat(value)))
      parser.on('file', (_, file) => file.on('error', end).resume())
      parser.on('error', end).on(lastEvent, end)
      request.pipe(parser)
    } catch {
      end()
    }
  })
}
