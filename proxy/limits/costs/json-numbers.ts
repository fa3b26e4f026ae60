// Not imported: V8 reads an imported constant anew at each use, which makes a loop over bytes up to 40 % slower.
const space = 0x20
const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const openingBracket = 0x5b
const backslash = 0x5c
const closingBracket = 0x5d
const openingBrace = 0x7b
const closingBrace = 0x7d

/** A node of the trie of the paths: a name, and the names below it. */
type PathNode = {
  readonly name: Buffer
  readonly members: Map<string, PathNode>
  /** Places of the numbers at this name and below it. */
  readonly places: number[]
  /** The place of the number at this name, if a path ends here. */
  place: number | undefined
}

/** An object or an array on the way to a number. */
type Level = { readonly node: PathNode; readonly isArray: boolean; index: number }

/** Maximum bytes of a number to read. */
const MAX_NUMBER_BYTES = 1024
/** Maximum bytes per UTF-16 code unit of a name: an escape such as `\u0061`. */
const NAME_BYTES_PER_UNIT = 6

/** The syntax element of the next byte. */
const between = 0
const inString = 1
const inName = 2
const inNumber = 3

/**
 * Finds numbers in a JSON text of any length as it arrives in pieces. Memory depends on the paths alone. For a valid text, the numbers are
 * the same as those of `JSON.parse`; if a name repeats, the last one counts. Values that are not on the way to a number are not validated,
 * so that logarithms that Python writes as `NaN` do not hide the cost of a response.
 */
export class JsonNumbers {
  readonly #root: PathNode = createNode('')
  readonly #values: Float64Array
  readonly #placesByPath = new Map<string, number>()
  readonly #name: Buffer
  #state: typeof between | typeof inString | typeof inName | typeof inNumber = between
  #depth = 0
  /** The open objects and arrays that are on the way to a number, the outermost first. */
  readonly #levels: Level[] = []
  /** The node of the next value, if it is on the way to a number. */
  #next: PathNode | undefined = this.#root
  #expectsName = false
  #isEscaped = false
  #nameBytes = 0
  #nameHasEscapes = false
  #number = ''
  /** The index of the path whose number is being read. */
  #place = 0
  #hasEnded = false
  #isBroken = false

  /** @param paths names of members (indexes of arrays), joined by dots */
  constructor(paths: readonly string[]) {
    this.#values = new Float64Array(paths.length).fill(NaN)
    for (const [place, path] of paths.entries()) {
      this.#placesByPath.set(path, place)
      this.#addPath(path.split('.'), place)
    }
    const longest = Math.max(0, ...paths.flatMap((path) => path.split('.')).map(({ length }) => length))
    this.#name = Buffer.allocUnsafe(longest * NAME_BYTES_PER_UNIT + 1)
  }

  /** Whether the text is complete: one object or array, with blanks around it. */
  get isWhole(): boolean {
    return this.#hasEnded && !this.#isBroken
  }

  /** The number at the path, rounded up; undefined if there is none so far, or it is below 0. */
  valueAt(path: string): number | undefined {
    const value = this.#values[this.#placesByPath.get(path) ?? -1] ?? NaN
    return value >= 0 ? Math.min(Math.ceil(value), Number.MAX_SAFE_INTEGER) + 0 : undefined
  }

  /** Begins another text. */
  reset(): void {
    this.#values.fill(NaN)
    this.#state = between
    this.#depth = 0
    this.#levels.length = 0
    this.#next = this.#root
    this.#expectsName = this.#isEscaped = this.#hasEnded = this.#isBroken = false
  }

