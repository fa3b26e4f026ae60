import { createHash, createHmac } from 'node:crypto'
import { createRequire } from 'node:module'
import S3rver from 's3rver'

// An S3 server that keeps its objects in the folder `DIRECTORY`.

const require = createRequire(import.meta.url)
const FilesystemStore = require('s3rver/lib/stores/filesystem')
const routes = require('s3rver/lib/routes')
const SECRET = 'S3RVER'

// It was made for keys without empty parts: `x//y` has no route, and its file would be that of `x/y`.
for (const layer of routes.stack) {
  const parts = '(?:[^\\/#\\?]+?)(?:\\/(?:[^\\/#\\?]+?))*'
  layer.regexp = new RegExp(layer.regexp.source.replace(parts, '.+?'), layer.regexp.flags)
}
FilesystemStore.encodeKeyPath = (key) => key.replaceAll('%', '%25').replaceAll(/(?<=^|\/)\//g, '%/')
FilesystemStore.decodeKeyPath = (path) =>
  path.replaceAll(/%(25|\/)/g, (_, code) => (code === '25' ? '%' : '/'))

const { PORT, DIRECTORY } = process.env
const server = new S3rver({ address: '127.0.0.1', port: Number(PORT), directory: DIRECTORY, silent: true })
// It leaves out version 4 of signatures.
server.middleware.unshift(async (context, next) => {
  const why = whatIsWrong(context.req)
  if (why === undefined) return next()
  context.status = 403
  context.body = `<Error><Code>SignatureDoesNotMatch</Code><Message>${why}</Message></Error>`
})
await server.run()
console.log('listening')

/** Checks the signature (https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html), over the path as it came. */
function whatIsWrong({ method, url, headers }) {
  const [path, search = ''] = url.split(/\?(.*)/s)
  const query = search
    .split('&')
    .filter(Boolean)
    .map((pair) => (pair.includes('=') ? pair : `${pair}=`))
  const signed = Object.fromEntries(
    query.map((pair) => pair.split('=')).map(([name, value]) => [name, decodeURIComponent(value)]),
  )
  const authorization = headers.authorization ?? ''
  const field = (name) =>
    signed[`X-Amz-${name}`] ?? new RegExp(`${name}=([^, ]+)`).exec(authorization)?.[1] ?? ''
  if (field('Signature') === '') return path === '/' && search === '' ? undefined : 'there is none'
  const [, ...scope] = field('Credential').split('/')
  const names = field('SignedHeaders').split(';')
  const canonical = [
    method,
    path,
    query
      .filter((pair) => !pair.startsWith('X-Amz-Signature='))
      .sort()
      .join('&'),
    ...names.map((name) => `${name}:${valueOf(headers, name)}`),
    '',
    names.join(';'),
    headers['x-amz-content-sha256'] ?? 'UNSIGNED-PAYLOAD',
  ].join('\n')
  const time = headers['x-amz-date'] ?? signed['X-Amz-Date']
  const hash = createHash('sha256').update(canonical).digest('hex')
  const text = ['AWS4-HMAC-SHA256', time, scope.join('/'), hash].join('\n')
  const hmac = (key, data) => createHmac('sha256', key).update(data).digest()
  const signature = hmac(scope.reduce(hmac, `AWS4${SECRET}`), text).toString('hex')
  return signature === field('Signature') ? undefined : `of ${canonical}`
}

/** Over HTTP/2 Amazon's client signs `:authority`, which arrives as Host. */
function valueOf(headers, name) {
  const value = headers[name === ':authority' ? 'host' : name] ?? ''
  return value.replaceAll(/ +/g, ' ').trim()
}
