import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { presetConfig } from './preset.ts'
import { countRefusals, letIn, untilLetIn } from './refusals.ts'
import { run } from './run.ts'
import { startServerProcess } from './server.ts'
import { setStage, trustingEnvironment, type Way } from './stage.ts'

// An image registry (Distribution, Debian's docker-registry), and skopeo, which pushes, pulls and compares digests. skopeo does not speak
// HTTP/2, but another registry does, which mirrors the first.

const LAYERS = 6
const LAYER_BYTES = 4 * 1024 * 1024

const config = presetConfig('docker-registry', [
  // skopeo pulls six layers at once, and waits for as long as a refusal tells it to.
  {
    name: 'paced',
    match: 'GET /v2/paced/:image/blobs/:digest',
    except: 'HEAD /*',
    requests: 3,
    window: '5s',
  },
  {
    name: 'pulls',
    match: 'GET /v2/tight/:image/blobs/:digest',
    except: 'HEAD /*',
    requests: 3,
    window: '1h',
  },
  // skopeo cannot repeat a part of an upload.
  { name: 'pushes', match: 'PATCH /v2/tight/:image/blobs/uploads/:id', requests: 3, window: '1h' },
])
const { direct, ways } = setStage({ start, http2: 'one of several', config })
const waysOfSkopeo = ways.filter(({ protocol }) => protocol !== 'http2')
const waysOfMirror = ways.filter(({ protocol }) => protocol === 'http2')
const image = writeImage()

test.for([direct, ...waysOfSkopeo])('an image of 24 MB there and back, $name', async (way) => {
  const host = new URL(way.origin).host
  const name = `docker://${host}/library/image-${way === direct ? 'direct' : ways.indexOf(way)}:1.0`
  await push(name, way)
  expect(await pull(name, way)).toEqual(image.blobs)
  const seen = JSON.parse(await skopeo(['inspect', name, `--tls-verify=${verifies(way)}`])) as object
  expect(seen).toMatchObject({ Digest: `sha256:${image.manifest}`, RepoTags: ['1.0'] })
  // Under another name, the same layers are mounted instead of sent.
  await skopeo(['copy', `oci:${image.folder}`, `${name}-again`, `--dest-tls-verify=${verifies(way)}`])
  await skopeo(['delete', name, `--tls-verify=${verifies(way)}`])
  await expect(skopeo(['inspect', name, `--tls-verify=${verifies(way)}`])).rejects.toThrow(/manifest unknown/)
})

test.for(waysOfSkopeo)('docker lists tags, $name', async (way) => {
  const host = new URL(way.origin).host
  const name = `docker://${host}/library/tags-${ways.indexOf(way)}`
  const tags = ['a', 'b', 'c']
  for (const tag of tags)
    await skopeo(['copy', `oci:${image.folder}`, `${name}:${tag}`, `--dest-tls-verify=${verifies(way)}`])
  const list = await skopeo(['list-tags', name, `--tls-verify=${verifies(way)}`])
  expect((JSON.parse(list) as { Tags: string[] }).Tags.toSorted()).toEqual(tags)
})

test.for(waysOfSkopeo)('a pull waits for as long as refusals say, $name', async (way) => {
  const name = imageName(way, 'paced')
  await push(name, way)
  const refused = await countRefusals(way, 'paced')
  expect(await pull(name, way)).toEqual(image.blobs)
  expect(await countRefusals(way, 'paced')).toBeGreaterThan(refused)
})

test.for(waysOfSkopeo)('a refused push leaves no image, and a later one is whole, $name', async (way) => {
  // Layers that the registry has in any image are not sent again.
  const own = writeImage()
  const name = imageName(way, 'tight')
  await letIn(way, 'pushes')
  await expect(push(name, way, own)).rejects.toThrow('429')
  await expect(skopeo(['inspect', name, `--tls-verify=${verifies(way)}`])).rejects.toThrow(/unknown/)
  await untilLetIn(way, 'pushes', () => push(name, way, own))
  expect(await pull(imageName(direct, 'tight', way), direct)).toEqual(own.blobs)
})

test.for(waysOfMirror)('a mirror pulls an image, $name', async (way) => {
  await push(imageName(direct, 'library', way), direct)
  const mirror = await startMirror(way)
  expect(await pull(imageName(mirror, 'library', way), mirror)).toEqual(image.blobs)
})

test.for(waysOfMirror)('a mirror whose requests are refused keeps no broken layer, $name', async (way) => {
  await push(imageName(direct, 'tight', way), direct)
  const mirror = await startMirror(way)
  await letIn(way, 'pulls')
  const name = imageName(mirror, 'tight', way)
  await expect(pull(name, mirror)).rejects.toThrow()
  expect(await countRefusals(way, 'pulls')).toBeGreaterThan(0)
  expect(await untilLetIn(way, 'pulls', () => pull(name, mirror))).toEqual(image.blobs)
})

/** The name of the image of a way, at the registry that `at` leads to. */
function imageName(at: Way, project: string, way: Way = at): string {
  return `docker://${new URL(at.origin).host}/${project}/image-${ways.findIndex(({ name }) => name === way.name)}:1.0`
}

function push(name: string, way: Way, { folder } = image): Promise<string> {
  return skopeo(['copy', `oci:${folder}`, name, `--dest-tls-verify=${verifies(way)}`])
}

/** @returns the names of the received layers; skopeo verifies their content against the names */
async function pull(name: string, way: Way): Promise<string[]> {
  const back = join(makeTemporaryDirectory(), 'back')
  await skopeo(['copy', name, `dir:${back}`, `--src-tls-verify=${verifies(way)}`])
  return readdirSync(back)
    .filter((file) => !['manifest.json', 'version'].includes(file))
    .toSorted()
}

async function startMirror(way: Way): Promise<Way> {
  const { port, process: mirror } = await startRegistry({ proxy: { remoteurl: way.origin } })
  // The mirror keeps its connections to the gateway for a minute and a half.
  onTestFinished(async () => {
    await mirror.stop('SIGKILL')
  })
  return { name: 'mirror', protocol: 'http', origin: `http://127.0.0.1:${port}` }
}

const verifies = ({ protocol }: Way): boolean => protocol !== 'http'

function skopeo(args: readonly string[]): Promise<string> {
  return run(['/usr/bin/skopeo', '--insecure-policy', ...args], { env: trustingEnvironment })
}

function hash(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Writes an image in the OCI layout. */
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
  const { port } = await startRegistry({})
  return { port, probe: '/v2/' }
}

function startRegistry(settings: object): ReturnType<typeof startServerProcess> {
  const root = makeTemporaryDirectory()
  const file = join(root, 'config.yml')
  return startServerProcess(
    '/bin/sh',
    (free) => {
      const all = {
        version: 0.1,
        log: { level: 'info' },
        storage: { filesystem: { rootdirectory: root }, delete: { enabled: true } },
        http: { addr: `127.0.0.1:${free}` },
        ...settings,
      }
      // JSON is also YAML.
      writeFileSync(file, JSON.stringify(all))
      return ['-c', `exec docker-registry serve ${file}`]
    },
    { ready: /listening on/, env: trustingEnvironment },
  )
}
