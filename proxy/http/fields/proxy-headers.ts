/**
 * Headers by which a backend is told of its path, its host, its scheme, its user or its client's address by the proxy before it.
 * A client that sends one itself would be believed too. `docs/http.md` has the backend and the source for each.
 */

/** Tells the backend which rule has sent it a request that is over its limit. */
export const OVER_HEADER = 'x-sluice-over'

/** Headers that replace the path, or a decision about it, without the rules seeing it, or that only the gateway sets: nobody may send them. */
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
