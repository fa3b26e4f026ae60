export const dynamic = 'force-dynamic'

export function GET() {
  const encoder = new TextEncoder()
  let sent = 0
  const stream = new ReadableStream({
    pull(controller) {
      controller.enqueue(encoder.encode(`data: event ${sent}\n\n`))
      if (++sent === 500) controller.close()
    },
  })
  return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
}
