// Reads a list of texts in base64, and writes for each what a library of Node takes for the value. READER says which.
import { readFileSync } from 'node:fs'

const texts = JSON.parse(readFileSync(0, 'utf8')).map((text) =>
  Buffer.from(text, 'base64').toString('latin1'),
)
const flat = (value) =>
  value === undefined || value === null
    ? []
    : typeof value === 'object'
      ? Object.values(value).flatMap(flat)
      : [String(value)]
// Node has a character for each byte: a value outside ASCII is another text to it, and to the gateway the same for all bytes.
const ofAscii = (value) => flat(value).filter((one) => !/[\x80-\xff]/.test(one))
const number = (value) => (Number.isSafeInteger(Math.trunc(value)) ? [String(Math.trunc(value) + 0)] : [])

const readers = {
  qs: async () => {
    const { default: qs } = await import('qs')
    return (text) => flat(qs.parse(text).user)
  },
  h3: async () => {
    const { getQuery } = await import('h3')
    return (text) => flat(getQuery({ path: `/x?${text}` }).user)
  },
  cookie: async () => {
    const { parseCookie } = await import('cookie')
    return (text) => ofAscii(parseCookie(text).sid)
  },
  'h3-cookie': async () => {
    const { parseCookies } = await import('h3')
    return (text) => ofAscii(parseCookies({ node: { req: { headers: { cookie: text } } } }).sid)
  },
  koa: async () => {
    const { default: Koa } = await import('koa')
    const app = new Koa()
    return (text) =>
      ofAscii(app.createContext({ headers: { cookie: text }, socket: {} }, {}).cookies.get('sid'))
  },
  Number: async () => (text) => (text.trim() === '' ? [] : number(Number(text))),
  parseInt: async () => (text) => number(Number.parseInt(text, 10)),
}

const read = await readers[process.env.READER]()
const values = texts.map((text) => read(text).map((value) => Buffer.from(value).toString('base64')))
process.stdout.write(JSON.stringify(values))
