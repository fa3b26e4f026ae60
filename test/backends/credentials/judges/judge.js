// What Express applications, jsonwebtoken, jose and basic-auth make of values of Authorization.
import { Buffer } from 'node:buffer'
import { text } from 'node:stream/consumers'
import basicAuth from 'basic-auth'
import { jwtVerify } from 'jose'
import jsonwebtoken from 'jsonwebtoken'

const asked = JSON.parse(await text(process.stdin))
const { secret, tokens } = asked
const verified = (token) =>
  jsonwebtoken.verify(token, secret, { algorithms: ['HS256'], clockTolerance: 10 }).sub
const known = (word) => (tokens.includes(word) ? word : null)

const readers = {
  'express split': (value) => verified(value.split(' ')[1]),
  'express slice': (value) => verified(value.slice(7)),
  'express replace': (value) => verified(value.replace('Bearer ', '')),
  'express last': (value) => verified(value.split(' ').pop()),
  'express replaceAll token': (value) => verified(value.replaceAll('Bearer ', '')),
  'passport-jwt': (value) => verified(/(\S+)\s+(\S+)/.exec(value)[2]),
  jose: async (value) => (await jwtVerify(value.split(' ')[1], Buffer.from(secret))).payload.sub,
  'express opaque': (value) => known(value.split(' ')[1]),
  'express opaque replaced': (value) => known(value.replace(/^Bearer\s+/i, '')),
  'express opaque without Bearer': (value) => known(value.replaceAll(/bearer /gi, '')),
  'express opaque last': (value) => known(value.split(/\s+/).pop()),
  'express basic': (value) => {
    const [, login = '', password = ''] =
      /^([^:]*):([^]*)$/.exec(Buffer.from(value.split(' ')[1], 'base64').toString()) ?? []
    return login === '' ? null : `${login}:${password}`
  },
  'basic-auth': (value) => {
    const read = basicAuth.parse(value)
    return read ? `${read.name}:${read.pass}` : null
  },
}

const answers = {}
for (const [name, reader] of Object.entries(readers)) {
  answers[name] = []
  for (const value of asked.values) {
    try {
      answers[name].push((await reader(value)) ?? null)
    } catch {
      answers[name].push(null)
    }
  }
}
process.stdout.write(JSON.stringify(answers))
