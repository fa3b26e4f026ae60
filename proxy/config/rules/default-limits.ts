/** The built-in limits table, in the form of a file. It applies if no file has limits. */
export const defaultLimits = [
  { name: 'login', match: 'POST /login', requests: 30, window: '15m' },
  { name: 'signup', match: 'POST /signup', requests: 30, window: '60m' },
  { name: 'verify-email', match: 'POST /verify-email', requests: 10, window: '60m' },
  { name: 'forgot-password', match: 'POST /forgot-password', requests: 5, window: '60m' },
  { name: 'client-side-api', match: 'GET /client-side-api', requests: 100, window: '1m' },
  { name: 'share', match: 'POST /share', requests: 100, window: '60m' },
]
