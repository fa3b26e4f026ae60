import { createServer } from 'node:http'
import { withPage } from './browser.js'

/*
 * A page of somebody else's in an operator's browser tries to use the admin listener of a gateway on the operator's machine: by
 * requests and forms across sites (CSRF), under a name of its own that resolves to 127.0.0.1 (DNS rebinding), and by showing
 * the operators' page in a frame (clickjacking).
 */

const [origin, protocol, withToken] = process.argv.slice(2)
const evil = createServer((request, response) => {
  const forms = [origin, withToken]
    .map((target, index) => {
      const to = `<form id="form${index}" method="post" enctype="text/plain" action="${target}/api/clients/ban">`
      return `${to}<input name='{"client":"192.0.2.1","for":"1h","reason":"' value='"}'></form>`
    })
    .join('')
  response.writeHead(200, { 'content-type': 'text/html' }).end(`<title>A page</title>${forms}`)
})
const port = await new Promise((resolve) => {
  evil.listen(0, '127.0.0.1', () => resolve(evil.address().port))
})

/** In the page: what a script gets for a request, where it gets anything. */
async function attack([target, path, init]) {
  try {
    const response = await fetch(target + path, init)
    return response.type === 'opaque' ? 'opaque' : response.status
  } catch {
    return 'blocked'
  }
}
const body = JSON.stringify({ client: '192.0.2.1', for: '1h' })
const json = { method: 'POST', body, headers: { 'content-type': 'application/json' } }

await withPage(
  protocol,
  async (tab) => {
    const attempts = {}
    for (const host of ['evil.example', '127.0.0.1', 'localhost']) {
      for (const target of [origin, withToken]) {
        await tab.goto(`http://${host}:${port}/`)
        const tried = (path, init) => tab.evaluate(attack, [target, path, init])
        attempts[`${host}, ${target === origin ? 'without' : 'with'} a token`] = [
          await tried('/api/status'),
          await tried('/api/status', { mode: 'no-cors' }),
          await tried('/api/clients/ban', json),
          await tried('/api/clients/ban', { ...json, mode: 'no-cors' }),
          await tried('/api/clients/ban', { method: 'POST', body, mode: 'no-cors' }),
          await tried('/api/clients/ban', {
            method: 'POST',
            body: new URLSearchParams({ a: '1' }).toString(),
            mode: 'no-cors',
          }),
        ]
      }
    }
    const forms = []
    for (const index of [0, 1]) {
      await tab.goto(`http://evil.example:${port}/`)
      const answered = tab.waitForResponse((response) => response.url().endsWith('/api/clients/ban'))
      await tab.evaluate((id) => document.getElementById(id).submit(), `form${index}`)
      forms.push((await answered).status())
      await tab.waitForURL('**/api/clients/ban')
    }

    const rebound = []
    for (const target of [origin, withToken]) {
      const name = `http://evil.example:${new URL(target).port}`
      await tab.goto(`${name}/`)
      for (const [path, init] of [['/api/status'], ['/api/events'], ['/metrics'], ['/api/clients/ban', json]])
        rebound.push(await tab.evaluate(attack, [name, path, init]))
    }

    const framed = []
    for (const target of [origin, withToken]) {
      await tab.goto(`http://evil.example:${port}/`)
      const shown = await tab.evaluate(
        (url) =>
          new Promise((resolve) => {
            const frame = document.createElement('iframe')
            frame.addEventListener('load', () => resolve(frame.contentDocument === null))
            frame.src = url
            document.body.append(frame)
          }),
        `${target}/`,
      )
      framed.push(shown && (await tab.frames()[1]?.locator('#health').count()))
    }

    // The page itself can do all that.
    await tab.goto(`${origin}/`)
    const own = [
      await tab.evaluate(attack, [origin, '/api/bans']),
      await tab.evaluate(attack, [origin, '/api/clients/unban', { ...json, body: '{"client":"192.0.2.1"}' }]),
    ]
    return { attempts, forms, rebound, framed, own }
  },
  ['--host-resolver-rules=MAP evil.example 127.0.0.1'],
)
evil.close()
evil.closeAllConnections()
