import { createRequire } from 'node:module'

// What `npm login` does, which asks a terminal. The first login makes the user. Prints the token as JSON.

const [origin, , username] = process.argv.slice(2)
const { login } = createRequire(import.meta.resolve('npm/package.json'))('npm-profile')

function signIn(password) {
  const openBrowser = () => Promise.reject(new Error('npm wants a browser'))
  return login(openBrowser, () => Promise.resolve({ username, password }), { registry: `${origin}/` })
}

const { token } = await signIn('a long password')
const again = await signIn('a long password')
const refused = await signIn('another password').catch((error) => error.statusCode)
console.log(JSON.stringify({ token, again: again.token !== undefined, refused }))
