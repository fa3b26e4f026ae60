import { randomBytes } from 'node:crypto'
import { AbstractStartedContainer, GenericContainer, Wait, type StartedTestContainer } from 'testcontainers'
import type { SluiceYaml } from '../../config/written/sluice-yaml.ts'

const CLIENT_PORT = 8080
const ADMIN_PORT = 9090
const SETTINGS_FILE = '/app/sluice.yaml'
/** The container engine's name for the host machine. */
const HOST = 'host.docker.internal'

/** The address and token of the admin listener, from `getAdmin`: send `Authorization: Bearer <token>`. */
export type SluiceAdmin = { readonly url: string; readonly token: string }

/**
 * A gateway in a container, for tests with testcontainers:
 *
 *     const gateway = await new SluiceContainer().withUpstream('http://backend:3000').withNetwork(network).start()
 */
export class SluiceContainer extends GenericContainer {
  #settings: SluiceYaml = {}
  readonly #token = randomBytes(24).toString('base64url')

  /** @param image the image of the gateway, built from its Dockerfile or pulled */
  constructor(image = 'sluice-gateway') {
    super(image)
    this.withExposedPorts(CLIENT_PORT, ADMIN_PORT)
    this.withExtraHosts([{ host: HOST, ipAddress: 'host-gateway' }])
    this.withWaitStrategy(
      Wait.forHttp('/readyz', ADMIN_PORT, { abortOnContainerExit: true }).forStatusCode(200),
    )
  }

  /** @param url the URL of the backend. `localhost` and `127.0.0.1` mean this machine, where the backend must listen on all addresses. */
  withUpstream(url: string): this {
    return this.withSettings({ upstream: urlInContainer(url) })
  }

  /** @param limits the table of limits, as in `sluice.yaml`. Without it, the built-in table applies. */
  withLimits(limits: NonNullable<SluiceYaml['limits']>): this {
    return this.withSettings({ limits })
  }

  /** Keeps the counters in Redis, shared with other gateways. @param url the URL of Redis, in the form that `withUpstream` accepts */
  withRedis(url: string): this {
    return this.withSettings({ redisUrl: urlInContainer(url) })
  }

  /** Adds settings by their names in `sluice.yaml`. */
  withSettings(settings: SluiceYaml): this {
    this.#settings = { ...this.#settings, ...settings }
    return this
  }

  /** Starts the gateway. Resolves when it accepts requests. Rejects if it does not start; its log has the reason. */
  override async start(): Promise<StartedSluiceContainer> {
    const settings: SluiceYaml = { shutdownGrace: '1s', storeTimeout: '5s', ...this.#settings }
    this.withEnvironment({ ADMIN_HOST: '0.0.0.0', ADMIN_TOKEN: this.#token })
    this.withCopyContentToContainer([fileOf(settings)])
    return new StartedSluiceContainer(await super.start(), settings, this.#token)
  }
}

/** A gateway that accepts requests. */
export class StartedSluiceContainer extends AbstractStartedContainer {
  readonly #settings: SluiceYaml
  readonly #token: string

  constructor(container: StartedTestContainer, settings: SluiceYaml, token: string) {
    super(container)
    this.#settings = settings
    this.#token = token
  }

  /** The URL for clients: `http://localhost:32768`. */
  getUrl(): string {
    return `http://${this.getHost()}:${this.getMappedPort(CLIENT_PORT)}`
  }

  /** The admin listener of this container: its URL from this machine, and its token. */
  getAdmin(): SluiceAdmin {
    return { url: `http://${this.getHost()}:${this.getMappedPort(ADMIN_PORT)}`, token: this.#token }
  }

  /**
   * Clears all counters, bans and overrides.
   *
   * @throws Error if the counters are in Redis, where other gateways may count, too. Empty that Redis itself instead
   */
  async reset(): Promise<void> {
    if (this.#settings.redisUrl !== undefined) throw new Error('reset: the counters are in Redis')
    await this.#removeEntries('bans', 'unban')
    await this.#removeEntries('overrides', 'override/remove')
    // Removing a rule drops its counters, so remove all rules, including those of presets, and add them again.
    for (const settings of [{ ...this.#settings, preset: undefined, limits: [] }, this.#settings]) {
      await this.copyContentToContainer([fileOf(settings)])
      await this.#ask('reload', {})
    }
  }

  async #removeEntries(list: 'bans' | 'overrides', remove: string): Promise<void> {
    const entries = ((await this.#ask(`${list}?limit=10000`)) as Record<string, readonly Entry[]>)[list] ?? []
    for (const { client, policy } of entries)
      await this.#ask(`clients/${remove}`, { client, ...(policy !== null && { policy }) })
  }

  /** @param body sent as JSON with POST; without it, the request is a GET */
  async #ask(path: string, body?: object): Promise<unknown> {
    const { url, token } = this.getAdmin()
    const response = await fetch(`${url}/api/${path}`, {
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`reset: ${await response.text()}`)
    return response.json()
  }
}

/** A ban or an override in a list of the API. */
type Entry = { readonly client: object; readonly policy: string | null }

function fileOf(settings: object): { content: string; target: string } {
  // JSON is YAML.
  return { content: JSON.stringify(settings), target: SETTINGS_FILE }
}

function urlInContainer(url: string): string {
  return url.replace(/(?<=:\/\/(?:[^@/]*@)?)(?:localhost|127\.0\.0\.1|\[::1\])(?=[:/]|$)/, HOST)
}
