import { DEAD, NameTrie } from './name-trie.ts'

/** The level in a path that does not lead through the current value. */
const OFF = -1

const isIndex = /^\d+$/

/** The position in a JSON text relative to the paths of several rules. There is a state per prefix of the paths, created on demand. */
export class JsonState {
  /** Whether no path leads through here. */
  readonly isOff: boolean
  /** The rules whose path ends here. */
  readonly found: readonly number[]
  /** The number of the set of rules whose paths lead through here. */
  readonly set: number
  readonly #levels: readonly number[]
  readonly #states: JsonStates
  readonly #hasIndex: boolean
  #trie: NameTrie | undefined
  /** The state after each name in the trie; under `undefined`, the state after any other name. */
  readonly #after = new Map<string | undefined, JsonState>()
  #candidates: readonly string[] = []
  /** The state of each item whose index a rule names; under `undefined`, the state of any other item. */
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

  /** Returns the state of an item in an array. An array stands for each of its items, unless a rule names the item's index. */
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

/** `__proto__` in the form in which names are compared. */
const proto = 'proto'

/** The states of the paths of several rules in JSON. */
export class JsonStates {
  /** The names that lead to the member of each rule, in the form of `foldedLetters`. */
  readonly paths: readonly (readonly string[])[]
  /** The indexes that rules name. */
  readonly places: ReadonlySet<number>
  /** The state at the start of a text. */
  readonly first: JsonState
  /** The rules of each set, by the set's number. */
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

  /** @param levels for each rule, the number of its names that lead here, or `OFF` */
  get(levels: readonly number[]): JsonState {
    const key = levels.join()
    const known = this.#states.get(key)
    if (known) return known
    const state = new JsonState(levels, this)
    this.#states.set(key, state)
    return state
  }

  /** Returns the number of the set of rules that are not `OFF`. */
  setOf(levels: readonly number[]): number {
    const rules = levels.flatMap((level, rule) => (level === OFF ? [] : [rule]))
    const key = rules.join()
    const number = this.#sets.get(key) ?? this.sets.push(rules) - 1
    this.#sets.set(key, number)
    return number
  }
}
