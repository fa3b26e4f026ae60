import { protocolsOf, withPage } from './browser.js'

// A page that becomes interactive, a server action, a navigation without a reload, and a page that streams.

const [origin, protocol, id] = process.argv.slice(2)

await withPage(protocol, async (page) => {
  const failures = []
  page.on('pageerror', (error) => failures.push(String(error)))
  page.on('response', (response) => response.status() >= 400 && failures.push(response.url()))

  await page.goto(origin)
  const seenProtocol = await page.locator('#protocol').textContent()
  // Nothing counts until the scripts have run.
  await page.waitForFunction(() => {
    document.querySelector('#count').click()
    return document.querySelector('#count').textContent !== 'Count 0'
  })

  await page.locator('input[name=name]').fill('Grace ü')
  await page.getByText('Remember').click()
  await page.locator('#name', { hasText: 'Grace ü' }).waitFor()

  await page.evaluate(() => (window.isTheSamePage = true))
  await page.getByText('Other').click()
  await page.locator('#other').waitFor()
  const withoutReload = await page.evaluate(() => window.isTheSamePage === true)
  const protocols = await protocolsOf(page)

  await page.goto(`${origin}/slow?id=${id}`, { waitUntil: 'commit' })
  // What the server has sent so far; the rest it sends only after this has arrived.
  await page.locator('#fallback').waitFor()
  await page.evaluate((target) => fetch(target, { method: 'POST' }), `/api/release?id=${id}`)
  await page.locator('#slow').waitFor()

  return {
    seenProtocol,
    withoutReload,
    protocols,
    failures: failures.filter((url) => !url.endsWith('favicon.ico')),
  }
})
