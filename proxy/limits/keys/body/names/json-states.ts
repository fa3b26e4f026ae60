import { DEAD, NameTrie } from './name-trie.ts'

/** A name that a value is not on the way to. */
const OFF = -1

const isIndex = /^\d+$/

/**
 * The position in a JSON text relative to the paths of several rules. There are as many states as the paths have prefixes, created as
 * needed.
 */
export class JsonState {
  /** Whether no path leads through here. */
  readonly isOff: boolean
  /** The rules whose value is here. */
  readonly found: readonly number[]
  /** The rules whose path leads through here, as the number of a set. */
  readonly set: number
  readonly #levels: readonly number[]
  readonly #states: JsonStates
  readonly #hasIndex: boolean
  #trie: NameTrie | undefined
  /** The state after each name in the trie; under `undefined`, the state after any other name. */
  readonly #after = new Map<string | undefined, JsonState>()
  #candidates: readonly string[] = []
  /** By index for those that a rule names, and one for any other. */
  readonly #items = new Map<number | undefined, JsonState>()

  constructor(levels: readonly number[], states: JsonStates) {
    const { paths } = states
    this.#levels = levels
    this.#states = states
    this.isOff = levels.every((level) => level === OFF)
    this.found = levels.flatMap((level, rule) => (level === paths[rule]?.length ? [rule] : []))
    this.set = states.setOf(levels)
    this.#hasIndex = levels.some((level, rule) => level !== OFF && isIndex.test(paths[rule]?.[level] ?? ''))
  }

  /**
   * The state of the value of a member. `user.email` is the member of `user` to whoever looks for a whole path first, such as lodash's
   * `get`; `__proto__` is passed through, as objects that are merged get its members.
   *
   * @param text a character for each byte
   */
  afterName(text: string, start: number, end: number): JsonState {
    if (this.isOff) return this
    const trie = (this.#trie ??= this.#makeTrie())
    const place = trie.follow(text, start, end, 'json')
    const found = place === DEAD ? undefined : trie.ends[place]
    let name = found === undefined ? undefined : this.#candidates[found]
    // Of this length, it is the name of a member.
    if (name === proto && end - start >= '__proto__'.length) name = '__proto__'
    let state = this.#after.get(name)
    if (!state) {
      state = this.#states.get(this.#levelsAfter(name))
      this.#after.set(name, state)
    }
    return state
  }

  /** The state of an item of an array: an array stands for each of them, but for a rule with its place. */
  ofItem(place: number): JsonState {
    if (!this.#hasIndex) return this
    const named = this.#states.places.has(place) ? place : undefined
    let state = this.#items.get(named)
    if (!state) {
      state = this.#states.get(this.#levels.map((level, rule) => this.#levelOfItem(level, rule, named)))
      this.#items.set(named, state)
    }
    return state
  }

  #levelOfItem(level: number, rule: number, place: number | undefined): number {
    const name = this.#states.paths[rule]?.[level] ?? ''
    if (level === OFF || !isIndex.test(name)) return level
    return name === String(place) ? level + 1 : OFF
  }

  #makeTrie(): NameTrie {
    const { paths } = this.#states
    const names = this.#levels.flatMap((level, rule) => {
      const left = level === OFF ? [] : (paths[rule] ?? []).slice(level)
      return left.map((_, last) => left.slice(0, last + 1).join(''))
    })
    this.#candidates = [...new Set([...names, proto])]
    return new NameTrie(this.#candidates)
  }

  #levelsAfter(name: string | undefined): readonly number[] {
    const sent = name === '__proto__' ? proto : name
    return this.#levels.map((level, rule) => {
      const path = this.#states.paths[rule] ?? []
      if (level === OFF || level === path.length) return level
      for (let next = level + 1; next <= path.length; next++)
        if (path.slice(level, next).join('') === sent) return next
      return name === '__proto__' ? level : OFF
    })
  }
}

/** `__proto__` as names are compared. */
const proto = 'proto'

/** The states that the paths of some rules have in JSON. */
export class JsonStates {
  /** By rule, the names that lead to its member, as `foldedLetters` writes them. */
  readonly paths: readonly (readonly string[])[]
  /** Indexes that rules name. */
  readonly places: ReadonlySet<number>
  /** The state before a text. */
  readonly first: JsonState
  /** By number, the rules of the set. */
  readonly sets: (readonly number[])[] = []
  readonly #states = new Map<string, JsonState>()
  readonly #sets = new Map<string, number>()

  constructor(paths: readonly (readonly string[])[]) {
    this.paths = paths
    this.places = new Set(
      paths
        .flat()
        .filter((name) => isIndex.test(name))
        .map(Number),
    )
    this.first = this.get(paths.map(() => 0))
  }

  /** @param levels of each rule how many of its names lead to the place, or `OFF` */
  get(levels: readonly number[]): JsonState {
    const key = levels.join()
    const known = this.#states.get(key)
    if (known) return known
    const state = new JsonState(levels, this)
    this.#states.set(key, state)
    return state
  }

  /** The number of the set of rules that are not off. */
  setOf(levels: readonly number[]): number {
    const rules = levels.flatMap((level, rule) => (level === OFF ? [] : [rule]))
    const key = rules.join()
    const number = this.#sets.get(key) ?? this.sets.push(rules) - 1
    this.#sets.set(key, number)
    return number
  }
}
