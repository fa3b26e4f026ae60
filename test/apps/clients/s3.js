import {
  CopyObjectCommand,
  CreateBucketCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  paginateListObjectsV2,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { NodeHttp2Handler } from '@smithy/node-http-handler'
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'

// Amazon's own client of S3. Arguments: origin, protocol, a name for the bucket, and the keys as JSON.

const [origin = '', protocol, Bucket = '', keysJson = '[]'] = process.argv.slice(2)
const keys = JSON.parse(keysJson)
const client = new S3Client({
  endpoint: origin,
  region: 'us-east-1',
  forcePathStyle: true,
  credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
  // The server is older than these checksums.
  requestChecksumCalculation: 'WHEN_REQUIRED',
  responseChecksumValidation: 'WHEN_REQUIRED',
  maxAttempts: 10,
  ...(protocol === 'http2' && { requestHandler: new NodeHttp2Handler() }),
})
const send = (command) => client.send(command)
const get = async (Key, rest) => {
  const { Body, ContentRange } = await send(new GetObjectCommand({ Bucket, Key, ...rest }))
  return { range: ContentRange, bytes: Buffer.from(await Body.transformToByteArray()) }
}
const textOf = async (Key) => (await get(Key)).bytes.toString()
async function list() {
  const found = []
  for await (const page of paginateListObjectsV2({ client }, { Bucket }))
    found.push(...(page.Contents ?? []).map(({ Key }) => Key))
  return found.sort()
}

await send(new CreateBucketCommand({ Bucket }))
for (const Key of keys)
  await send(new PutObjectCommand({ Bucket, Key, Body: `text of ${Key}`, Metadata: { was: 'sent' } }))
const wrong = []
for (const Key of keys) {
  const { Metadata, ContentLength } = await send(new HeadObjectCommand({ Bucket, Key }))
  const text = await textOf(Key)
  if (text !== `text of ${Key}` || Metadata.was !== 'sent' || ContentLength !== Buffer.byteLength(text))
    wrong.push(Key)
}
const listed = await list()

// On the server, from a source that a header names. The server decodes no more than encodeURI encodes.
const copies = []
for (const Key of keys) {
  const CopySource = encodeURI(`${Bucket}/${Key}`)
  await send(new CopyObjectCommand({ Bucket, Key: `copies/${Key}`, CopySource }))
  if ((await textOf(`copies/${Key}`)) === `text of ${Key}`) copies.push(Key)
}

const large = randomBytes(12 * 1024 * 1024 + 1)
const params = { Bucket, Key: 'large//ü.bin', Body: Readable.from([large]) }
// Node's own client resets streams that would keep more than 10 MB pending on one connection.
const upload = new Upload({ client, params, partSize: 5 * 1024 * 1024, queueSize: 1 })
await upload.done()
const back = await get(params.Key)
const part = await get(params.Key, { Range: 'bytes=6000000-6000999' })

// Signed URLs need no client. One with another signature is refused.
const signed = []
for (const key of keys) {
  const Key = `signed/${key}`
  const to = await getSignedUrl(client, new PutObjectCommand({ Bucket, Key }))
  const put = await fetch(to, { method: 'PUT', body: key })
  const from = await getSignedUrl(client, new GetObjectCommand({ Bucket, Key }))
  const got = await fetch(from)
  const text = await got.text()
  const forged = await fetch(from.replace(/Signature=./, (start) => start.replace(/.$/, '-')))
  await forged.text()
  signed.push(`${put.status} ${got.status} ${text === key} ${forged.status}`)
}

// Faster than the limit of this folder: the client waits and tries again.
const paced = Array.from({ length: 30 }, (_, index) => `paced/${index}`)
const attempts = await Promise.all(
  paced.map(async (Key) => (await send(new PutObjectCommand({ Bucket, Key, Body: Key }))).$metadata.attempts),
)
const all = await list()

const Objects = all.map((Key) => ({ Key }))
await send(new DeleteObjectsCommand({ Bucket, Delete: { Objects } }))
const missing = await send(new GetObjectCommand({ Bucket, Key: 'x/b' })).catch((error) => error.name)
const left = await list()
client.destroy()

console.log(
  JSON.stringify({
    wrong,
    listed,
    copies,
    large: back.bytes.equals(large),
    range: `${part.range} ${part.bytes.equals(large.subarray(6_000_000, 6_001_000))}`,
    signed: [...new Set(signed)],
    paced: all.filter((key) => key.startsWith('paced/')).length,
    isRetried: Math.max(...attempts) > 1,
    missing,
    left,
  }),
)
