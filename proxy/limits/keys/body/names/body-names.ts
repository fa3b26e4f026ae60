import type { Policy } from '../../../../policy.ts'
import type { SinglePart } from '../../../../policy/partition.ts'
import { foldedLetters } from './folded-letters.ts'
import { FormNames } from './form-names.ts'
import { JsonStates } from './json-states.ts'
import { NameTrie } from './name-trie.ts'
import { referencesTo } from './references.ts'

export type BodyPart = SinglePart & { readonly kind: 'body' }

/** The form field with which Rack, Laravel, Symfony and Express override the method of a request. */
export const methodField: BodyPart = { kind: 'body', name: '_method', path: ['_method'] }

/**
 * The part of a multipart body with a GraphQL request, or a batch of them, in JSON. GraphQL Yoga, Hot Chocolate, Strawberry and
 * async-graphql read it (GraphQL multipart request specification).
 */
export const operationsField: BodyPart = { kind: 'body', name: 'operations', path: ['operations'] }

/** The part of a multipart body with the JSON of a call of oRPC, whose input is the member `json`. */
export const dataField: BodyPart = { kind: 'body', name: 'data', path: ['data'] }

/** The members of a GraphQL request. */
const graphqlMembers: ReadonlySet<string> = new Set(['query', 'variables', 'operationname', 'extensions'])

/**
 * The names that rules look for in a body, so that a single pass finds all of them. Each reader gets them in the form that it needs, with
 * the same numbers.
 */
export class BodyNames {
  /** The number of names. */
  readonly count: number
  readonly #paths: readonly (readonly string[])[]
  readonly #numbers: ReadonlyMap<string, number>
  #json: JsonStates | undefined
  #form: FormNames | undefined
  #last: LastNames | undefined

  constructor(parts: readonly BodyPart[]) {
    const byName = new Map(parts.map(({ name, path }) => [name, path]))
    this.count = byName.size
    this.#numbers = new Map(Array.from(byName.keys(), (name, number) => [name, number]))
    this.#paths = Array.from(byName.values(), (path) => path.map(foldedLetters))
  }

  numberOf({ name }: BodyPart): number | undefined {
    return this.#numbers.get(name)
  }

  get json(): JsonStates {
    return (this.#json ??= new JsonStates(this.#paths))
  }

  get form(): FormNames {
    return (this.#form ??= new FormNames(this.#paths))
  }

  get last(): LastNames {
    return (this.#last ??= lastNamesOf(this.#paths))
  }
}

/** The last name of each path, for readers of texts whose nesting is unknown. */
export type LastNames = {
  readonly trie: NameTrie
  /** The paths that end with each name, by the name's index. */
  readonly paths: readonly (readonly number[])[]
  readonly lengths: readonly number[]
  readonly maxLength: number
}

function lastNamesOf(paths: readonly (readonly string[])[]): LastNames {
  const last = paths.map((path) => path.at(-1) ?? '')
  const names = [...new Set(last)]
  return {
    trie: new NameTrie(names),
    paths: names.map((name) => last.flatMap((one, path) => (one === name ? [path] : []))),
    lengths: names.map((name) => name.length),
    maxLength: Math.max(0, ...names.map((name) => name.length)),
  }
}

type Partition = Policy['partition']
type Known = { names?: BodyNames; readonly after: WeakMap<object, Known> }

/**
 * Maximum number of sets of keys whose names are kept. Few sets of rules apply to the same request, but if rules have conditions, clients
 * determine which ones apply: of 20 rules, one of a million sets, each of some kilobytes.
 */
const MAX_SETS = 256
/** A tree of the names, by the keys of the policies in sequence. */
let known: Known = { after: new WeakMap() }
let sets = 0

/**
 * Returns the names in the keys of policies, the field that devices depend on, those that can hold a GraphQL request or a call of oRPC,
 * and those with references to other places. They are cached per set of policies.
 */
export function bodyNamesOf(policies: readonly Pick<Policy, 'partition' | 'device'>[]): BodyNames {
  let at = known
  for (const { partition, device } of policies) {
    at = nextOf(at, partition)
    if (device) at = nextOf(at, device)
  }
  if (at.names) return at.names
  if (++sets > MAX_SETS) {
    known = { after: new WeakMap() }
    sets = 0
  }
  const parts = policies.flatMap(({ partition }) => bodyPartsOf(partition))
  if (policies.some(({ device }) => device)) parts.push(methodField)
  if (parts.some(({ path: [first = ''] }) => graphqlMembers.has(foldedLetters(first))))
    parts.push(operationsField)
  if (parts.some(({ path: [first = ''] }) => foldedLetters(first) === 'json')) parts.push(dataField)
  parts.push(...parts.flatMap((part) => referencesTo(part)?.fields ?? []))
  return (at.names = new BodyNames(parts))
}

function nextOf(at: Known, key: object): Known {
  let next = at.after.get(key)
  if (!next) at.after.set(key, (next = { after: new WeakMap() }))
  return next
}

function bodyPartsOf(partition: Partition): BodyPart[] {
  return partition
    .flatMap((part) => (part.kind === 'first' ? part.of : [part]))
    .filter((part) => part.kind === 'body')
}
