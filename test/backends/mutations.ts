import { disguise, pick, type Random } from './disguises.ts'
import { authority, blank, detour, dots, extension, parameter, query, slash, word } from './grammar.ts'
import { mutateHeaders } from './header-mutations.ts'
import type { Route } from './routes.ts'
import type { Spelling } from './spelling.ts'

const maxTargetLength = 300
const methods = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'OPTIONS',
  'get',
  'Post',
  'PROPFIND',
  'QUERY',
] as const

/** Changes a spelling in one to four ways that some backend may ignore. */
export function mutate(random: Random, spelling: Spelling): Spelling {
  let mutated = spelling
  for (let left = pick(random, [1, 1, 1, 2, 2, 3, 4]); left > 0; left--) {
    const changed = mutateOnce(random, mutated)
    if (changed.target.length <= maxTargetLength) mutated = changed
  }
  return mutated
}

/** A limited path in its plain spelling. */
export function plainSpelling(random: Random, routes: readonly Route[]): Spelling {
  const { method, path } = routes[Math.floor(random() * routes.length)] ?? { method: 'GET', path: '/' }
  return { method, target: path, headers: [] }
}

function mutateOnce(random: Random, spelling: Spelling): Spelling {
  const share = random()
  if (share < 0.14) return mutateHeaders(random, spelling)
  if (share < 0.17) return { ...spelling, method: pick(random, methods) }
  return { ...spelling, target: pick(random, pathMutations)(random, spelling.target) }
}

type PathMutation = (random: Random, path: string) => string

const pathMutations: readonly [PathMutation, ...PathMutation[]] = [
  respell,
  respell,
  respellSlash,
  (random, path) => insertBesideSlash(random, path, slash(random)),
  (random, path) => insertAfterSlash(random, path, detour(random)),
  (random, path) => insertAfterSlash(random, path, detour(random)),
  (random, path) => insertBesideSlash(random, path, parameter(random)),
  (random, path) => insertAnywhere(random, path, parameter(random)),
  (random, path) => insertBesideSlash(random, path, blank(random)),
  (random, path) => insertAnywhere(random, path, blank(random)),
  (random, path) => insertAnywhere(random, path, query(random)),
  (random, path) =>
    path + pick(random, [slash, dots, blank, parameter, parameter, query, extension, word])(random),
  (random, path) => slash(random) + word(random) + path,
  (random, path) => authority(random) + path,
  (_, path) => path.slice(1),
  disturb,
]

/** Writes one to three characters in another way. */
function respell(random: Random, path: string): string {
  let respelled = path
  for (let left = pick(random, [1, 1, 2, 3]); left > 0; left--) {
    const at = Math.floor(random() * respelled.length)
    respelled = respelled.slice(0, at) + disguise(random, respelled[at] ?? '/') + respelled.slice(at + 1)
  }
  return respelled
}

function respellSlash(random: Random, path: string): string {
  const at = pickSlash(random, path)
  return at === -1 ? path : path.slice(0, at) + slash(random) + path.slice(at + 1)
}

function insertAfterSlash(random: Random, path: string, text: string): string {
  const at = pickSlash(random, path) + 1
  return path.slice(0, at) + text + path.slice(at)
}

/** Inserts text before a slash, after one, or at the end. */
function insertBesideSlash(random: Random, path: string, text: string): string {
  const place = random()
  if (place < 0.3) return path + text
  const at = Math.max(0, pickSlash(random, path)) + (place < 0.65 ? 0 : 1)
  return path.slice(0, at) + text + path.slice(at)
}

function insertAnywhere(random: Random, path: string, text: string): string {
  const at = Math.floor(random() * (path.length + 1))
  return path.slice(0, at) + text + path.slice(at)
}

/** Removes a character, doubles a part, or swaps two neighbours. */
function disturb(random: Random, path: string): string {
  const at = Math.floor(random() * path.length)
  const end = at + 1 + Math.floor(random() * 6)
  return pick(random, [
    path.slice(0, at) + path.slice(at + 1),
    path.slice(0, end) + path.slice(at),
    path.slice(0, at) + (path[at + 1] ?? '') + (path[at] ?? '') + path.slice(at + 2),
  ])
}

/** The index of a random slash, or -1. */
function pickSlash(random: Random, path: string): number {
  const places = Array.from(path.matchAll(/\//g), ({ index }) => index)
  return places[Math.floor(random() * places.length)] ?? -1
}
