import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import express from 'express'

// Express with what a site does: forms, JSON, cookies, redirects, files, ranges, streams, errors.

const app = express()
app.set('trust proxy', 'loopback')

app.get('/', (request, response) => {
  response.json({ protocol: request.protocol, host: request.get('host'), address: request.ip })
})
app.post('/json', express.json({ limit: '5mb' }), (request, response) => response.json(request.body))
app.post('/form', express.urlencoded({ extended: true }), (request, response) => response.send(request.body))
app.all('/hash', async (request, response) => {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of request) {
    hash.update(chunk)
    bytes += chunk.length
  }
  response.send({ method: request.method, bytes, hash: hash.digest('hex') })
})
app.get('/cookies', (request, response) => {
  response.cookie('session', 'abc', { httpOnly: true, path: '/', sameSite: 'lax' })
  response.cookie('theme', 'dark; light', { expires: new Date(0) })
  response.vary('Cookie').send({ got: request.get('cookie') ?? null })
})
app.get('/redirect', (request, response) => {
  response.redirect(303, `${request.protocol}://${request.get('host')}/`)
})
app.use('/files', express.static(process.env.FILES))
app.get('/gzip', (request, response) => {
  response
    .set('content-encoding', 'gzip')
    .type('text')
    .send(gzipSync('zipped '.repeat(1000)))
})
app.get('/stream', async (request, response) => {
  // In chunks of many sizes, some of which come together.
  response.type('text')
  for (let index = 0; index < 400; index++) {
    response.write(String(index % 10).repeat(1 + ((index * 37) % 3000)))
    if (index % 25 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  response.end()
})
app.get('/params/:name', (request, response) => response.json({ ...request.params, query: request.query }))
app.get('/odd-fields', ({ rawHeaders }, response) => {
  response.json(rawHeaders.filter((text) => /odd|[\0\r\n]/.test(text)))
})
app.get('/empty', (request, response) => response.status(204).end())
app.get('/broken', () => {
  throw Object.assign(new Error('Teapot'), { status: 418, expose: true })
})

app.listen(Number(process.env.PORT), '127.0.0.1', () => console.log('listening'))
