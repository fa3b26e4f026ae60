import { gateOf } from '../../slow/gate.js'

export function POST(request) {
  gateOf(request.nextUrl.searchParams.get('id')).resolve()
  return new Response(null, { status: 204 })
}
