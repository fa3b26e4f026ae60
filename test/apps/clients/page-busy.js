import { withPage } from './browser.js'

// Measures how much CPU the script of the page takes while many requests are refused. Time on the CPU counts, and not the time of day, so
// that other load on the machine makes no difference.

const [origin, protocol, seconds, picture] = process.argv.slice(2)
/** What a task of the main thread does beside scripts. */
const rendering = new Set([
  'UpdateLayoutTree',
  'Layout',
  'PrePaint',
  'Paint',
  'Layerize',
  'Commit',
  'HitTest',
])

await withPage(protocol, async (tab) => {
  await tab.goto(`${origin}/`)
  await tab.locator('#rules td.bad').first().waitFor()
  await tab.locator('#limited tr').nth(19).waitFor()
  await tab.locator('#all-rules').click()
  await tab.locator('#all-limited').click()
  const cdp = await tab.context().newCDPSession(tab)
  const events = []
  cdp.on('Tracing.dataCollected', ({ value }) => events.push(...value))
  const ended = new Promise((resolve) => cdp.once('Tracing.tracingComplete', resolve))
  const categories = 'devtools.timeline,disabled-by-default-devtools.timeline,__metadata'
  await cdp.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: { includedCategories: categories.split(',') },
  })
  await tab.waitForTimeout(Number(seconds) * 1000)
  await cdp.send('Tracing.end')
  await ended
  if (picture) await tab.screenshot({ path: picture, fullPage: true })
  const rates = await tab.locator('#rules td[data-name="Refused/s"]').allInnerTexts()
  const refusedPerSecond = rates.reduce((sum, text) => sum + Number(text.replace(',', '')), 0)
  const clients = await tab.locator('#limited tr').count()
  const tasks = scriptingOf(events)
  return {
    refusedPerSecond,
    clients,
    tasks: tasks.filter((ms) => ms > 0.5).length,
    maxMs: Math.max(...tasks),
    perSecondMs: tasks.reduce((sum, ms) => sum + ms, 0) / Number(seconds),
  }
})

/** For each task of the page's main thread the milliseconds of the processor that it took, without those of rendering. */
function scriptingOf(events) {
  const timed = events.filter(({ ph, tdur }) => ph === 'X' && tdur !== undefined)
  const threadOf = ({ pid, tid }) => `${pid} ${tid}`
  const main = timed.find(({ name }) => name === 'FireAnimationFrame' || name === 'Layout')
  const ours = main ? timed.filter((event) => threadOf(event) === threadOf(main)) : []
  const parts = outermost(ours.filter(({ name }) => rendering.has(name)))
  return ours
    .filter(({ name }) => name === 'RunTask')
    .map(({ ts, dur, tdur }) => {
      const within = parts.filter((part) => part.ts >= ts && part.ts < ts + dur)
      return (tdur - within.reduce((sum, part) => sum + part.tdur, 0)) / 1000
    })
}

/** Returns the events that are not within another. */
function outermost(events) {
  let end = 0
  return events
    .toSorted((a, b) => a.ts - b.ts || b.dur - a.dur)
    .filter(({ ts, dur }) => {
      if (ts + dur <= end) return false
      end = ts + dur
      return true
    })
}
