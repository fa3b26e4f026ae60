import { at, fill, make, setClass, setText } from './dom.js'
import { describeLimit, describeMatch, formatNumber, formatRate } from './format.js'
import { currentStep, isKnown, ratesOf, STEPS, weightOf } from './rates.js'

const SHOWN = 50
const MAX_SHOWN = 500
const STEP_SECONDS = 10
/** Axis labels of the plots, which span fifteen minutes. */
const AXIS = ['15 min ago', '10', '5', 'now']
const SVG = 'http://www.w3.org/2000/svg'
/** Number of plots drawn at once, few enough for one frame. */
const DRAWN_AT_ONCE = 12

/** The entries of `/api/limits`, by rule. */
let limits = new Map()
let showsAll = false
/** The rules that matter in a table of many rules, chosen again with each step. */
let chosen = []
let chosenAt
/** Plots to draw, each with its rule. */
const waiting = new Map()

export const limitOf = (name) => limits.get(name)

export function setLimits(list) {
  limits = new Map(list.map((limit) => [limit.name, limit]))
  chosenAt = undefined
}

export function showRules() {
  const most = showsAll ? MAX_SHOWN : SHOWN
  if (chosenAt !== currentStep()) {
    chosenAt = currentStep()
    const names = [...limits.keys()]
    const weights = new Map(names.map((name) => [name, weightOf(name)]))
    chosen = names.length > SHOWN ? names.sort((a, b) => weights.get(b) - weights.get(a)) : names
  }
  at('no-rules').hidden = chosen.length > 0
  const button = at('all-rules')
  button.hidden = chosen.length <= SHOWN
  const all = chosen.length > MAX_SHOWN ? `the first ${MAX_SHOWN}` : 'all'
  setText(button, showsAll ? `Show ${SHOWN} rules` : `Show ${all} of ${formatNumber(chosen.length)} rules`)
  fill(at('rules'), chosen.slice(0, most), { keyOf: (name) => name, makeOne: makeRule, writeOne: writeRule })
}

at('all-rules').addEventListener('click', () => {
  showsAll = !showsAll
  showRules()
})

function makeRule(name) {
  const row = make(
    'tr',
    {},
    make('th', { scope: 'row', title: name }, name),
    make('td', { 'data-name': 'Counts', class: 'counts' }),
    make('td', { 'data-name': 'Limit' }),
  )
  for (const kind of ['Allowed/s', 'Refused/s', 'Shadow/s'])
    row.append(make('td', { class: 'number', 'data-name': kind }))
  const plot = document.createElementNS(SVG, 'svg')
  plot.setAttribute('viewBox', `0 0 ${STEPS - 1} 32`)
  plot.setAttribute('preserveAspectRatio', 'none')
  plot.setAttribute('role', 'img')
  for (const kind of ['allowed', 'shadow', 'refused']) {
    const path = document.createElementNS(SVG, 'path')
    path.setAttribute('class', kind)
    plot.append(path)
  }
  const axis = make(
    'div',
    { class: 'axis', 'aria-hidden': 'true' },
    ...AXIS.map((text) => make('span', {}, text)),
  )
  const drawn = make('div', { class: 'drawn' }, plot, axis)
  row.append(
    make('td', { class: 'fills' }, make('div', { class: 'plot' }, drawn, make('span', { class: 'peak' }))),
  )
  return row
}

function writeRule(row, name) {
  const { rates } = ratesOf(name)
  const [, counts, about, ...cells] = row.children
  setText(counts, describeMatch(limits.get(name)))
  setText(about, describeLimit(limits.get(name)))
  for (const [index, rate] of rates.entries()) {
    setText(cells[index], formatRate(rate))
    const kind = rate === 0 ? 'zero' : index === 1 ? 'bad' : index === 2 ? 'warn' : ''
    setClass(cells[index], `number ${kind}`.trim())
  }
  if (row.drawn === currentStep()) return
  row.drawn = currentStep()
  if (waiting.size === 0) requestAnimationFrame(drawSome)
  waiting.set(name, row.querySelector('.plot'))
}

function drawSome() {
  for (const [name, plot] of [...waiting].slice(0, DRAWN_AT_ONCE)) {
    waiting.delete(name)
    draw(plot, ratesOf(name).steps)
  }
  if (waiting.size > 0) requestAnimationFrame(drawSome)
}

/** Does not draw the current step, which would always seem to fall. */
function draw(plot, steps) {
  const first = currentStep() - STEPS
  const shown = [...steps].filter(([step]) => step >= first && step < currentStep())
  const highest = Math.max(1, ...shown.flatMap(([, counts]) => counts))
  const svg = plot.querySelector('svg')
  const peak = plot.querySelector('.peak')
  for (const [path, index] of [...svg.children].map((path, order) => [path, [0, 2, 1][order]])) {
    // Only allowed requests get a line at zero.
    const isDrawn = index === 0 || shown.some(([, counts]) => counts[index] > 0)
    path.setAttribute('d', isDrawn ? lineOf(steps, index, first, highest) : '')
  }
  const refused = shown.reduce((sum, [, counts]) => sum + counts[1], 0)
  const up = shown.length === 0 ? '' : `${formatRate(highest / STEP_SECONDS)}/s`
  setText(peak, up)
  const about = up === '' ? 'Nothing counted' : `Up to ${up}, ${formatNumber(refused)} refused`
  svg.setAttribute('aria-label', `${about} in the last 15 minutes`)
}

/** Returns the line of a plot, interrupted where counts are unknown. */
function lineOf(steps, index, first, highest) {
  let line = ''
  let isBroken = true
  for (let step = first; step < currentStep(); step++) {
    if (!isKnown(step)) {
      isBroken = true
      continue
    }
    const height = 31 - ((steps.get(step)?.[index] ?? 0) / highest) * 30
    line += `${isBroken ? 'M' : 'L'}${step - first} ${Math.round(height * 10) / 10}`
    isBroken = false
  }
  return line
}
