import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'

// A container in two networks sees the names of both, and which `redis` it reaches is a matter of chance. So services that join another
// project's network have unique names, and use no name that the project may also have.

type Networks = readonly string[] | Readonly<Record<string, { readonly aliases?: readonly string[] } | null>>
type Service = {
  readonly networks?: Networks
  readonly environment?: Readonly<Record<string, string>>
}
type ComposeFile = {
  readonly services: Readonly<Record<string, Service>>
  readonly networks?: Readonly<Record<string, { readonly external?: boolean } | null>>
}

const root = join(import.meta.dirname, '../..')
const own = /^sluice-[a-z]+$/

/** Compose files, and the excerpts of them in the docs. */
const files = [
  ...globSync(['docker-compose.yml', 'deploy/compose/*.yml'], { cwd: root }).map(
    (name) => [name, readFileSync(join(root, name), 'utf8')] as const,
  ),
  ...globSync(['README.md', 'docs/**/*.md', 'deploy/**/*.md'], { cwd: root }).flatMap((name) =>
    [...readFileSync(join(root, name), 'utf8').matchAll(/```ya?ml\n(services:\n[^`]*)```/g)].map(
      ([, text = '']) => [name, text] as const,
    ),
  ),
].map(([name, text]) => [name, parse(text) as ComposeFile] as const)

function networksOf({ networks = ['default'] }: Service): ReadonlyMap<string, readonly string[]> {
  if (isList(networks)) return new Map(networks.map((name) => [name, []]))
  return new Map(Object.entries(networks).map(([name, network]) => [name, network?.aliases ?? []]))
}

function isList(networks: Networks): networks is readonly string[] {
  return Array.isArray(networks)
}

/** The hosts of URLs and of lists in a service's environment. */
function hostsIn({ environment = {} }: Service): string[] {
  return Object.values(environment).flatMap((value) =>
    [...value.matchAll(/:\/\/([a-z][a-z0-9-]*)/g)].map(([, host = '']) => host),
  )
}

test('the compose files are found', () => {
  expect(files.map(([name]) => name)).toEqual(
    expect.arrayContaining(['docker-compose.yml', 'deploy/compose/with-haproxy.yml', 'docs/containers.md']),
  )
})

describe.each(files)('%s', (_name, { services, networks = {} }) => {
  const external = Object.keys(networks).filter((name) => networks[name]?.external)
  const joining = Object.values(services).filter((service) =>
    external.some((name) => networksOf(service).has(name)),
  )

  test('services that join the network of a project, and their neighbours, have names that no project has', () => {
    const shared = new Set(joining.flatMap((service) => [...networksOf(service).keys()]))
    const seen = Object.entries(services).filter(([, service]) =>
      [...networksOf(service).keys()].some((network) => shared.has(network)),
    )
    const names = seen.flatMap(([name, service]) => [name, ...[...networksOf(service).values()].flat()])
    expect(names.filter((name) => !own.test(name))).toEqual([])
  })

  test('a service in more than one network refers to Redis by such a name', () => {
    const inSeveral = Object.values(services).filter((service) => networksOf(service).size > 1)
    const redis = inSeveral.flatMap(({ environment = {} }) =>
      hostsIn({ environment: { url: environment['REDIS_URL'] ?? '' } }),
    )
    expect(redis.filter((host) => !own.test(host))).toEqual([])
  })

  test('a name with the prefix belongs to a service or an alias', () => {
    const names = Object.entries(services).flatMap(([name, service]) => [
      name,
      ...[...networksOf(service).values()].flat(),
    ])
    const asked = Object.values(services).flatMap(hostsIn)
    expect(asked.filter((host) => own.test(host) && !names.includes(host))).toEqual([])
  })
})

test.each(files.filter(([name]) => name.endsWith('.yml')))(
  'the gateway of %s gets its secrets',
  (_name, file) => {
    const gateways = Object.values(file.services).filter(({ environment }) => environment?.['UPSTREAM_URL'])
    for (const { environment = {} } of gateways)
      expect(environment).toMatchObject({
        DEVICE_SECRET: '${DEVICE_SECRET:-}',
        WEBHOOK_SECRET: '${WEBHOOK_SECRET:-}',
      })
  },
)

test.each(['haproxy.cfg', 'deploy/compose/Caddyfile'])('%s knows the gateways by their name', (name) => {
  const hosts = [...readFileSync(join(root, name), 'utf8').matchAll(/\b([a-z-]*gateway):8080/g)].map(
    ([, host]) => host,
  )
  expect(hosts.length).toBeGreaterThan(0)
  expect(new Set(hosts)).toEqual(new Set(['sluice-gateway']))
})
