'use client'
import { createElement as h, useState } from 'react'

export function Counter() {
  const [count, setCount] = useState(0)
  return h('button', { id: 'count', onClick: () => setCount(count + 1) }, `Count ${count}`)
}
