// The actions of the buttons, and how to undo them.

import { at } from './dom.js'
import { describeLimit, nameOf } from './format.js'
import { ask, Unauthorized } from './gateway.js'
import { limitOf } from './rules.js'

/**
 * @param {string} done message to show afterwards
 * @param {((reply: object) => Promise<unknown>) | undefined} undo gets the reply of the gateway
 * @returns whether the action succeeded
 */
export async function act(path, body, done, undo) {
  let reply
  try {
    reply = await (await ask(path, body)).json()
  } catch (error) {
    if (error instanceof Unauthorized)
      dispatchEvent(new CustomEvent('unauthorized', { detail: error.message }))
    tell(error instanceof TypeError ? 'No answer: nothing may have changed' : error.message, undefined)
    return false
  }
  tell(done, undo && (() => undo(reply)))
  return true
}

let undoLast
function tell(text, undo) {
  at('told').textContent = text
  undoLast = undo
  at('undo').hidden = undo === undefined
}

at('undo').addEventListener('click', () => {
  const undo = undoLast
  at('undo').hidden = true
  at('limited-title').focus({ preventScroll: true })
  void undo?.()
})

/** A reset cannot be undone, because it deletes the counts. */
export function letIn({ policy, client }) {
  return act('api/clients/reset', { policy, client }, `${nameOf(client)} may pass again under ${policy}`)
}

/** Bans a client: an address from everything, a client known by its hash from the rules that count by it. */
export async function ban({ client }) {
  const before = await readEntries('bans')
  const undo = before && (({ banned }) => undoSet(bans, withEnds(banned), before))
  return act('api/clients/ban', { client, for: '1h' }, `${nameOf(client)} is banned for 1 hour`, undo)
}

/** Without a rule, the bans under all rules are lifted. */
export async function unban({ client, policy }) {
  const before = await readEntries('bans')
  const undo = before && (({ unbanned }) => undoRemoved(bans, unbanned, before))
  const named = policy === null ? { client } : { client, policy }
  return act('api/clients/unban', named, `${nameOf(client)} is not banned any more`, undo)
}

export async function removeOverride({ client, policy }) {
  const before = await readEntries('overrides')
  const undo = before && (() => undoRemoved(overrides, [{ client, policy }], before))
  const done = `${nameOf(client)} has the limit of ${policy} again`
  return act('api/clients/override/remove', { policy, client }, done, undo)
}

export async function setOverride(body) {
  const before = await readEntries('overrides')
  const undo = before && (({ override: made }) => undoSet(overrides, withEnds([made]), before))
  const done = `${nameOf(body.client)} has ${body.requests} requests under ${body.policy}`
  return act('api/clients/override', body, done, undo)
}

// Undo restores the state that the client had before the change, unless another operator has changed it meanwhile.

const bans = {
  list: 'bans',
  put: ({ client, policy, reason, endsAtMs }) => {
    // A ban under one rule must not return as a ban from everything.
    const named = policy === null ? { client } : { client, policy }
    const body = { ...named, for: untilEnd(endsAtMs), ...(reason && { reason }) }
    return act('api/clients/ban', body, `${nameOf(client)} is banned again`)
  },
  remove: ({ client, policy }) =>
    act('api/clients/unban', { client, policy }, `${nameOf(client)} is not banned any more`),
}

const overrides = {
  list: 'overrides',
  put: ({ client, policy, requests, label, endsAtMs }) => {
    const body = { policy, client, requests, for: untilEnd(endsAtMs), ...(label && { label }) }
    return act('api/clients/override', body, `${nameOf(client)} has ${requests} requests again`)
  },
  remove: ({ client, policy }) =>
    act(
      'api/clients/override/remove',
      { policy, client },
      `${nameOf(client)} has the limit of ${policy} again`,
    ),
}

/** How much the ends of the same entry differ when it is read twice, at most: they are in seconds, and replies take time. */
const SAME_END_MS = 5_000
const MAX_LISTED = 10_000

/** Reads the bans or overrides of all clients; undefined without an answer. */
async function readEntries(list) {
  try {
    return withEnds((await (await ask(`api/${list}?limit=${MAX_LISTED}`)).json())[list])
  } catch {
    // The reply to the change has the reason.
    return undefined
  }
}

function withEnds(entries) {
  return entries.map((one) => ({ ...one, endsAtMs: Date.now() + one.expiresSeconds * 1000 }))
}

function untilEnd(endsAtMs) {
  return `${Math.max(1, Math.ceil((endsAtMs - Date.now()) / 1000))}s`
}

function find(entries, { client, policy }) {
  const name = JSON.stringify(client)
  return entries.find((one) => one.policy === policy && JSON.stringify(one.client) === name)
}

/** @param before all entries before these were set */
async function undoSet(kind, set, before) {
  const current = (await readEntries(kind.list)) ?? []
  for (const one of set) {
    const now = find(current, one)
    const isOurs = now && now.requests === one.requests && Math.abs(now.endsAtMs - one.endsAtMs) < SAME_END_MS
    if (!isOurs) return tellChanged(one.client)
    const earlier = find(before, one)
    await (earlier && earlier.endsAtMs > Date.now() ? kind.put(earlier) : kind.remove(one))
  }
}

/** @param before all entries before these were removed */
async function undoRemoved(kind, removed, before) {
  const current = await readEntries(kind.list)
  for (const one of removed) {
    if (!current || find(current, one)) return tellChanged(one.client)
    const earlier = find(before, one)
    if (earlier) await kind.put(earlier)
  }
}

/** Tells that a change is not undone, because the client has been changed again, or there is no answer. */
export function tellChanged(client) {
  tell(`Not undone: ${nameOf(client)} may have been changed meanwhile`, undefined)
}

let overridden
export function override(one) {
  overridden = one
  const limit = limitOf(one.policy)
  at('override-about').textContent = `${nameOf(one.client)} under ${one.policy} (${describeLimit(limit)})`
  at('override-requests').value = String((limit?.requests ?? 1) * 2)
  at('override-error').textContent = ''
  at('override').showModal()
}

at('override-cancel').addEventListener('click', () => at('override').close())

at('override-form').addEventListener('submit', (event) => {
  event.preventDefault()
  const { policy, client } = overridden
  const requests = Number(at('override-requests').value)
  void setOverride({ policy, client, requests, for: at('override-for').value }).then((isDone) => {
    if (isDone) at('override').close()
    else at('override-error').textContent = at('told').textContent
  })
})
