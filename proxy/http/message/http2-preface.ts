/** The connection preface, which an HTTP/2 client sends first (RFC 9113 section 3.4). */
export const http2Preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
