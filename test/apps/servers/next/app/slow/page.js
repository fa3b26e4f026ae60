import { createElement as h, Suspense } from 'react'
import { gateOf } from './gate.js'

async function Slow({ id }) {
  await gateOf(id).promise
  return h('p', { id: 'slow' }, 'The slow part')
}

export default async function Page({ searchParams }) {
  const { id } = await searchParams
  return h(Suspense, { fallback: h('p', { id: 'fallback' }, 'Wait') }, h(Slow, { id }))
}
