import { seededRandom } from '../../support/random/seeded-random.ts'
import type {
  Answer,
  Cancel,
  Conversation,
  Delivery,
  Exchange,
  ExchangeKind,
  GatewayBounds,
  Protocol,
  Reading,
  TunnelPlan,
  Upload,
} from './plan.ts'

/** The parameters with which to draw a batch. */
export type BatchOptions = {
  readonly bounds: GatewayBounds
  readonly exchanges: number
}

const maxAtOnce = 40

/** Draws the conversations of a batch, always the same for the same seed, batch and options. */
export function drawBatch(seed: number, batch: number, options: BatchOptions): Conversation[] {
  const draw = new Draw(seededRandom(Math.imul(seed, 2_654_435_761) + batch), batch)
  const conversations: Conversation[] = []
  for (let exchanges = 0; exchanges < options.exchanges;) {
    const conversation = draw.conversation(options, conversations.length)
    conversations.push(conversation)
    exchanges += conversation.exchanges.length
  }
  return conversations
}

/** Draws `count` parallel plain requests, one for each connection in the pool, so that each connection has to serve one. */
export function drawProbes(batch: number, count: number, { https }: GatewayBounds): Conversation[] {
  const draw = new Draw(seededRandom(batch), batch, 3_500)
  return Array.from({ length: count }, (_, i) => draw.probe(https, count, i))
}

class Draw {
  readonly #random: () => number
  readonly #batch: number
  #ids: number

  constructor(random: () => number, batch: number, firstId = 0) {
    this.#random = random
    this.#batch = batch
    this.#ids = firstId
  }

