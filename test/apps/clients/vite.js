import { writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { protocolsOf, withPage } from './browser.js'

// Loads a page of Vite's, then changes a module, a style and the page's own HTML in turn, as a developer does.

const [origin, protocol, folder] = process.argv.slice(2)
const write = (name, text) => writeFileSync(join(folder, name), text)

await withPage(protocol, async (page) => {
  const sockets = []
  const failures = []
  const connected = Promise.withResolvers()
  page.on('websocket', (socket) => {
    sockets.push(new URL(socket.url()).host)
    socket.on('framereceived', ({ payload }) => String(payload).includes('connected') && connected.resolve())
  })
  page.on('requestfailed', (request) => failures.push(request.url()))
  page.on('pageerror', (error) => failures.push(String(error)))

  await page.goto(`${origin}/${basename(folder)}/`)
  await page.getByText('module 1').waitFor()
  await connected.promise
  await page.evaluate(() => (window.isTheSamePage = true))

  write('part.js', "export const text = 'module 2'\n")
  await page.getByText('module 2').waitFor()
  const hot = await page.evaluate(() => window.isTheSamePage === true)

  write('style.css', 'p { color: rgb(2, 2, 2) }\n')
  await page.waitForFunction(() => getComputedStyle(document.querySelector('p')).color === 'rgb(2, 2, 2)')
  const hotStyle = await page.evaluate(() => window.isTheSamePage === true)

  const reloaded = page.waitForEvent('load')
  write('index.html', `<title>Two</title><p></p><script type="module" src="./main.js"></script>`)
  await reloaded
  await page.waitForFunction(() => document.title === 'Two')
  await page.getByText('module 2').waitFor()
  const protocols = await protocolsOf(page)

  return {
    hot,
    hotStyle,
    // A direct connection to Vite's own port is what its client falls back on.
    sockets: sockets.every((host) => host === new URL(origin).host) && sockets.length > 0,
    failures,
    protocols,
  }
})
