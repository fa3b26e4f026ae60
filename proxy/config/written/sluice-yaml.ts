// Generated from the settings: npm run generate

export type TextTests =
  | (
      | (
          | string
          | number
          | boolean
          | {
              is?: string
              prefix?: string
              contains?: string
            }
        )
      | (
          | string
          | number
          | boolean
          | {
              is?: string
              prefix?: string
              contains?: string
            }
        )[]
    )
  | undefined

/**
 * Settings and limits of the Sluice gateway.
 */
export interface SluiceYaml {
  /**
   * Address to listen on for clients; all interfaces if unset
   */
  host?: string
  /**
   * Port to listen on for clients; 0 picks a free one
   */
  port?: number
  /**
   * URL of the backend; its path is put before the path of each request
   */
  upstream?: string
  /**
   * URL of the backend; its path is put before the path of each request
   */
  upstreamUrl?: string
  /**
   * URL of the Redis that keeps the counters for all replicas; if unset, this process keeps them
   */
  redisUrl?: string
  /**
   * Part of every Redis key, so that gateways with different limits can share one Redis
   */
  namespace?: string
  /**
   * Proxies that are trusted to send the address of their client in `clientAddressHeader`
   */
  trustedProxies?: string[]
  /**
   * Header in which trusted proxies send the address of the client
   */
  clientAddressHeader?: string
  /**
   * Time zone of calendar windows (`window: month`), for rules that set no `timezone`
   */
  timezone?: string
  /**
   * Formats of the response headers that tell clients their limits
   */
  rateLimitHeaders?: ('ietf' | 'x-ratelimit')[]
  /**
   * Require a PROXY protocol header on each connection from a trusted proxy
   */
  proxyProtocol?: boolean
  /**
   * Leading bits of an IPv6 address that identify a client: addresses that share them count as one
   */
  ipv6Prefix?: number
  /**
   * Port, without TLS, for auth requests of other proxies (nginx auth_request, Envoy ext_authz, forward auth of Traefik and Caddy); none if unset
   */
  decisionsPort?: number
  /**
   * Address to listen on for health checks, metrics and the admin API
   */
  adminHost?: string
  /**
   * Port to listen on for health checks, metrics and the admin API; 0 picks a free one
   */
  adminPort?: number
  /**
   * Worker processes that share the port; `auto` starts one per CPU core
   */
  workers?: 'auto' | number
  /**
   * PEM certificate, or chain, for HTTPS
   */
  tlsCertFile?: string
  /**
   * PEM private key of the certificate, without a passphrase
   */
  tlsKeyFile?: string
  /**
   * Minimum level of the log lines that are written
   */
  logLevel?: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'
  /**
   * Write a log line for every request, or with `refused` for refused requests only, at most 100 a second per worker process
   */
  accessLog?: boolean | 'refused'
  /**
   * Include client addresses in log lines
   */
  logAddresses?: boolean
  /**
   * Time to wait for Redis before a rule applies its `onStoreError`
   */
  storeTimeout?: string
  /**
   * Maximum number of counters in the memory of each process
   */
  storeMaxKeys?: number
  /**
   * Maximum client connections per worker process
   */
  maxConnections?: number
  /**
   * Maximum connections of one client per worker process; 0 for no limit
   */
  maxConnectionsPerClient?: number
  /**
   * Maximum size of a request head, line ends included; path and query may take half of it, and it may have 100 headers. Trailers have the same limits, counted separately
   */
  maxHeaderSize?: number | string
  /**
   * Forward headers whose names contain characters other than letters, digits and `-`
   */
  keepUnusualHeaders?: boolean
  /**
   * Maximum size of a request body; 0 for no limit. Long bodies are streamed (see `requestBuffering`)
   */
  maxBodySize?: number | string
  /**
   * Time to receive the headers of a request, and to complete a TLS handshake
   */
  headersTimeout?: string
  /**
   * Buffer request bodies up to this size before taking a connection to the backend; 0 for no buffering
   */
  requestBuffering?: number | string
  /**
   * Time within which a request body must make progress (see `minBodyRate`)
   */
  bodyTimeout?: string
  /**
   * Minimum rate of a request body, in bytes per second
   */
  minBodyRate?: number | string
  /**
   * Time within which a client must read some of its response
   */
  sendTimeout?: string
  /**
   * Time to keep an idle client connection open (keep-alive)
   */
  idleTimeout?: string
  /**
   * Time without traffic after which a WebSocket or other upgraded connection is closed
   */
  tunnelIdleTimeout?: string
  /**
   * Protocols that requests may switch to besides WebSocket, such as `tcp` and `h2c` for Docker. Traffic after the switch is not limited
   */
  upgradeProtocols?: string[]
  /**
   * `Host` header sent to `upstream`: `keep` for that of the request, `upstream` for that of the URL, or a name
   */
  upstreamHost?: string
  /**
   * Add `Via` to requests. By default, nginx does not compress responses to requests with `Via`
   */
  via?: boolean
  /**
   * Time to connect to the backend, and to wait for a connection when all are in use
   */
  upstreamConnectTimeout?: string
  /**
   * Time to wait for the first byte of a response from the backend
   */
  upstreamTimeout?: string
  /**
   * Maximum time between two reads of a response from the backend
   */
  upstreamIdleTimeout?: string
  /**
   * Maximum connections to the backend per worker process, without those of `upstreamStreams`
   */
  upstreamConnections?: number
  /**
   * Maximum additional connections to the backend per worker process, for long responses: event streams, downloads, slow clients
   */
  upstreamStreams?: number
  /**
   * Maximum requests per worker process that wait for a connection to the backend; the same number may wait to upload
   */
  upstreamQueue?: number
  /**
   * PEM file of CA certificates to verify an HTTPS backend with
   */
  upstreamCaFile?: string
  /**
   * Time after SIGTERM during which connections are still accepted, so that load balancers can notice
   */
  shutdownDelay?: string
  /**
   * Time for requests in flight to finish after SIGTERM
   */
  shutdownGrace?: string
  /**
   * Clients that no rule counts or refuses, by address or secret header.
   *
   * @maxItems 10000
   */
  allowList?: {
    /**
     * An address, a CIDR, a name of networks, a file, or a list of them.
     */
    ip?:
      | (
          | string
          | {
              /**
               * File with one address or CIDR a line, read again when it changes.
               */
              file: string
            }
        )[]
      | (
          | string
          | {
              /**
               * File with one address or CIDR a line, read again when it changes.
               */
              file: string
            }
        )
    /**
     * File with one address or CIDR a line, read again when it changes.
     */
    file?: string
    /**
     * A header with the SHA-256 of its value: { NAME: sha256:HEX }.
     */
    header?: {
      [k: string]: string | undefined
    }
  }[]
  /**
   * Clients whose requests are answered 403 before any rule applies.
   *
   * @maxItems 10000
   */
  denyList?: {
    /**
     * An address, a CIDR, a name of networks, a file, or a list of them.
     */
    ip?:
      | (
          | string
          | {
              /**
               * File with one address or CIDR a line, read again when it changes.
               */
              file: string
            }
        )[]
      | (
          | string
          | {
              /**
               * File with one address or CIDR a line, read again when it changes.
               */
              file: string
            }
        )
    /**
     * File with one address or CIDR a line, read again when it changes.
     */
    file?: string
    /**
     * A header with the SHA-256 of its value: { NAME: sha256:HEX }.
     */
    header?: {
      [k: string]: string | undefined
    }
  }[]
  /**
   * CrowdSec whose decisions deny clients: its local API.
   */
  crowdsec?: {
    /**
     * URL of the local API of CrowdSec.
     */
    url: string
    /**
     * File with the API key of a bouncer.
     */
    keyFile: string
    /**
     * Interval between two polls.
     */
    every?: string
  }
  /**
   * Lets scripts of other origins read responses of the gateway itself.
   */
  cors?: {
    /**
     * Origins whose scripts can read responses of the gateway itself, or '*' for all.
     *
     * @minItems 1
     */
    origins: string[]
  }
  /**
   * Response to requests that a rule refuses, unless the rule has one of its own.
   */
  refusal?: {
    /**
     * Status code of the response.
     */
    status?: number
    /**
     * Body of the response: text, or a mapping or list that is sent as JSON. Default: the usual body, with this status as code.
     */
    body?:
      | string
      | {
          [k: string]: unknown | undefined
        }
      | unknown[]
    /**
     * File with the body of the response.
     */
    bodyFile?: string
    /**
     * Media type of the body. Default: application/json for JSON, text/plain; charset=utf-8 for text, by its name for bodyFile.
     */
    contentType?: string
    /**
     * HTML file for clients whose Accept header prefers HTML, such as browsers.
     */
    html?: string
    /**
     * Headers to add to the response.
     */
    headers?: {
      [k: string]: string | undefined
    }
  }
  /**
   * How to verify JSON Web Tokens, whose claims key, conditions and plans can name (jwt:CLAIM).
   */
  jwt?: {
    /**
     * URL of the JSON Web Key Set of the issuer.
     */
    jwksUrl?: string
    /**
     * File with a JSON Web Key Set.
     */
    jwksFile?: string
    /**
     * File with a secret that is shared with the issuer.
     */
    secretFile?: string
    /**
     * Required iss of a token.
     */
    issuer?: string
    /**
     * Required aud of a token, alone or in a list.
     */
    audience?: string
  }
  /**
   * Databases in MMDB format with the countries and the autonomous systems of addresses.
   */
  geoip?: {
    /**
     * File in MMDB format with the countries of addresses.
     */
    country?: string
    /**
     * File in MMDB format with their autonomous systems.
     */
    asn?: string
  }
  /**
   * Receivers of events: bans, outages of Redis, settings that are wrong.
   *
   * @maxItems 10
   */
  webhooks?: {
    /**
     * URL that gets the events, by POST. Redirects are not followed.
     */
    url: string
    /**
     * Events to send there.
     *
     * @minItems 1
     */
    events: ('ban' | 'breaker' | 'reload-failed')[]
  }[]
  /**
   * Limits that come with the gateway, by name, or several of them. Rules in limits come first, and replace those of the same name.
   */
  preset?:
    | (
        | 'account-shield'
        | 'django-admin'
        | 'docker-registry'
        | 'formbricks'
        | 'grafana'
        | 'llm-gateway'
        | 'login-protection'
        | 'mediawiki'
        | 'public-api'
        | 'wordpress'
      )
    | (
        | 'account-shield'
        | 'django-admin'
        | 'docker-registry'
        | 'formbricks'
        | 'grafana'
        | 'llm-gateway'
        | 'login-protection'
        | 'mediawiki'
        | 'public-api'
        | 'wordpress'
      )[]
  /**
   * Headers that every backend gets. A client cannot send them.
   */
  requestHeaders?: {
    [k: string]: string | undefined
  }
  /**
   * Backends by host and path: the first that matches. Without it, everything goes to upstream.
   */
  routes?: {
    /**
     * Name of the route in metrics and logs. Must be unique.
     */
    name: string
    /**
     * Hosts whose requests take the route, as in rules. Default: every host.
     */
    hosts?: string | string[]
    /**
     * Paths whose requests take the route, such as /v1/*. Default: every path.
     */
    paths?: string | string[]
    /**
     * true: only requests that a rule sends here with over take the route.
     */
    onlyOver?: boolean
    /**
     * URL of the backend, or a list of equal servers.
     */
    upstream: string | string[]
    /**
     * How to distribute requests over the servers.
     */
    balance?: 'least-connections' | 'round-robin'
    /**
     * Host header that the servers get. keep: that of the request; upstream: that of their URL; or a name.
     */
    upstreamHost?: ('keep' | 'upstream') | string
    /**
     * true removes the literal prefix of the pattern: with /v1/*, the backend gets /x for /v1/x.
     */
    stripPrefix?: boolean
    /**
     * Headers that the backend gets, such as X-Script-Name, besides those of the file.
     */
    requestHeaders?: {
      [k: string]: string | undefined
    }
    /**
     * PEM file of CA certificates to verify https servers with. Default: upstreamCaFile of the file.
     */
    upstreamCaFile?: string
    /**
     * Health checks of the servers. Default: none.
     */
    health?: {
      /**
       * Path to request with GET, whatever path the URL has. A server is healthy if it answers 200 to 399.
       */
      path: string
      /**
       * Interval between two probes of a server. A probe times out after the same time, at most 5s.
       */
      every?: string
      /**
       * Consecutive failed probes after which a server is not used.
       */
      fails?: number
      /**
       * Consecutive successful probes after which it is used again.
       */
      passes?: number
    }
  }[]
  /**
   * The limits table. Without it, the built-in table applies; an empty list means no limits.
   */
  limits?: {
    /**
     * Name of the rule in response headers, metrics and Redis keys. Must be unique.
     */
    name: string
    /**
     * Requests that the rule counts: METHOD[,METHOD] PATH, or a list of them.
     */
    match: string | string[]
    /**
     * Requests that are excluded from match, in the same form.
     */
    except?: string | string[]
    /**
     * Hosts whose requests the rule counts: a name, *.NAME, or a list of them. Default: every host.
     */
    hosts?: string | string[]
    /**
     * Conditions that must all hold for the rule to apply to a request.
     */
    when?: Condition | Condition[]
    /**
     * Conditions that exclude requests: the rule does not apply if one of them holds.
     */
    unless?: Condition | Condition[]
    /**
     * Partition key, which identifies a client: ip, ip/24/48 (network by prefix lengths for IPv4 and IPv6), country, asn, host, header:NAME, cookie:NAME, query:NAME, path:NAME, body:NAME, jwt:CLAIM, or a list of them combined; { first: [...] } uses each of several keys that a request has, or the last one if it has none of them; global counts all clients together.
     */
    key?:
      | string
      | {
          /**
           * @minItems 2
           */
          first: string[]
        }
      | (
          | string
          | {
              /**
               * @minItems 2
               */
              first: string[]
            }
        )[]
    /**
     * Number of requests allowed per client and window; with cost, number of units.
     */
    requests?: number
    /**
     * Length of the window; or hour, day, week or month of the calendar, weeks from Monday.
     */
    window?: ('hour' | 'day' | 'week' | 'month') | string
    /**
     * Time zone of a window of the calendar; by default that of timezone at the top.
     */
    timezone?: string
    /**
     * In place of requests and window: number of requests of a client in flight at the same time.
     */
    concurrency?: number
    /**
     * Count only requests whose response has one of these status codes, such as 401 or 5xx.
     */
    countStatus?: (number | string) | (number | string)[]
    /**
     * Units that a request costs, 1 by default: a number, or where the response states it.
     */
    cost?:
      | number
      | {
          /**
           * Units to reserve until the cost is known: a number, or json:PATH of the request's body.
           */
          reserve?:
            | number
            | string
            | {
                /**
                 * Number in the request's JSON body, or a list, of which the largest counts.
                 */
                json: string | string[]
                /**
                 * Units for requests that do not state a number. Default: the number in requests.
                 */
                else?: number
              }
          /**
           * Where the response states the cost: header:NAME or json:PATH, { sum: LIST } of these, or a list, of which the first that the response has counts.
           */
          settle:
            | string
            | {
                /**
                 * Numbers to add up, of those that the response has: header:NAME or json:PATH, or a list of these, of which the first found counts.
                 *
                 * @minItems 1
                 */
                sum: (string | string[])[]
              }
            | (
                | string
                | {
                    /**
                     * Numbers to add up, of those that the response has: header:NAME or json:PATH, or a list of these, of which the first found counts.
                     *
                     * @minItems 1
                     */
                    sum: (string | string[])[]
                  }
              )[]
          /**
           * Cost if the response does not state it: reserve; or estimate, tokens by the bytes of request and response, at least reserve.
           */
          else?: 'reserve' | 'estimate'
          /**
           * Remove the header from the response.
           */
          hide?: boolean
        }
    /**
     * fixed: the window starts with the client's first request; sliding: the limit holds in any span of that length; token-bucket: requests per window on average, burst at once.
     */
    algorithm?: 'fixed' | 'sliding' | 'token-bucket'
    /**
     * With token-bucket: number of requests allowed at once; by default the number in requests.
     */
    burst?: number
    /**
     * Units that a gateway takes in advance from Redis and uses without asking it: auto, or how many at a time.
     */
    lease?: 'auto' | number
    /**
     * Other numbers of requests for some clients, by address, secret header or account.
     */
    overrides?: {
      /**
       * Addresses, headers with the SHA-256 of their value, and accounts as body:NAME.
       */
      clients:
        | {
            [k: string]: string | undefined
          }
        | {
            [k: string]: string | undefined
          }[]
      /**
       * Number of requests allowed for these clients.
       */
      requests: number
      /**
       * Name of these clients in the operators' interface.
       */
      label?: string
    }[]
    /**
     * Number of requests allowed for clients with a plan, by its name; others have requests.
     */
    plans?: {
      [k: string]: number | undefined
    }
    /**
     * Where to read the plan of a client: jwt:CLAIM for a claim of its verified token, or store for a plan that was set for it.
     */
    plan?: string
    /**
     * Clients that the rule neither counts nor refuses, by address or secret header.
     *
     * @maxItems 10000
     */
    allowList?: {
      /**
       * An address, a CIDR, a name of networks, a file, or a list of them.
       */
      ip?:
        | (
            | string
            | {
                /**
                 * File with one address or CIDR a line, read again when it changes.
                 */
                file: string
              }
          )[]
        | (
            | string
            | {
                /**
                 * File with one address or CIDR a line, read again when it changes.
                 */
                file: string
              }
          )
      /**
       * File with one address or CIDR a line, read again when it changes.
       */
      file?: string
      /**
       * A header with the SHA-256 of its value: { NAME: sha256:HEX }.
       */
      header?: {
        [k: string]: string | undefined
      }
    }[]
    /**
     * Ban clients that are refused repeatedly: after, for, max, scope.
     */
    ban?: {
      /**
       * Number of refusals within the rule's window after which a client is banned.
       */
      after: number
      /**
       * Length of the first ban.
       */
      for: string
      /**
       * Maximum length of a ban: each consecutive ban is twice as long as the one before. Default: the value of for.
       */
      max?: string
      /**
       * rule: banned from requests that the rule counts; all: from all requests of the address or, under another key, that count by it.
       */
      scope?: 'rule' | 'all'
    }
    /**
     * Count devices that have signed in to an account apart from all others, so that strangers cannot lock its owner out: status, cookie, for.
     */
    device?: {
      /**
       * Status codes of the responses that say that a sign-in worked, such as 303 or 2xx.
       */
      status: (number | string) | (number | string)[]
      /**
       * Name of the cookie. The backend never gets it.
       */
      cookie?: string
      /**
       * How long a device is known after it has signed in.
       */
      for?: string
    }
    /**
     * Response to requests that the rule refuses, in place of the one for all rules.
     */
    refusal?: {
      /**
       * Status code of the response.
       */
      status?: number
      /**
       * Body of the response: text, or a mapping or list that is sent as JSON. Default: the usual body, with this status as code.
       */
      body?:
        | string
        | {
            [k: string]: unknown | undefined
          }
        | unknown[]
      /**
       * File with the body of the response.
       */
      bodyFile?: string
      /**
       * Media type of the body. Default: application/json for JSON, text/plain; charset=utf-8 for text, by its name for bodyFile.
       */
      contentType?: string
      /**
       * HTML file for clients whose Accept header prefers HTML, such as browsers.
       */
      html?: string
      /**
       * Headers to add to the response.
       */
      headers?: {
        [k: string]: string | undefined
      }
    }
    /**
     * What happens to requests over the limit: refuse (default); { route: NAME } sends them to another route; { delay: 2s, waiting: 1000 } lets them wait for their turn.
     */
    over?:
      | string
      | {
          /**
           * Name of the route that requests over the limit are sent to, with X-Sluice-Over: RULE.
           */
          route?: string
          /**
           * With token-bucket: maximum time that a request over the limit waits for its turn.
           */
          delay?: string
          /**
           * With delay: maximum requests that wait at the same time, per worker process. Default: 1000.
           */
          waiting?: number
        }
    /**
     * enforce refuses requests over the limit; shadow only counts and reports them.
     */
    mode?: 'enforce' | 'shadow'
    /**
     * While Redis is unavailable: local counts in this process, open allows the request, closed answers 503.
     */
    onStoreError?: 'local' | 'open' | 'closed'
  }[]
}
export interface Condition {
  /**
   * A header: { NAME: absent, present, VALUE, { prefix: TEXT }, { contains: TEXT } or a list }.
   */
  header?: {
    [k: string]: TextTests | undefined
  }
  /**
   * A cookie, in the same form.
   */
  cookie?: {
    [k: string]: TextTests | undefined
  }
  /**
   * A query parameter, in the same form.
   */
  query?: {
    [k: string]: TextTests | undefined
  }
  /**
   * A claim of the verified token, in the same form.
   */
  jwt?: {
    [k: string]: TextTests | undefined
  }
  /**
   * The User-Agent, letter case ignored: absent, a value, { contains: TEXT }, …
   */
  userAgent?: TextTests | undefined
  /**
   * Hosts: a name, *.NAME, or a list of them.
   */
  host?: string | string[]
  /**
   * Countries of client addresses, such as DE, by geoip; or unknown.
   */
  country?: string | string[]
  /**
   * Autonomous systems of client addresses, such as AS64496, by geoip; or unknown.
   */
  asn?: (string | number) | (string | number)[]
  /**
   * Addresses of clients: an address, a CIDR, a name of networks, a file, or a list.
   */
  ip?:
    | (
        | string
        | {
            /**
             * File with one address or CIDR a line, read again when it changes.
             */
            file: string
          }
      )[]
    | (
        | string
        | {
            /**
             * File with one address or CIDR a line, read again when it changes.
             */
            file: string
          }
      )
}
