import { DEAD, NameTrie } from './name-trie.ts'

/** Maximum items of an array that stand for members. Few objects with an account have more members. */
export const MAX_FIELDS = 32
/** Stand for the place of an item whose index no rule names: of any item, and of one that may be a member. */
const ITEM = -1
const FIELD = -2

/** The level in a path that does not lead through the current value. */
const OFF = -1

const isIndex = /^\d+$/

/** The position in a JSON text relative to the paths of several rules. There is a state per prefix of the paths, created on demand. */
export class JsonState {
  /** Whether no path leads through here. */
  readonly isOff: boolean
  /** The rules whose path ends here. */
  readonly found: readonly number[]
  /** The other rules whose path ends here if an item of an array around the value is taken for a member; see `ofItem`. */
  readonly foundByPlace: readonly number[]
  /** If the value is an array: the rules whose member any of its items may be. */
  readonly members: readonly number[]
  /** The number of the set of rules whose paths lead through here. */
  readonly set: number
  readonly #levels: readonly number[]
  readonly #states: JsonStates
  readonly #hasIndex: boolean
  /** The paths that begin after a name for which an item may stand, if the value is an array. */
  readonly #afterMember: readonly number[]
  #trie: NameTrie | undefined
  /** The state after each name in the trie; under `undefined`, the state after any other name. */
  readonly #after = new Map<string | undefined, JsonState>()
  #candidates: readonly string[] = []
  /** The state of each item whose index a rule names; under `ITEM` and `FIELD`, the states of other items. */
  readonly #items = new Map<number, JsonState>()

  constructor(levels: readonly number[], states: JsonStates) {
    const { paths } = states
    const rulesOf = (entries: readonly number[]): number[] => [
      ...new Set(entries.map((entry) => states.ruleOf(entry))),
    ]
    const here = levels.flatMap((level, path) => (level === OFF ? [] : [path]))
    const ended = here.filter((path) => levels[path] === paths[path]?.length)
    const nextNames = here.filter((path) => !isIndex.test(paths[path]?.[levels[path] ?? 0] ?? ''))
    this.#levels = levels
    this.#states = states
    this.isOff = here.length === 0
    this.found = ended.filter((path) => path < states.rules)
    this.foundByPlace = rulesOf(ended).filter((rule) => !this.found.includes(rule))
    this.members = rulesOf(nextNames.filter((path) => (levels[path] ?? 0) + 1 === paths[path]?.length))
    this.#afterMember = nextNames.flatMap((path) => states.restAfter(path, (levels[path] ?? 0) + 1) ?? [])
    this.set = states.setOf(rulesOf(here))
    this.#hasIndex = levels.some((level, rule) => level !== OFF && isIndex.test(paths[rule]?.[level] ?? ''))
  }

  /**
   * Returns the state of a member's value. The name `user.email` counts as the member of `user`, because some backends look for the whole
   * path first, such as lodash's `get`. `__proto__` is passed through, because merging objects copies its members.
   *
   * @param text one character per byte
   */
  afterName(text: string, start: number, end: number): JsonState {
    if (this.isOff) return this
    const trie = (this.#trie ??= this.#makeTrie())
    const place = trie.follow(text, start, end, 'json')
    const found = place === DEAD ? undefined : trie.ends[place]
    let name = found === undefined ? undefined : this.#candidates[found]
    // A name of this length is `__proto__`, and not `proto`.
    if (name === proto && end - start >= '__proto__'.length) name = '__proto__'
    let state = this.#after.get(name)
    if (!state) {
      state = this.#states.get(this.#levelsAfter(name))
      this.#after.set(name, state)
    }
    return state
  }

  /**
   * Returns the state of an item in an array. An array stands for each of its items, unless a rule names the item's index. The first items
   * also stand for any member, because serde (axum, actix, Rocket) reads the members of an object from an array, in its own order.
   */
  ofItem(place: number): JsonState {
    const isField = place < MAX_FIELDS && this.#afterMember.length > 0
    if (!this.#hasIndex && !isField) return this
    const named = this.#states.places.has(place) ? place : undefined
    const key = named ?? (isField ? FIELD : ITEM)
    let state = this.#items.get(key)
    if (!state) {
      const levels = this.#levels.map((level, path) => this.#levelOfItem(level, path, named))
      if (isField) for (const path of this.#afterMember) if (levels[path] === OFF) levels[path] = 0
      state = this.#states.get(levels)
      this.#items.set(key, state)
    }
    return state
  }

  #levelOfItem(level: number, path: number, place: number | undefined): number {
    const name = this.#states.paths[path]?.[level] ?? ''
    if (level === OFF || !isIndex.test(name)) return level
    return name === String(place) ? level + 1 : OFF
  }

  #makeTrie(): NameTrie {
    const { paths } = this.#states
    const names = this.#levels.flatMap((level, path) => {
      const left = level === OFF ? [] : (paths[path] ?? []).slice(level)
      return left.map((_, last) => left.slice(0, last + 1).join(''))
    })
    this.#candidates = [...new Set([...names, proto])]
    return new NameTrie(this.#candidates)
  }

