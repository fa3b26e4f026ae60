import { ban, letIn, override, removeOverride, unban } from './actions.js'
import { at, fill, make, setText } from './dom.js'
import { formatNumber, formatSeconds, nameOf } from './format.js'

const LIMITED_SHOWN = 20

let limited = []
let showsAll = false

const keyOf = (one) => JSON.stringify([one.policy, one.client])

export function showLimited({ limited: told, status }) {
  limited = told.clients ?? []
  at('no-limited').hidden = limited.length > 0
  const isPart = told.scope === 'replica' && status.store !== 'memory'
  setText(at('limited-scope'), isPart ? 'Of this gateway alone: Redis does not answer.' : '')
  writeLimited()
}

at('all-limited').addEventListener('click', () => {
  showsAll = !showsAll
  writeLimited()
})

function writeLimited() {
  const button = at('all-limited')
  button.hidden = limited.length <= LIMITED_SHOWN
  setText(button, showsAll ? `Show ${LIMITED_SHOWN} clients` : `Show all ${limited.length} clients`)
  fill(at('limited'), showsAll ? limited : limited.slice(0, LIMITED_SHOWN), {
    // The buttons of a row depend on the mode.
    keyOf: (one) => `${one.mode} ${keyOf(one)}`,
    makeOne: (one) => makeRow(['Rule', 'Refusals', 'Time left'], actionsOf(one)),
    writeOne: (row, one) =>
      writeRow(row, one, [
        one.mode === 'shadow' ? `${one.policy} (shadow)` : one.policy,
        formatNumber(one.refusals),
        formatSeconds(one.resetSeconds),
      ]),
  })
}

/** A client over the limit of a shadow rule has no button to let it in, because it is not refused. */
function actionsOf(one) {
  const name = nameOf(one.client)
  const actions = [['Override', `Override: ${name} under ${one.policy}`, () => override(one)]]
  if (one.client.global !== true)
    actions.unshift(['Ban for 1 hour', `Ban for 1 hour: ${name}`, () => ban(one)])
  if (one.mode !== 'shadow')
    actions.unshift(['Let back in', `Let back in: ${name} under ${one.policy}`, () => letIn(one)])
  return actions
}

export function showBans({ bans }) {
  const list = bans.bans ?? []
  at('no-bans').hidden = list.length > 0
  setText(at('more-bans'), moreOf(bans, list))
  fill(at('bans'), list, {
    keyOf,
    makeOne: (one) => makeRow(['From', 'By', 'Ends in'], [['Unban', `Unban ${nameOf(one.client)}`, unban]]),
    writeOne: (row, one) =>
      writeRow(row, one, [
        one.policy ?? 'everything',
        one.reason ? `${one.by}: ${one.reason}` : one.by,
        formatSeconds(one.expiresSeconds),
      ]),
  })
}

export function showOverrides({ overrides }) {
  const list = overrides.overrides ?? []
  at('no-overrides').hidden = list.length > 0
  setText(at('more-overrides'), moreOf(overrides, list))
  fill(at('overrides'), list, {
    keyOf,
    makeOne: (one) =>
      makeRow(
        ['Rule', 'Requests', 'Ends in'],
        [['Remove', `Remove the limit of ${nameOf(one.client)} under ${one.policy}`, removeOverride]],
      ),
    writeOne: (row, one) =>
      writeRow(row, one, [one.policy, formatNumber(one.requests), formatSeconds(one.expiresSeconds)]),
  })
}

function moreOf({ total }, list) {
  return total > list.length ? `The first ${list.length} of ${formatNumber(total)}.` : ''
}

/** @param actions for each button: its text, its accessible name outside of the row, and its action, which gets the row's entry */
function makeRow(columns, actions) {
  const row = make('tr', {}, make('th', { scope: 'row' }))
  for (const [index, name] of columns.entries()) {
    const isNumber = index === columns.length - 1 || name === 'Refusals' || name === 'Requests'
    row.append(make('td', { 'data-name': name, ...(isNumber && { class: 'number' }) }))
  }
  const cell = make('td')
  for (const [text, label, act] of actions) {
    const button = make('button', { type: 'button', 'aria-label': label }, text)
    button.addEventListener('click', () => void act(row.entry))
    cell.append(button)
  }
  row.append(cell)
  return row
}

function writeRow(row, one, texts) {
  row.entry = one
  const [head, ...cells] = row.children
  const name = nameOf(one.client)
  setText(head, one.label ? `${one.label} (${name})` : name)
  if (head.title !== head.textContent) head.title = head.textContent
  for (const [index, text] of texts.entries()) setText(cells[index], text)
}
