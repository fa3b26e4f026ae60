# Reads a list of requests, and writes for each what Rack and Ruby's JSON take for the value of `email`.
require 'base64'
require 'json'
require 'rack'
require 'stringio'

def flat(value)
  case value
  when nil, Hash then []
  when Array then value.flat_map { |one| flat(one) }
  else [value.to_s]
  end
end

def of_json(value)
  return value.flat_map { |one| one.is_a?(Hash) ? flat(one['email']) : [] } if value.is_a?(Array)

  value.is_a?(Hash) ? flat(value['email']) : []
end

def ask(types, query, body)
  env = {
    'REQUEST_METHOD' => 'POST', 'PATH_INFO' => '/', 'QUERY_STRING' => query, 'rack.input' => StringIO.new(body),
    'CONTENT_LENGTH' => body.bytesize.to_s, 'rack.errors' => $stderr
  }
  env['CONTENT_TYPE'] = types.join(', ') unless types.empty?
  values = begin
    flat(Rack::Request.new(env).params['email'])
  rescue StandardError
    []
  end
  values + begin
    of_json(JSON.parse(body.dup.force_encoding('UTF-8')))
  rescue StandardError
    []
  end
end

found = JSON.parse($stdin.read).map do |one|
  ask(one['types'], one['query'], Base64.decode64(one['body'])).map { |value| Base64.strict_encode64(value.b) }
end
puts JSON.generate(found)
