# Takes as long as `ms` says.
run lambda { |env|
  sleep (env['QUERY_STRING'][/ms=(\d+)/, 1] || 0).to_i / 1000.0
  [200, { 'Content-Type' => 'text/plain' }, ['ok']]
}
