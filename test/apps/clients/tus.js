import { createHash } from 'node:crypto'
import { Upload } from 'tus-js-client'

// Uploads whole, in chunks, side by side; broken off in the middle and resumed; removed. Prints the results as JSON.

const MEGABYTE = 1024 * 1024
const [origin] = process.argv.slice(2)
const endpoint = `${origin}/files`
const bytes = Buffer.alloc(12 * MEGABYTE)
for (let index = 0; index < bytes.length; index += 4) bytes.writeUInt32LE(index, index)
const hash = (value) => createHash('sha256').update(value).digest('hex')

/** Uploads, unless `stopAt` bytes have been sent before that. Resolves with the upload. */
function send(options, stopAt = Infinity) {
  return new Promise((resolve, reject) => {
    const upload = new Upload(bytes, {
      endpoint,
      metadata: { filename: 'ü.bin', filetype: 'application/octet-stream' },
      retryDelays: [100, 300, 1000, 3000],
      onError: reject,
      onSuccess: () => resolve(upload),
      onProgress: (sent) => {
        if (sent >= stopAt && sent < bytes.length) void upload.abort().then(() => resolve(upload))
      },
      ...options,
    })
    upload.start()
  })
}

async function stored(upload) {
  const response = await fetch(upload.url)
  return { own: upload.url.startsWith(endpoint), whole: hash(await response.bytes()) === hash(bytes) }
}

const whole = await send({})
const chunked = await send({ chunkSize: 3 * MEGABYTE })
const sideBySide = await Promise.all([send({}), send({}), send({ chunkSize: 2 * MEGABYTE })])

const broken = await send({ chunkSize: MEGABYTE }, 5 * MEGABYTE)
const offsets = []
const resumed = await send({
  uploadUrl: broken.url,
  chunkSize: MEGABYTE,
  onChunkComplete: (_, accepted) => offsets.push(accepted),
})

// In the middle of a request, which the server keeps what it has of.
const cut = await send({}, 2 * MEGABYTE)
const resumedAfterCut = await send({ uploadUrl: cut.url })

const removed = await send({ chunkSize: MEGABYTE }, 3 * MEGABYTE)
await removed.abort(true)
const gone = await fetch(removed.url, { method: 'HEAD', headers: { 'tus-resumable': '1.0.0' } })

console.log(
  JSON.stringify({
    whole: await stored(whole),
    chunked: await stored(chunked),
    sideBySide: await Promise.all(sideBySide.map(stored)),
    resumed: { ...(await stored(resumed)), fromTheMiddle: offsets[0] > MEGABYTE },
    resumedAfterCut: await stored(resumedAfterCut),
    gone: gone.status,
  }),
)
process.exit(0)
