import { createServer } from 'node:http'
import { withPage } from './browser.js'

// A page of another origin than the gateway: its scripts read what the gateway answers, and a form of it is refused.

const [origin, protocol, prefix, pagePort] = process.argv.slice(2)

const page = createServer((request, response) => {
  const form = `<form method="post" action="${origin}${prefix}/form"><button>Send</button></form>`
  response.writeHead(200, { 'content-type': 'text/html' }).end(`<title>The page</title>${form}`)
})
const { port } = await new Promise((resolve) => {
  page.listen(Number(pagePort), '127.0.0.1', () => resolve(page.address()))
})

await withPage(protocol, async (tab) => {
  await tab.goto(`http://127.0.0.1:${port}/`)
  const ask = (path, options) =>
    tab.evaluate(
      async ([url, init]) => {
        try {
          const response = await fetch(url, init)
          const { status, headers } = response
          const read = (name) => headers.get(name)
          return {
            status,
            body: await response.text(),
            retryAfter: read('retry-after'),
            limit: read('ratelimit'),
            requestId: read('x-request-id'),
          }
        } catch (error) {
          return String(error)
        }
      },
      [`${origin}${prefix}${path}`, options],
    )
  // With a header of its own the browser asks first.
  const init = { method: 'PUT', credentials: 'include', headers: { 'x-own': '1' } }
  const passed = await ask('/fetched', init)
  const refused = await ask('/fetched', init)

  const submit = async () => {
    await tab.goto(`http://127.0.0.1:${port}/`)
    await tab.getByText('Send').click()
    await tab.waitForURL(`${origin}${prefix}/form`)
    return tab.locator('body').innerText()
  }
  return { passed, refused, forms: [await submit(), await submit()] }
})

page.close()
page.closeAllConnections()
