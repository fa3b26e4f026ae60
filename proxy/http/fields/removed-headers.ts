/**
 * The only list of the headers that are not passed on as received, and why. The parsers, the roles of headers (`header-roles.ts`),
 * trailers, and the checks of the configuration use it.
 */

/** Hop-by-hop headers of requests and responses (RFC 9110 section 7.6.1). They are not passed on; the next connection gets its own. */
export const hopByHop: readonly string[] = [
  // Reserved, because the option `close` would name it (RFC 9110 section 16.3.1).
  'close',
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  // The gateway frames each side anew.
  'transfer-encoding',
  'upgrade',
]

/** Hop-by-hop headers that make an HTTP/2 message malformed (RFC 9113 section 8.2.2). */
export const http1Only: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
])

/** Credentials for a forward proxy, which the backend of a gateway must not see. */
export const forwardProxyHeaders: readonly string[] = ['proxy-authenticate', 'proxy-authorization']

/** A request header that the gateway answers itself: it sends the body to the backend in any case. */
export const answeredHere = 'expect'

/** Headers of a request that the gateway writes itself: a client's value would be false, or only one part of the value. */
export const writtenByGateway: readonly string[] = [
  'host',
  // `Forwarded` would duplicate or contradict the headers that are set here.
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
  'x-request-id',
]

// The following headers tell a backend its path, its host, its scheme, its user or its client's address. The proxy in front of the backend
// sets them, and the backend would believe a client that sends one, too. `docs/http.md` has the backend and the source for each.

/** Tells the backend which rule has sent it a request that is over its limit. */
export const OVER_HEADER = 'x-sluice-over'

/** Headers that nobody may send: they replace the path, or a decision about it, unseen by the rules; or only the gateway sets them. */
export const neverForwarded: readonly string[] = [
  'proxy',
  'x-astro-locals',
  'x-astro-path',
  'x-http-destinationurl',
  'x-invoke-output',
  'x-invoke-path',
  'x-invoke-query',
  'x-invoke-status',
  'x-matched-path',
  'x-middleware-subrequest',
  'x-now-route-matches',
  'x-original-url',
  'x-override-url',
  'x-rewrite-url',
  OVER_HEADER,
]

/** Headers with a client's address, accepted from trusted proxies only. */
export const clientAddressHeaders: readonly string[] = [
  'ali-cdn-real-ip',
  'appengine-user-ip',
  'cdn-src-ip',
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'cf-pseudo-ipv4',
  'client-ip',
  'cloudfront-viewer-address',
  'do-connecting-ip',
  'fastly-client-ip',
  'fly-client-ip',
  'forwarded-for',
  'incap-client-ip',
  'proxy-client-ip',
  'true-client-ip',
  'x-azure-clientip',
  'x-azure-socketip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-forwarded',
  'x-nf-client-connection-ip',
  'x-original-for',
  'x-original-forwarded-for',
  'x-originating-ip',
  'x-proxyuser-ip',
  'x-sucuri-clientip',
  'x-true-ip',
  'x-vercel-forwarded-for',
]

/** Headers accepted from trusted proxies only. */
export const trustedProxyHeaders: readonly string[] = [
  // Path and prefix
  'path-info',
  'request-base',
  'script-name',
  'x-accel-mapping',
  'x-ingress-path',
  'x-original-method',
  'x-original-uri',
  'x-request-base',
  'x-request-uri',
  'x-script-name',
  'x-sendfile-type',
  'x-traversal-path',
  'x-vhm-root',
  // Host
  'x-host',
  'x-http-host-override',
  'x-original-host',
  'x-vhm-host',
  // Scheme
  'cf-visitor',
  'cloudfront-forwarded-proto',
  'fastly-ssl',
  'front-end-https',
  'x-arr-ssl',
  'x-client-scheme',
  'x-original-proto',
  'x-scheme',
  'x-url-scheme',
  ...clientAddressHeaders,
  // User
  'cf-access-authenticated-user-email',
  'client-cert',
  'client-cert-chain',
  'iv-creds',
  'iv-groups',
  'iv-user',
  'oam-remote-user',
  'sm-user',
  'x-alfresco-remote-user',
  'x-anonymous-consumer',
  'x-arr-clientcert',
  'x-authenticated-groups',
  'x-authenticated-scope',
  'x-authenticated-userid',
  'x-auth-userid',
  'x-auth-username',
  'x-client-cert',
  'x-client-dn',
  'x-client-verify',
  'x-credential-identifier',
  'x-vouch-user',
]

/** Prefixes of header names accepted from trusted proxies only. */
export const trustedProxyPrefixes: readonly string[] = [
  'l5d-',
  'oidc-claim-',
  'remote-',
  'ssl-client-',
  'tailscale-user-',
  'wl-proxy-',
  'x-amzn-mtls-',
  'x-amzn-oidc-',
  'x-appengine-',
  'x-auth-request-',
  'x-authentik-',
  'x-consumer-',
  'x-envoy-',
  'x-forwarded-',
  'x-goog-authenticated-user-',
  'x-ms-client-principal',
  'x-pomerium-claim-',
  'x-remote-',
  'x-ssl-client-',
  'x-vouch-idp-',
  'x-webauth-',
]

// RFC 9110 section 6.5.1: a field for framing, routing, authentication, cache control or content encoding has no effect in a trailer, or
// has the effect of a header that escaped the checks of headers.

/** Fields that are removed from trailers, in addition to those that are removed from headers. */
export const neverTrailers: ReadonlySet<string> = new Set([
  'accept-encoding',
  'age',
  'authentication-info',
  'authorization',
  'cache-control',
  'cookie',
  'date',
  'expect',
  'expires',
  'forwarded',
  'grpc-accept-encoding',
  'grpc-encoding',
  'grpc-timeout',
  'host',
  'location',
  'max-forwards',
  'origin',
  'pragma',
  'proxy-authentication-info',
  'range',
  'retry-after',
  'set-cookie',
  'te',
  'trailer',
  'vary',
  'via',
  'warning',
  'www-authenticate',
])

/** Prefixes of further fields that are removed from trailers. */
export const neverTrailerPrefixes: readonly string[] = [
  'access-control-',
  'content-',
  'if-',
  'proxy-',
  'ratelimit',
  'sec-',
  'strict-transport-',
  'x-content-',
  'x-forwarded-',
  'x-http-method',
  'x-method',
  'x-frame-',
  'x-real-ip',
  'x-request-id',
  'x-ratelimit',
]
