import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { run } from './run.ts'
import { startServer } from './server.ts'
import { setStage, trustingEnvironment, type Way } from './stage.ts'

// A registry of images (Distribution, as Debian's docker-registry), and skopeo, which pushes, pulls and compares digests.

const LAYERS = 6
const LAYER_BYTES = 4 * 1024 * 1024

const { direct, ways } = setStage({ start, http2: false })
const image = writeImage()

test.for([direct, ...ways])('an image of 24 MB there and back, $name', async (way) => {
  const host = new URL(way.origin).host
  const name = `docker://${host}/library/image-${way === direct ? 'direct' : ways.indexOf(way)}:1.0`
  await skopeo(['copy', `oci:${image.folder}`, name, `--dest-tls-verify=${verifies(way)}`])
  const back = join(makeTemporaryDirectory(), 'back')
  await skopeo(['copy', name, `dir:${back}`, `--src-tls-verify=${verifies(way)}`])
  const files = readdirSync(back).filter((file) => !['manifest.json', 'version'].includes(file))
  expect(files.toSorted()).toEqual(image.blobs)
  const seen = JSON.parse(await skopeo(['inspect', name, `--tls-verify=${verifies(way)}`])) as object
  expect(seen).toMatchObject({ Digest: `sha256:${image.manifest}`, RepoTags: ['1.0'] })
  // The same layers under another name are mounted, not sent.
  await skopeo(['copy', `oci:${image.folder}`, `${name}-again`, `--dest-tls-verify=${verifies(way)}`])
  await skopeo(['delete', name, `--tls-verify=${verifies(way)}`])
  await expect(skopeo(['inspect', name, `--tls-verify=${verifies(way)}`])).rejects.toThrow(/manifest unknown/)
})

test.for(ways)('a list of tags, $name', async (way) => {
  const host = new URL(way.origin).host
  const name = `docker://${host}/library/tags-${ways.indexOf(way)}`
  const tags = ['a', 'b', 'c']
  for (const tag of tags)
    await skopeo(['copy', `oci:${image.folder}`, `${name}:${tag}`, `--dest-tls-verify=${verifies(way)}`])
  const list = await skopeo(['list-tags', name, `--tls-verify=${verifies(way)}`])
  expect((JSON.parse(list) as { Tags: string[] }).Tags.toSorted()).toEqual(tags)
})

const verifies = ({ protocol }: Way): boolean => protocol !== 'http'

function skopeo(args: readonly string[]): Promise<string> {
  return run(['/usr/bin/skopeo', '--insecure-policy', ...args], { env: trustingEnvironment })
}

function hash(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** An image in the layout of OCI. */
function writeImage(): { folder: string; blobs: string[]; manifest: string } {
  const folder = join(makeTemporaryDirectory(), 'image')
  const blobs = join(folder, 'blobs/sha256')
  mkdirSync(blobs, { recursive: true })
  const write = (content: Buffer | object) => {
    const bytes = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content))
    const name = hash(bytes)
    writeFileSync(join(blobs, name), bytes)
    return { digest: `sha256:${name}`, size: bytes.length }
  }
  const contents = Array.from({ length: LAYERS }, () => randomBytes(LAYER_BYTES))
  const layers = contents.map((content) => ({
    mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip',
    ...write(gzipSync(content, { level: 1 })),
  }))
  const config = write({
    architecture: 'amd64',
    os: 'linux',
    rootfs: { type: 'layers', diff_ids: contents.map((content) => `sha256:${hash(content)}`) },
  })
  const manifest = write({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...config },
    layers,
  })
  const index = { ...manifest, mediaType: 'application/vnd.oci.image.manifest.v1+json' }
  writeFileSync(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [index] }))
  writeFileSync(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  const name = ({ digest }: { digest: string }): string => digest.slice('sha256:'.length)
  return { folder, blobs: [config, ...layers].map(name).toSorted(), manifest: name(manifest) }
}

async function start(): Promise<{ port: number; probe: string }> {
  const root = makeTemporaryDirectory()
  const config = join(root, 'config.yml')
  const port = await startServer(
    '/bin/sh',
    (free) => {
      const settings = {
        version: 0.1,
        log: { level: 'info' },
        storage: { filesystem: { rootdirectory: root }, delete: { enabled: true } },
        http: { addr: `127.0.0.1:${free}` },
      }
      // JSON is YAML.
      writeFileSync(config, JSON.stringify(settings))
      return ['-c', `exec docker-registry serve ${config}`]
    },
    { ready: /listening on/ },
  )
  return { port, probe: '/v2/' }
}