  #levelsAfter(name: string | undefined): readonly number[] {
    const sent = name === '__proto__' ? proto : name
    return this.#levels.map((level, index) => {
      const path = this.#states.paths[index] ?? []
      if (level === OFF || level === path.length) return level
      for (let next = level + 1; next <= path.length; next++)
        if (path.slice(level, next).join('') === sent) return next
      return name === '__proto__' ? level : OFF
    })
  }
}

/** `__proto__` in the form in which names are compared. */
const proto = 'proto'

/** The states of the paths of several rules in JSON. */
export class JsonStates {
  /** The number of rules. */
  readonly rules: number
  /**
   * The names that lead to the member of each rule, in the form of `foldedLetters`, and then the rest of each path after its first name,
   * after its second, and so on, for members that are read from arrays.
   */
  readonly paths: readonly (readonly string[])[]
  /** By path: the rule, and the number of the rule's names that the path leaves out. */
  readonly #origins: readonly Origin[]
  /** The indexes that rules name. */
  readonly places: ReadonlySet<number>
  /** The state at the start of a text. */
  readonly first: JsonState
  /** The rules of each set, by the set's number. */
  readonly sets: (readonly number[])[] = []
  readonly #states = new Map<string, JsonState>()
  readonly #sets = new Map<string, number>()

  constructor(paths: readonly (readonly string[])[]) {
    this.rules = paths.length
    const rests = paths.flatMap((path, rule) => path.slice(1).map((_, i) => ({ rule, left: i + 1 })))
    this.#origins = [...paths.map((_, rule) => ({ rule, left: 0 })), ...rests]
    this.paths = this.#origins.map(({ rule, left }) => paths[rule]?.slice(left) ?? [])
    this.places = new Set(
      paths
        .flat()
        .filter((name) => isIndex.test(name))
        .map(Number),
    )
    this.first = this.get(this.#origins.map(({ left }) => (left === 0 ? 0 : OFF)))
  }

  ruleOf(path: number): number {
    return this.#origins[path]?.rule ?? -1
  }

  /** Returns the path that begins after this number of names of a path; undefined if that is all of them. */
  restAfter(path: number, names: number): number | undefined {
    const { rule, left } = this.#origins[path] ?? { rule: -1, left: 0 }
    const rest = this.#origins.findIndex((other) => other.rule === rule && other.left === left + names)
    return rest === -1 ? undefined : rest
  }

  /** @param levels for each path, the number of its names that lead here, or `OFF` */
  get(levels: readonly number[]): JsonState {
    const key = levels.join()
    const known = this.#states.get(key)
    if (known) return known
    const state = new JsonState(levels, this)
    this.#states.set(key, state)
    return state
  }

  /** Returns the number of a set of rules. */
  setOf(rules: readonly number[]): number {
    const key = rules.join()
    const number = this.#sets.get(key) ?? this.sets.push(rules) - 1
    this.#sets.set(key, number)
    return number
  }
}

type Origin = { readonly rule: number; readonly left: number }
