import { formatCount } from '../../output.ts'
import type { Series } from '../time-series.ts'
import { escapeHtml, htmlTable } from './markup.ts'

const WIDTH = 720
const HEIGHT = 192
/** Room for the labels above, below and left of the bars. */
const TOP = 30
const BOTTOM = 22
const LEFT = 60
const PLOT_WIDTH = WIDTH - LEFT - 8
const PLOT_HEIGHT = HEIGHT - TOP - BOTTOM
const BASE = TOP + PLOT_HEIGHT

type Bar = { readonly x: number; readonly y: number; readonly width: number; readonly height: number }

/** Plots the requests in each bucket of time, refused requests on top of passed ones. The same numbers follow as a table. */
export function plotOverTime(
  title: string,
  { requests, refused }: Series,
  { fromMs, bucketMs }: { readonly fromMs: number; readonly bucketMs: number },
): string {
  const max = Math.max(1, ...requests)
  const width = PLOT_WIDTH / Math.max(1, requests.length)
  const barsOf = (from: (at: number) => number, to: (at: number) => number): Bar[] =>
    requests.map((_, at) => ({
      x: LEFT + at * width,
      y: BASE - (PLOT_HEIGHT * to(at)) / max,
      width,
      height: (PLOT_HEIGHT * (to(at) - from(at))) / max,
    }))
  const passed = (at: number): number => (requests[at] ?? 0) - (refused[at] ?? 0)
  const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0)
  const toMs = fromMs + bucketMs * requests.length
  const seconds = formatCount(bucketMs / 1000)
  const described = `${formatCount(sum(requests))} requests from ${iso(fromMs)} to ${iso(toMs)}, ${formatCount(sum(refused))} of them refused; at most ${formatCount(max)} requests in ${seconds} s`
  const rows = requests.flatMap((count, at) =>
    count === 0 ? [] : [[iso(fromMs + at * bucketMs), formatCount(count), formatCount(refused[at] ?? 0)]],
  )
  return (
    figure(title, described, [
      `<path class="passed" d="${pathOf(barsOf(() => 0, passed))}"/>`,
      `<path class="refused" d="${pathOf(barsOf(passed, (at) => requests[at] ?? 0))}"/>`,
      label(LEFT - 6, TOP + 10, formatCount(max), 'end'),
      label(LEFT - 6, BASE, '0', 'end'),
      label(LEFT, HEIGHT - 6, iso(fromMs), 'start'),
      label(WIDTH - 8, HEIGHT - 6, iso(toMs), 'end'),
    ]) +
    `<details><summary>${escapeHtml(title)}, as a table</summary>${htmlTable(`Requests that began in each ${seconds} s`, ['From', '>Requests', '>Refused'], rows)}</details>`
  )
}

const binNames = ['to ⅛', 'to ¼', 'to ½', 'to limit', 'to 2×', 'to 4×', 'to 8×', 'over 8×']
/** The first bin over the limit. */
const FIRST_OVER = 4

/**
 * Plots the numbers of clients by how close they came to their limit. Heights are logarithmic, so that one client over the limit is visible
 * next to a million others.
 */
export function plotPeaks(title: string, clients: readonly number[]): string {
  const max = Math.max(1, ...clients)
  const step = PLOT_WIDTH / clients.length
  const bars = clients.map((count, at): Bar => {
    const height = (PLOT_HEIGHT * Math.log1p(count)) / Math.log1p(max)
    return { x: LEFT + at * step + 4, y: BASE - height, width: step - 8, height }
  })
  const limitX = LEFT + FIRST_OVER * step
  const middle = (at: number): number => LEFT + (at + 0.5) * step
  const described = clients.map((count, at) => `${binNames[at] ?? ''}: ${formatCount(count)}`).join('; ')
  return figure(
    title,
    `Clients by the requests in their busiest window, as a fraction of their limit. ${described}`,
    [
      `<path class="passed" d="${pathOf(bars.slice(0, FIRST_OVER))}"/>`,
      `<path class="refused" d="${pathOf(bars.slice(FIRST_OVER))}"/>`,
      `<path class="limit" d="M${limitX} 14V${BASE}"/>`,
      label(limitX, 10, 'limit', 'middle'),
      ...clients.map((_, at) => label(middle(at), HEIGHT - 6, binNames[at] ?? '', 'middle')),
      ...bars.flatMap(({ y }, at) =>
        clients[at] ? label(middle(at), y - 4, formatCount(clients[at]), 'middle') : [],
      ),
    ],
  )
}

function figure(title: string, described: string, content: readonly string[]): string {
  return `<figure><figcaption>${escapeHtml(title)}</figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(`${title}: ${described}`)}">
<path class="axis" d="M${LEFT} ${TOP}V${BASE}H${WIDTH - 8}"/>
${content.join('\n')}
</svg></figure>`
}

function pathOf(bars: readonly Bar[]): string {
  return bars
    .filter(({ height }) => height > 0)
    .map(
      ({ x, y, width, height }) =>
        `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`,
    )
    .join('')
}

function short(length: number): string {
  return String(Math.round(length * 100) / 100)
}

function label(x: number, y: number, text: string, anchor: 'start' | 'middle' | 'end'): string {
  return `<text x="${short(x)}" y="${short(y)}" text-anchor="${anchor}">${escapeHtml(text)}</text>`
}

function iso(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
}
