const rtsp = "Node's parser reads the version of RTSP and ICE as one of HTTP; nothing of it is passed on"

/**
 * Where this gateway forwards what nginx and HAProxy both refuse, and why it stays so. docs/http.md has them in words.
 * By theme and name, as in test/wire/vectors.ts.
 */
export const explained: Readonly<Record<string, string>> = {
  'request line: RTSP/1.0': rtsp,
  'request line: RTSP/1.1': rtsp,
  'request line: SOURCE of ICE/1.0': rtsp,
}