  push(bytes: Buffer, start = 0, end = bytes.length): void {
    let at = start
    while (at < end) {
      if (this.#state === inString) at = this.#skipString(bytes, at, end)
      else if (this.#state === inName) at = this.#takeName(bytes, at, end)
      else if (this.#state === inNumber) at = this.#takeNumber(bytes, at, end)
      else this.#take(bytes[at++] ?? space)
    }
  }

  #addPath(names: readonly string[], place: number): void {
    let node = this.#root
    for (const name of names) {
      const below = node.members.get(name) ?? createNode(name)
      node.members.set(name, below)
      below.places.push(place)
      node = below
    }
    node.place = place
  }

  /** Whether the current value is directly in an object or an array on the way to a number. */
  get #isOnWay(): boolean {
    return this.#depth === this.#levels.length
  }

  #take(code: number): void {
    // Ignore blanks, and a byte order mark before the text.
    if (code <= space || (code > 0x7f && this.#depth === 0)) return
    if (this.#hasEnded) this.#isBroken = true
    switch (code) {
      case quote:
        return this.#openString()
      case openingBrace:
      case openingBracket:
        return this.#open(code === openingBracket)
      case closingBrace:
      case closingBracket:
        return this.#close()
      case comma:
        return this.#separate()
      case colon:
        this.#expectsName = false
        return
      default:
        this.#openNumber(code)
    }
  }

  #openString(): void {
    this.#isEscaped = false
    if (this.#expectsName && this.#isOnWay) {
      this.#state = inName
      this.#nameBytes = 0
      this.#nameHasEscapes = false
    } else {
      this.#state = inString
      this.#next = undefined
      if (this.#depth === 0) this.#isBroken = true
    }
  }

  #open(isArray: boolean): void {
    const node = this.#next
    this.#next = undefined
    this.#depth++
    if (!node || node.members.size === 0) return
    this.#levels.push({ node, isArray, index: 0 })
    this.#expectsName = !isArray
    if (isArray) this.#next = node.members.get('0')
  }

  #close(): void {
    if (this.#depth === 0) {
      this.#isBroken = true
      return
    }
    if (this.#isOnWay) this.#levels.pop()
    this.#depth--
    this.#next = undefined
    this.#expectsName = false
    if (this.#depth === 0) this.#hasEnded = true
  }

  #separate(): void {
    this.#next = undefined
    if (!this.#isOnWay) return
    const level = this.#levels.at(-1)
    if (!level) this.#isBroken = true
    else if (level.isArray) this.#next = level.node.members.get(String(++level.index))
    else this.#expectsName = true
  }

  #openNumber(code: number): void {
    const place = this.#next?.place
    this.#next = undefined
    if (this.#depth === 0) this.#isBroken = true
    if (place === undefined) return
    this.#state = inNumber
    this.#number = String.fromCharCode(code)
    this.#place = place
  }

  #takeNumber(bytes: Buffer, start: number, end: number): number {
    let at = start
    while (at < end && !endsNumber(bytes[at] ?? space)) at++
    if (this.#number.length <= MAX_NUMBER_BYTES)
      this.#number += bytes.toString('latin1', start, Math.min(at, start + MAX_NUMBER_BYTES))
    if (at === end) return at
    this.#state = between
    if (this.#number.length <= MAX_NUMBER_BYTES && isNumber.test(this.#number))
      this.#values[this.#place] = Number(this.#number)
    return at
  }

  /** Skips the rest of a string, as far as it has arrived. */
  #skipString(bytes: Buffer, start: number, end: number): number {
    let at = start
    if (this.#isEscaped) {
      this.#isEscaped = false
      at++
    }
    for (; at < end; at++) {
      const code = bytes[at]
      if (code === backslash) {
        if (++at >= end) this.#isEscaped = true
      } else if (code === quote) {
        this.#state = between
        return at + 1
      }
    }
    return end
  }

  /** Keeps a name, unless it is longer than every wanted name. */
  #takeName(bytes: Buffer, start: number, end: number): number {
    const room = this.#name
    for (let at = start; at < end; at++) {
      const code = bytes[at] ?? quote
      if (code === quote && !this.#isEscaped) {
        this.#state = between
        this.#endName()
        return at + 1
      }
      this.#isEscaped = code === backslash && !this.#isEscaped
      if (code === backslash) this.#nameHasEscapes = true
      if (this.#nameBytes < room.length) room[this.#nameBytes++] = code
    }
    return end
  }

  #endName(): void {
    const { node } = this.#levels.at(-1) ?? { node: this.#root }
    this.#next = undefined
    if (this.#nameBytes === this.#name.length) return
    const next = this.#findMember(node)
    this.#next = next
    // If several members have the same name, the last one counts.
    if (next) for (const place of next.places) this.#values[place] = NaN
  }

  /** The node of the member with the current name, if it is on the way to a number. */
  #findMember({ members }: PathNode): PathNode | undefined {
    if (this.#nameHasEscapes) {
      const name = this.#readEscaped()
      return name === undefined ? undefined : members.get(name)
    }
    // Comparing lengths first rules out most names.
    for (const member of members.values())
      if (member.name.length === this.#nameBytes && this.#isNamed(member.name)) return member
    return undefined
  }

  #isNamed(name: Buffer): boolean {
    for (let at = 0; at < name.length; at++) if (name[at] !== this.#name[at]) return false
    return true
  }

  #readEscaped(): string | undefined {
    try {
      return JSON.parse(`"${this.#name.toString('utf8', 0, this.#nameBytes)}"`) as string
    } catch {
      return undefined
    }
  }
}

/** RFC 8259 section 6. */
const isNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

function endsNumber(code: number): boolean {
  return code <= space || code === comma || code === closingBracket || code === closingBrace || code === quote
}

function createNode(name: string): PathNode {
  return { name: Buffer.from(name), members: new Map(), places: [], place: undefined }
}