  #chance(share: number): boolean {
    return this.#random() < share
  }

  #between(least: number, most: number): number {
    return least + Math.floor(this.#random() * (most - least + 1))
  }

  #pick<T>(...choices: readonly [T, ...T[]]): T {
    return choices[Math.floor(this.#random() * choices.length)] ?? choices[0]
  }

  conversation(options: BatchOptions, index: number): Conversation {
    const protocol: Protocol = options.bounds.https ? this.#pick('https', 'h2') : 'http'
    const isFlood = this.#chance(0.08)
    // About as many requests as the gateway queues, so that no request is refused.
    const isLocalFlood = isFlood && this.#chance(0.3)
    const isEager = isFlood || this.#chance(0.3)
    const count = isLocalFlood
      ? this.#between(16, 18)
      : isFlood
        ? this.#between(12, maxAtOnce)
        : this.#between(1, 9)
    const exchanges: Exchange[] = []
    while (exchanges.length < count) {
      const exchange = isLocalFlood
        ? this.#exchangeOf('options', 'OPTIONS')
        : this.#exchange(options, protocol, isFlood)
      const isLast = exchanges.length === count - 1
      exchanges.push(isLast ? this.#lastOf(exchange, protocol) : exchange)
    }
    return {
      protocol,
      address: this.#address(index),
      exchanges,
      window: isEager ? maxAtOnce : this.#pick(1, 1, 2, 5),
      delivery: isFlood ? whole : this.#delivery(2_000),
      reading: this.#reading(),
      halfCloses: protocol !== 'h2' && this.#chance(0.04),
      streamWindow: this.#pick(1_000, 16_384, 65_535, 1_048_576),
    }
  }

  #reading(): Reading {
    const isSlow = this.#chance(0.4)
    const stalls = this.#chance(0.15)
    return {
      pauseShare: isSlow ? this.#pick(0.05, 0.3) : 0,
      pauseMs: this.#between(1, 12),
      stallAfterBytes: this.#between(0, 50_000),
      stallMs: stalls ? this.#between(10, 150) : 0,
    }
  }

  probe(https: boolean, count: number, index: number): Conversation {
    const answer = { ...this.#answer(100, false), ...plain, framing: 'length', barrier: count } as const
    const exchange = { ...this.#exchangeOf('forward', 'GET'), answer }
    const protocol = https ? 'https' : 'http'
    const exchanges = [exchange]
    const { reading, window, halfCloses, streamWindow } = atOnce
    const address = this.#address(500 + index)
    return { protocol, address, exchanges, delivery: whole, reading, window, halfCloses, streamWindow }
  }

  #address(index: number): string {
    const host = this.#batch * 1_024 + index + 1
    return `127.${1 + ((host >> 16) % 250)}.${(host >> 8) & 255}.${host & 255}`
  }

  #exchangeOf(kind: ExchangeKind, method: string): Exchange {
    return {
      id: this.#batch * 4_096 + ++this.#ids,
      kind,
      method,
      version: '1.1',
      asksToClose: false,
      upload: undefined,
      answer: this.#answer(this.#bodyBytes(), false),
      tunnel: undefined,
      cancel: undefined,
    }
  }

  #exchange({ bounds }: BatchOptions, protocol: Protocol, isFlood: boolean): Exchange {
    if (isFlood && this.#chance(0.7))
      return this.#chance(0.5) ? this.#exchangeOf('options', 'OPTIONS') : this.#exchangeOf('limited', 'GET')
    const dice = this.#random()
    if (dice < 0.03) return this.#exchangeOf('options', 'OPTIONS')
    if (dice < 0.04) return this.#exchangeOf('trace', 'TRACE')
    if (dice < 0.06) return this.#exchangeOf('bad-target', 'GET')
    const sends = this.#chance(0.3)
    const method = sends
      ? this.#pick('POST', 'PUT', 'DELETE', 'GET')
      : this.#pick('GET', 'GET', 'GET', 'HEAD', 'DELETE', 'POST')
    const exchange = this.#exchangeOf(dice < 0.14 ? 'limited' : 'forward', method)
    const upload = sends ? this.#upload(bounds, protocol) : undefined
    const answer = this.#answer(isFlood ? this.#between(0, 3_000) : this.#bodyBytes(), upload !== undefined)
    // Rare, as each hanging response takes the gateway's whole timeout.
    if (bounds.isImpatient && this.#chance(0.05))
      return {
        ...exchange,
        upload,
        answer: { ...answer, broken: { share: this.#pick(0, 0.5) * 0.1, how: 'hang' } },
      }
    return { ...exchange, upload, answer }
  }

  /** Ends some conversations with an exchange that can only be the last. */
  #lastOf(exchange: Exchange, protocol: Protocol): Exchange {
    const dice = this.#random()
    if (dice < 0.16) return { ...exchange, cancel: this.#cancel(protocol) }
    if (protocol === 'h2') return exchange
    if (dice < 0.2) return { ...this.#exchangeOf('noise', 'GET'), id: exchange.id }
    if (dice < 0.28) return { ...exchange, asksToClose: true }
    if (dice < 0.34 && exchange.upload?.framing !== 'chunked' && !exchange.upload?.expectsContinue)
      return { ...exchange, version: '1.0' }
    if (dice < 0.4) return this.#tunnel(exchange.id)
    if (dice < 0.44) return this.#refusedUpgrade(exchange.id)
    return exchange
  }

  #tunnel(id: number): Exchange {
    const tunnel: TunnelPlan = {
      bytes: this.#between(1, this.#pick(100, 10_000, 300_000)),
      delivery: this.#delivery(30_000),
      end: this.#pick('client', 'client', 'backend', 'backend', 'client-reset', 'backend-reset'),
    }
    return { ...this.#exchangeOf('tunnel', 'GET'), id, tunnel }
  }

  #refusedUpgrade(id: number): Exchange {
    const answer = { ...this.#answer(this.#bodyBytes(), false), status: this.#pick(200, 400, 403, 404) }
    return { ...this.#exchangeOf('refused-upgrade', 'GET'), id, answer }
  }

  #cancel(protocol: Protocol): Cancel {
    return {
      where: this.#pick('request', 'response', 'response'),
      share: this.#pick(0, this.#random(), this.#random()) * 0.999,
      how: protocol === 'h2' ? this.#pick('stream', 'stream', 'end', 'reset') : this.#pick('end', 'reset'),
    }
  }

  #upload({ maxBodyBytes }: GatewayBounds, protocol: Protocol): Upload {
    const bytes =
      maxBodyBytes > 0 && this.#chance(0.15) ? maxBodyBytes + this.#between(1, 100_000) : this.#uploadBytes()
    return {
      framing: this.#pick('length', 'chunked'),
      bytes: bytes > maxBodyBytes && maxBodyBytes > 0 && this.#chance(0.5) ? maxBodyBytes : bytes,
      chunkMost: this.#pick(1, 100, 5_000, 70_000),
      delivery: this.#delivery(20_000),
      expectsContinue: this.#chance(protocol === 'h2' ? 0 : 0.08),
    }
  }

  #uploadBytes(): number {
    const dice = this.#random()
    if (dice < 0.1) return 0
    if (dice < 0.6) return this.#between(1, 2_000)
    return dice < 0.95 ? this.#between(2_000, 80_000) : this.#between(80_000, 400_000)
  }

  #bodyBytes(): number {
    const dice = this.#random()
    if (dice < 0.06) return 0
    if (dice < 0.3) return this.#between(1, 200)
    if (dice < 0.7) return this.#between(200, 16_000)
    if (dice < 0.92) return this.#between(16_000, 70_000)
    return dice < 0.996 ? this.#between(70_000, 500_000) : this.#between(1_000_000, 4_000_000)
  }

  #answer(bytes: number, hasUpload: boolean): Answer {
    const isBroken = this.#chance(0.07)
    return {
      interim: this.#chance(0.05) ? [this.#pick(102, 103, 104), ...this.#pick([], [103])] : [],
      status: this.#chance(0.06) ? this.#pick(204, 304) : this.#pick(200, 200, 200, 201, 404, 500, 503),
      framing: this.#pick('length', 'length', 'chunked', 'chunked', 'chunked', 'until-close'),
      bytes,
      chunkMost: this.#pick(1, 500, 8_000, 8_000, 70_000),
      trailers: this.#chance(0.1),
      early: hasUpload && this.#chance(0.15),
      delayMs: this.#chance(0.2) ? this.#between(1, 30) : 0,
      delivery: this.#delivery(this.#pick(500, 16_000, 64_000, 1_000_000)),
      then: this.#pick('keep', 'keep', 'keep', 'keep', 'keep', 'keep', 'close', 'drop'),
      broken: isBroken
        ? { share: this.#pick(0, this.#random(), this.#random() * 0.05, 1), how: this.#pick('end', 'reset') }
        : undefined,
      barrier: 0,
    }
  }

  #delivery(most: number): Delivery {
    const isWhole = this.#chance(0.4)
    return {
      seed: this.#between(1, 2 ** 30),
      most: isWhole ? 100_000_000 : this.#between(1, most),
      pauseShare: this.#pick(0, 0, 0.02, 0.2),
      pauseMs: this.#between(1, 10),
    }
  }
}

const whole: Delivery = { seed: 1, most: 100_000_000, pauseShare: 0, pauseMs: 0 }
const plain = { interim: [], status: 200, then: 'keep', broken: undefined, delayMs: 0 } as const
const atOnce = {
  reading: { pauseShare: 0, pauseMs: 0, stallAfterBytes: 0, stallMs: 0 },
  window: 1,
  halfCloses: false,
  streamWindow: 65_535,
} as const
