import { withPage } from './browser.js'

// The report of `sluice replay --html` on a phone and on a wide screen.

const [url, protocol] = process.argv.slice(2)

await withPage(protocol, async (tab) => {
  const seen = {}
  await tab.goto(url)
  for (const width of [390, 1280]) {
    await tab.setViewportSize({ width, height: 800 })
    seen[width] = await tab.evaluate(() => ({
      isTooWide: document.documentElement.scrollWidth > innerWidth,
      // As it is drawn: a plot that is made smaller makes its text smaller.
      smallestText: Math.min(
        ...[...document.querySelectorAll('svg text')].map((text) => text.getBoundingClientRect().height),
      ),
      narrowestTable: Math.min(...[...document.querySelectorAll('table')].map((table) => table.offsetWidth)),
    }))
  }
  return seen
})
