import { appendFileSync } from 'node:fs'
import express from 'express'

// A sign-in as many services have it: by e-mail in JSON or a form, 401 for a wrong password. FAILURES: a file with a line for each.

const app = express()
const multipart = express.raw({ type: 'multipart/form-data' })
app.use(express.json(), express.urlencoded({ extended: true }), multipart)

async function readFields({ body, headers }) {
  if (!Buffer.isBuffer(body)) return body ?? {}
  const form = await new Response(body, { headers: { 'content-type': headers['content-type'] } }).formData()
  return Object.fromEntries(form)
}

app.post('/login', async (request, response) => {
  const { email, password } = await readFields(request).catch(() => ({}))
  const account = String([email].flat().at(-1) ?? '')
    .trim()
    .toLowerCase()
  if (password === 'right') return response.redirect(303, '/')
  appendFileSync(process.env.FAILURES, `${account}\n`)
  response.status(401).json({ error: 'wrong password' })
})
// Express knows such a handler by its four parameters.
app.use((_error, _request, response, next) => (response.headersSent ? next() : response.status(400).end()))
app.listen(process.env.PORT, '127.0.0.1', () => console.log('listening'))
