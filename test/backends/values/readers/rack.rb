# Reads a list of texts in base64, and writes for each what Rack takes for the value. READER says of what.
require 'base64'
require 'json'
require 'rack'

def flat(value)
  case value
  when nil then []
  when Hash then value.values.flat_map { |one| flat(one) }
  when Array then value.flat_map { |one| flat(one) }
  else [value.to_s]
  end
end

READERS = {
  'query' => ->(text) { flat(Rack::Utils.parse_nested_query(text)['user']) },
  'cookie' => ->(text) { flat(Rack::Utils.parse_cookies_header(text)['sid']) },
  'to_i' => ->(text) { text.match?(/\A\s*[+-]?\d/) ? [text.to_i.to_s] : [] },
  'Integer' => ->(text) { [Integer(text).to_s] }
}.freeze

read = READERS.fetch(ENV.fetch('READER'))
texts = JSON.parse($stdin.read).map { |text| Base64.decode64(text) }
values = texts.map do |text|
  read.call(text.dup.force_encoding('UTF-8')).map { |value| Base64.strict_encode64(value.b) }
rescue StandardError
  []
end
puts JSON.generate(values)
