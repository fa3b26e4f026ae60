/**
 * The requests, by theme and name as in test/wire/vectors.ts, that this gateway forwards and both nginx and HAProxy refuse, with the
 * reasons. docs/http.md explains them in full.
 */
export const explained: Readonly<Record<string, string>> = {}

const ended =
  "http-proxy gives up a request when its client's connection ends, even after a whole request; here that is answered first (RFC 9112 §9.3.2)"
const trailer =
  'http-proxy throws ERR_HTTP_TRAILER_INVALID; here the field is of one hop and taken out (RFC 9110 §7.6.1)'
const offer =
  'http-proxy ends the connection; here an offer of another protocol is not taken, and the request is answered (RFC 9110 §7.8)'

/**
 * The requests that this gateway forwards and http-proxy 1.18.1, which uses the same request parser, does not. Not all of them differ in
 * each run: whether http-proxy has connected to the backend when its client's connection ends is a race.
 */
export const explainedBesideHttpProxy: Readonly<Record<string, string>> = {
  'framing: more content than the length': ended,
  'framing: no length, then bytes': ended,
  'connection: a second request after close': ended,
  'connection: a second request after HTTP/1.0': ended,
  'connection: bytes after close': ended,
  'connection: close and keep-alive': ended,
  'semantics: CONNECT after a request': ended,
  'pipelines: a faulty chunk after a request': ended,
  'pipelines: nonsense after a request': ended,
  'pipelines: nonsense after two': ended,
  'pipelines: after HTTP/1.0': ended,
  'pipelines: after close': ended,
  'advisories on framing: a NUL between requests': ended,
  'advisories: the preface after a request': ended,
  'connection: Trailer': trailer,
  'connection: Trailer that is not a name': trailer,
  'connection: Trailer that names framing': trailer,
  'connection: HTTP2-Settings': offer,
  'upgrades: h2c with a body': offer,
  'upgrades: h2c': offer,
  'upgrades: a list of offers': offer,
  'upgrades: TLS': offer,
  'upgrades: two lines of offers': offer,
  'advisories: h2c among others': offer,
  'advisories: an offer of h2c': offer,
}
