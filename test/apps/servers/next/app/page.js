import Link from 'next/link'
import { cookies, headers } from 'next/headers'
import { createElement as h } from 'react'
import { Counter } from './counter.js'

async function remember(form) {
  'use server'
  const jar = await cookies()
  jar.set('name', form.get('name'), { path: '/' })
}

export default async function Page() {
  const name = (await cookies()).get('name')?.value ?? 'nobody'
  const protocol = (await headers()).get('x-forwarded-proto') ?? 'none'
  return h(
    'main',
    null,
    h('p', { id: 'name' }, name),
    h('p', { id: 'protocol' }, protocol),
    h(Counter),
    h('form', { action: remember }, h('input', { name: 'name' }), h('button', null, 'Remember')),
    h(Link, { href: '/other' }, 'Other'),
  )
}
